"""What memory may do in a turn: its mode, and nothing from before an erase is written down after it."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph_sdk import get_client

from graphs.identity import as_server
from graphs.turn.state import MemoryState, State, memory_of
from memory.effects import tolerated
from memory.threads import erased_between
from memory.turn import TurnEpochs

logger = logging.getLogger(__name__)

MemoryMode = Literal["normal", "read_only", "incognito"]
MODES: tuple[MemoryMode, ...] = ("normal", "read_only", "incognito")
"""From the loosest to the strictest."""

MODE_KEY = "memory_mode"
"""Where it stands: in a thread's metadata, an assistant's context, and what a message carries."""

Message = TypeVar("Message", bound=BaseMessage)


def effective_mode(*declared: object) -> MemoryMode:
    """Return the strictest of the modes that were declared; `None` declares nothing.

    What is no mode counts as `incognito`: a misspelt wish for less memory must not mean all of it.
    """
    ranks = [_rank(mode) for mode in declared if mode is not None]
    return MODES[max(ranks, default=0)]


def _rank(mode: object) -> int:
    return MODES.index(mode) if mode in MODES else len(MODES) - 1


def may_read(mode: MemoryMode) -> bool:
    """Say whether memory may be put before the model."""
    return mode != "incognito"


def may_learn(mode: MemoryMode) -> bool:
    """Say whether what is said may be queued, journaled and learned."""
    return mode == "normal"


def marked(message: Message, mode: MemoryMode) -> Message:
    """Return the message with the mode under which it was said, so that a later, looser mode does not learn it."""
    if may_learn(mode):
        return message
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, MODE_KEY: mode}})


def mark_turn(messages: Sequence[BaseMessage], mode: MemoryMode) -> list[BaseMessage]:
    """Return what a turn begins with, marked: the messages that no answer follows yet; none in `normal` mode."""
    if may_learn(mode):
        return []
    answered = max((at for at, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
    return [marked(message, mode) for message in messages[answered + 1 :]]


def said_mode(messages: Sequence[BaseMessage]) -> MemoryMode:
    """Return the mode under which the newest user message was said."""
    newest = next((message for message in reversed(messages) if isinstance(message, HumanMessage)), None)
    return effective_mode(newest.additional_kwargs.get(MODE_KEY) if newest else None)


def is_open(message: BaseMessage) -> bool:
    """Say whether a message is not marked; what follows a marked user message belongs to it all the same."""
    return may_learn(effective_mode(message.additional_kwargs.get(MODE_KEY)))


def learnable(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages that were said in `normal` mode.

    What follows a marked user message, up to the next one, belongs to it, whether marked itself or not.
    """
    kept: list[BaseMessage] = []
    open_turn = True
    for message in messages:
        said_openly = is_open(message)
        if isinstance(message, HumanMessage):
            open_turn = said_openly
        if open_turn and said_openly:
            kept.append(message)
    return kept


async def mode_of_run(config: RunnableConfig, chosen: MemoryMode, *, on_server: bool) -> MemoryMode:
    """Return the mode of the run in progress.

    Args:
        config: The run's configuration.
        chosen: What the run's context says: the assistant's choice, or the run's own.
        on_server: Whether a server runs the graph (`runtime.server_info` is set); then its rows of the assistant
            and the thread are read. If they cannot be read, the mode is `incognito`: the turn goes on without memory.
    """
    said = (chosen, (config.get("metadata") or {}).get(MODE_KEY))
    if not on_server:
        return effective_mode(*said)
    with tolerated(logger, "the modes of assistant and thread cannot be read, incognito"):
        return effective_mode(*said, *await as_server(_declared_on_server(config.get("configurable") or {})))
    return "incognito"


async def _declared_on_server(configurable: Mapping[str, object]) -> Iterable[object]:
    """Read what the assistant's and the thread's rows declare."""
    client = get_client()
    assistant, threads = await asyncio.gather(
        client.assistants.get(str(configurable["assistant_id"])),
        client.threads.search(ids=[str(configurable["thread_id"])], select=["thread_id", "metadata"], limit=1),
    )
    chosen = assistant.get("context") or assistant["config"].get("configurable") or {}
    declared = [chosen.get(MODE_KEY), (assistant.get("metadata") or {}).get(MODE_KEY)]
    return declared + [(thread.get("metadata") or {}).get(MODE_KEY) for thread in threads]


def fence(state: State, epochs: TurnEpochs | None) -> MemoryState:
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


def _has_changed(before: TurnEpochs, now: TurnEpochs) -> bool:
    is_new_user_epoch = bool(before.user) and before.user != now.user
    return is_new_user_epoch or (bool(before.thread) and erased_between(before.thread, now.thread))


def epochs_of(state: State) -> TurnEpochs:
    """Return the epochs under which the turn began."""
    memory = memory_of(state)
    return TurnEpochs(memory.get("epoch", ""), memory.get("thread_epoch", ""), memory.get("edit", ""))


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
