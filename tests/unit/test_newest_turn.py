"""The end of a thread that is looked at when a turn is written down: as much as is needed, and no more."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graphs.turn.modes import learnable, marked, newest_turn
from graphs.turn.state import MemoryState, State
from memory.outbox.transcript import to_turn

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
    return marked(made, "incognito" if kind.endswith("private") else "normal")


def thread(messages: Sequence[BaseMessage], learn_from: str = "") -> State:
    memory = MemoryState(learn_from=learn_from)
    return State(messages=list(messages), summarized_messages=[], context={}, memory=memory)  # type: ignore[arg-type]


@given(st.lists(st.sampled_from(KINDS), max_size=14), st.integers(0, 14))
def test_it_has_all_that_the_whole_thread_tells_of_the_newest_turn(kinds: list[str], erased: int) -> None:
    messages = [message(kind, at) for at, kind in enumerate(kinds)]
    for since in (0, min(erased, max(0, len(messages) - 1))):
        state = thread(messages, f"m{since}")
        assert to_turn(learnable(newest_turn(state)), TIME) == to_turn(learnable(messages[since:]), TIME)


def test_it_does_not_grow_with_the_thread() -> None:
    messages = [message(kind, at) for at, kind in enumerate(["asked", "called", "found", "answered"] * 500)]
    assert len(newest_turn(thread(messages))) == 8
