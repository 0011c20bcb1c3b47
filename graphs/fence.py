"""The fence between a turn and an erase: nothing that was said before an erase is written down after it. Pure."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from graphs.modes import is_open
from graphs.state import MemoryState, State, memory_of
from memory.turn import Epochs
from memory.updates.thread_epoch import erased_between


def fence(state: State, epochs: Epochs | None) -> MemoryState:
    """Return the turn's epochs, and from which message on the thread may be learned if one changed since the last.

    Where they cannot be read (`None`), all stays what it was: an erase that is not seen yet must not be forgotten,
    and what is written down under an old epoch is cancelled.
    """
    before, memory = epochs_of(state), _as_before(memory_of(state))
    if epochs is None:
        return memory
    if _has_changed(before, epochs):
        asked = next((one.id for one in reversed(state["messages"]) if isinstance(one, HumanMessage)), None)
        memory["learn_from"] = str(asked) if asked else memory.get("learn_from", "")
    if epochs.edit:
        memory["edit"] = epochs.edit
    return MemoryState(**{**memory, "epoch": epochs.user, "thread_epoch": epochs.thread})


def _has_changed(before: Epochs, now: Epochs) -> bool:
    is_new_user_epoch = bool(before.user) and before.user != now.user
    return is_new_user_epoch or (bool(before.thread) and erased_between(before.thread, now.thread))


def epochs_of(state: State) -> Epochs:
    """Return the epochs under which the turn began."""
    memory = memory_of(state)
    return Epochs(memory.get("epoch", ""), memory.get("thread_epoch", ""), memory.get("edit", ""))


def newest_turn(state: State) -> Sequence[BaseMessage]:
    """Return the end of the thread: the newest turn that may be learned, and the exchange that it replies to.

    It never reaches back behind an erase. Only the end is looked at, however long the thread is.
    """
    messages = state["messages"]
    return messages[_turn_start(messages, memory_of(state).get("learn_from", "")) :]


def _turn_start(messages: Sequence[BaseMessage], since: str) -> int:
    """Return where the newest learnable question stands that was answered before a newer one was asked."""
    is_asked = is_answered = False
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if since and message.id == since:
            return at
        said_openly = is_open(message)
        if isinstance(message, HumanMessage):
            if said_openly and is_asked and is_answered:
                return at
            is_asked, is_answered = is_asked or said_openly, False
        elif said_openly and isinstance(message, AIMessage) and not message.tool_calls:
            is_answered = True
    return 0


def not_erased(state: State, leaving: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return those of the messages that leave the thread that no erase came after."""
    since = memory_of(state).get("learn_from")
    erased = {message.id for message in state["messages"][: _place(state["messages"], since)]} if since else set()
    return [message for message in leaving if message.id not in erased]


def _place(messages: Sequence[BaseMessage], identity: str) -> int:
    """Return where the message with an id stands, looking at the newest first; 0 if it is not there."""
    return next((at for at in range(len(messages) - 1, -1, -1) if messages[at].id == identity), 0)


def _as_before(memory: MemoryState) -> MemoryState:
    kept = MemoryState()
    if "epoch" in memory:
        kept["epoch"] = memory["epoch"]
    if "thread_epoch" in memory:
        kept["thread_epoch"] = memory["thread_epoch"]
    if "learn_from" in memory:
        kept["learn_from"] = memory["learn_from"]
    if "edit" in memory:
        kept["edit"] = memory["edit"]
    return kept
