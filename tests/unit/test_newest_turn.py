"""The end of a thread that is looked at when a turn is written down: as much as is needed, and no more."""

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from memory.outbox.transcript import to_turn
from memory.turn import TurnEpochs, learnable, with_mode

TIME = "2026-01-01T00:00:00+00:00"
KINDS = ["asked", "asked in private", "answered", "answered in private", "called", "found"]


def message(kind: str, at: int) -> BaseMessage:
    made: BaseMessage
    if kind.startswith("asked"):
        made = HumanMessage(f"question {at}", id=f"m{at}")
    elif kind == "found":
        made = ToolMessage("found", tool_call_id="c", id=f"m{at}")
    else:
        calls = [{"name": "look", "args": {}, "id": "c"}] if kind == "called" else []
        made = AIMessage(f"answer {at}", id=f"m{at}", tool_calls=calls)
    return with_mode(made, "incognito" if kind.endswith("private") else "normal")


@given(st.lists(st.sampled_from(KINDS), max_size=14), st.integers(0, 14))
def test_it_has_all_that_the_whole_thread_tells_of_the_newest_turn(kinds: list[str], erased: int) -> None:
    messages = [message(kind, at) for at, kind in enumerate(kinds)]
    for since in (0, min(erased, max(0, len(messages) - 1))):
        newest = TurnEpochs(learn_from=f"m{since}").newest_turn(messages)
        assert to_turn(learnable(newest), TIME) == to_turn(learnable(messages[since:]), TIME)


def test_it_does_not_grow_with_the_thread() -> None:
    messages = [message(kind, at) for at, kind in enumerate(["asked", "called", "found", "answered"] * 500)]
    assert len(TurnEpochs().newest_turn(messages)) == 8
