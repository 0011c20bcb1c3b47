"""The fence between a turn and an erase: nothing that was said before an erase is written down after it. Pure."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, HumanMessage

from graphs.state import MemoryState, State, memory_of
from memory.core.known import Known


def fence(state: State, known: Known | None) -> MemoryState:
    """Return the turn's epoch, and from which message on the thread may be learned if it changed since the last.

    Where memory cannot be read, both stay what they were: an erase that is not seen yet must not be forgotten, and
    what is written down under an old epoch is cancelled.
    """
    before = memory_of(state)
    if known is None:
        return _as_before(before)
    asked = [message.id for message in state["messages"] if isinstance(message, HumanMessage)]
    has_changed = before.get("epoch", known.epoch) != known.epoch
    since = str(asked[-1]) if has_changed and asked else before.get("learn_from", "")
    return MemoryState(epoch=known.epoch, learn_from=since)


def epoch_of(state: State) -> str:
    """Return the epoch under which the turn began, or nothing if it could never be read: then it is the current one."""
    return memory_of(state).get("epoch", "")


def learnable_since(state: State) -> Sequence[BaseMessage]:
    """Return the messages that no erase came after."""
    messages, since = state["messages"], memory_of(state).get("learn_from")
    start = next((at for at, message in enumerate(messages) if since and message.id == since), 0)
    return messages[start:]


def _as_before(memory: MemoryState) -> MemoryState:
    kept = MemoryState()
    if "epoch" in memory:
        kept["epoch"] = memory["epoch"]
    if "learn_from" in memory:
        kept["learn_from"] = memory["learn_from"]
    return kept
