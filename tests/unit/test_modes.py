import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graphs.turn.context import Context
from graphs.turn.run import mode_of_run
from memory.turn import (
    MODES,
    MemoryMode,
    effective_mode,
    learnable,
    may_learn,
    may_read,
    mode_of,
    unanswered_with_mode,
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


@given(modes, st.lists(declared))
def test_nothing_said_later_loosens_a_mode(assistant: MemoryMode, said: list[MemoryMode | None]) -> None:
    assert MODES.index(effective_mode(assistant, *said)) >= MODES.index(assistant)


@pytest.mark.parametrize("misspelt", ["Incognito", "off", "", 0, False, [], {"mode": "normal"}])
def test_a_mode_that_is_none_counts_as_the_strictest(misspelt: object) -> None:
    assert effective_mode("normal", misspelt) == "incognito"


def test_what_each_mode_allows() -> None:
    assert [(may_read(mode), may_learn(mode)) for mode in MODES] == [(True, True), (True, False), (False, False)]


def test_an_assistant_chooses_its_mode() -> None:
    assert Context().memory_mode == "normal"
    with pytest.raises(ValueError, match="memory_mode"):
        Context(memory_mode="off")  # type: ignore[arg-type]


@pytest.mark.parametrize(("chosen", "said"), list(itertools.product(MODES, [None, *MODES])))
async def test_in_process_context_and_metadata_decide(chosen: MemoryMode, said: MemoryMode | None) -> None:
    metadata = {} if said is None else {"memory_mode": said}
    mode = await mode_of_run({"metadata": metadata}, chosen, on_server=False)
    assert mode == effective_mode(chosen, said)


async def test_a_server_whose_rows_cannot_be_read_goes_on_without_memory(caplog: pytest.LogCaptureFixture) -> None:
    assert await mode_of_run({"configurable": {}}, "normal", on_server=True) == "incognito"
    assert "incognito" in caplog.text


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


def test_noting_a_mode_changes_nothing_else() -> None:
    message = HumanMessage("q", id="1", name="ada", additional_kwargs={"x": 1})
    assert with_mode(message, "normal") is message
    copy = with_mode(message, "read_only")
    assert copy.additional_kwargs == {"x": 1, "memory_mode": "read_only"}
    assert (copy.content, copy.id, copy.name) == ("q", "1", "ada")
    assert message.additional_kwargs == {"x": 1}


@given(modes, modes)
def test_a_question_that_its_client_said_in_a_stricter_mode_keeps_it(
    of_run: MemoryMode, of_question: MemoryMode
) -> None:
    asked = with_mode(HumanMessage("q", id="1"), of_question)
    noted = unanswered_with_mode([asked], of_run) or [asked]
    assert [mode_of(message) for message in noted] == [effective_mode(of_run, of_question)]
