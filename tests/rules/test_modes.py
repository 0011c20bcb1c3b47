from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from memory.turn import (
    MODES,
    MemoryMode,
    effective_mode,
    learnable,
    with_mode,
)

modes = st.sampled_from(MODES)
declared = st.one_of(st.none(), modes)


@given(st.lists(declared, max_size=5))
def test_the_strictest_mode_wins_in_any_order(said: list[MemoryMode | None]) -> None:
    mode = effective_mode(*said)
    assert mode == effective_mode(*reversed(said))
    assert all(MODES.index(mode) >= MODES.index(one) for one in said if one)
    assert mode in said or mode == "normal"


@pytest.mark.parametrize("misspelt", ["Incognito", "off", "", 0, False, [], {"mode": "normal"}])
def test_a_mode_that_is_none_counts_as_the_strictest(misspelt: object) -> None:
    assert effective_mode("normal", misspelt) == "incognito"


def turn(number: int, mode: MemoryMode, *, all_say_it: bool) -> list[BaseMessage]:
    question, call = HumanMessage(f"q{number}"), AIMessage(f"a{number}")
    answer, result = AIMessage(f"b{number}"), ToolMessage(f"t{number}", tool_call_id="1")
    follow = [call, result, answer]
    return [with_mode(question, mode), *(with_mode(message, mode) if all_say_it else message for message in follow)]


@given(st.lists(st.tuples(modes, st.booleans()), max_size=6))
def test_only_what_was_said_in_normal_mode_is_learned(turns: list[tuple[MemoryMode, bool]]) -> None:
    messages: list[BaseMessage] = []
    expected: list[BaseMessage] = []
    for number, (mode, all_say_it) in enumerate(turns):
        said = turn(number, mode, all_say_it=all_say_it)
        messages += said
        expected += said if mode == "normal" else []
    assert learnable(messages) == expected


def test_the_rest_of_a_turn_keeps_its_own_mode() -> None:
    cut_off: Sequence[BaseMessage] = turn(1, "incognito", all_say_it=True)[1:]
    assert learnable([*cut_off, HumanMessage("q2")]) == [HumanMessage("q2")]
