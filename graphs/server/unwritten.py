"""Turns that ended before they were written down, and whose threads nobody goes on with: found in the checkpoints."""

import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph_sdk import get_client

from graphs.middleware.asked import MODEL, reading_graph
from graphs.middleware.state import ASKED_KEY
from graphs.persistence import own_checkpoints_of
from graphs.process.identity import OWNER_KEY
from graphs.process.service import MemoryService
from graphs.server.threads import all_pages
from graphs.turn.state import MEMORY_KEY, InputState, MemoryState
from memory.context.running_summary import state_of
from memory.door import tolerated
from memory.message import is_made
from memory.namespaces import Owner, user_segment
from memory.turn import TurnEpochs
from memory.unwritten import HAS_UNWRITTEN, unwritten_of

logger = logging.getLogger(__name__)

_PAGE_OF_CHECKPOINTS = 1000
_PAGE = 20


@dataclass(frozen=True, slots=True)
class Left:
    """A thread whose newest state names unwritten turns.

    Attributes:
        thread_id: The thread.
        user_id: Whose it is, as the server says; empty where nobody logs in.
        messages: Its messages.
        memory: What its state says of memory.
    """

    thread_id: str
    user_id: str
    messages: Sequence[BaseMessage]
    memory: Mapping[str, object]


class KeptState(InputState):
    """What of the chat graph's state, and of an agent's, tells of unwritten turns."""

    memory: MemoryState
    """What the chat graph keeps."""
    palimpsest_memory: dict[str, Any]
    """What each `PalimpsestMemory` of an agent keeps, by its name."""
    palimpsest_asked: str
    """The newest question that an agent's model has answered."""


async def write_down_left(service: MemoryService, store: BaseStore, page: int = _PAGE_OF_CHECKPOINTS) -> int:
    """Write down what the newest states of threads name as unwritten, each turn once, and return how many turns.

    It reads beside the server's run queue. What it cannot write now, the next look or the thread's next turn does.
    A thread that nobody goes on with names a turn for ever, also once it is written down: so a look sees all of them.

    Args:
        service: Writes them down.
        store: Where.
        page: So many threads are read from the checkpoints at a time.

    Raises:
        Exception: Whatever saver, server and store raise.
    """
    written, saver = 0, service.saver_of_server()
    async for left in _of_checkpoints(service, saver, page) if saver is not None else _of_server():
        epochs = TurnEpochs.from_state(left.memory)
        for turn in unwritten_of(left.memory.get("unwritten")):
            with tolerated(logger, "a turn of thread %s is not written down yet", left.thread_id):
                owner = vouched_owner(turn.owner, left.user_id, single_user=service.settings.single_user)
                closing = owner and turn.closing(left.thread_id, owner, left.messages, epochs.learn_from)
                if closing and await service.aremember(store, closing):
                    written += 1
    if written:
        logger.info("%d turns were written down that had not been in time", written)
    return written


def vouched_owner(named: str, user_id: str, *, single_user: bool) -> Owner | None:
    """Return whose turn it is, if the server says the same as the state, which a client may have written."""
    owner = Owner.from_due_key(named)
    if user_id:
        return owner if owner.segment == user_segment(user_id) else None
    return owner if single_user else None


def left_in(
    thread_id: str, user_id: str, values: Mapping[str, Any], messages: Sequence[BaseMessage], waits_for: Sequence[str]
) -> Iterator[Left]:
    """Yield what a state says of unwritten turns: of the chat graph, or of each `PalimpsestMemory` of an agent.

    Args:
        thread_id: The thread.
        user_id: Whose it is, as the server says.
        values: The state.
        messages: Its messages.
        waits_for: The nodes at which its run stopped.
    """
    if isinstance(memory := values.get("memory"), Mapping):
        yield Left(thread_id, user_id, messages, memory)
    said = [message for message in messages if not is_made(message)]
    questions = [at for at, message in enumerate(said) if isinstance(message, HumanMessage)]
    if questions and MODEL not in waits_for and values.get(ASKED_KEY) not in (None, said[questions[-1]].id):
        # Its model was never asked the newest question: a guard may have refused it.
        del said[questions[-1] :]
    for kept in state_of(values.get(MEMORY_KEY)).values():
        if isinstance(kept, Mapping):
            yield Left(thread_id, user_id, said, kept)


async def _of_checkpoints(service: MemoryService, saver: BaseCheckpointSaver[str], page: int) -> AsyncIterator[Left]:
    # Read where they are, not through the server: after a crash it may lack a thread's row.
    checkpoints = own_checkpoints_of(service.settings)
    # A graph that only reads: whichever graph wrote a state, what is asked for stands under these names.
    graph = reading_graph(KeptState, saver)
    newest_read = ""
    while found := await checkpoints.unwritten(page, after=newest_read):
        for thread_id, user_id in found:
            read: list[Left] = []
            with _one_thread(thread_id):
                # As it was saved: of what a client sent last nobody knows that it is a message, and without naming the
                # checkpoint LangGraph adds it, or fails.
                if newest := await saver.aget_tuple({"configurable": {"thread_id": thread_id}}):
                    state = await graph.aget_state(newest.config)
                    values = state.values
                    read = list(left_in(thread_id, user_id, values, values.get("messages", []), state.next))
            for left in read:
                yield left
        newest_read = found[-1][0]


async def _of_server() -> AsyncIterator[Left]:
    threads = get_client().threads
    for key in ("memory", MEMORY_KEY):
        options: dict[str, Any] = {"values": {key: {HAS_UNWRITTEN: True}}, "limit": _PAGE}
        options |= {"sort_by": "created_at", "sort_order": "asc"}
        async for thread in all_pages(lambda offset: threads.search(offset=offset, **options), _PAGE):  # noqa: B023
            values, thread_id = state_of(thread.get("values")), str(thread["thread_id"])
            found: list[Left] = []
            with _one_thread(thread_id):
                messages = convert_to_messages(values.get("messages") or [])
                owner = state_of(thread.get("metadata")).get(OWNER_KEY)
                waits_for = (await threads.get_state(thread_id))["next"]
                found = list(left_in(thread_id, str(owner or ""), values, messages, waits_for))
            for left in found:
                yield left


def _one_thread(thread_id: str) -> AbstractContextManager[None]:
    """Let a thread that cannot be read keep no other one, maybe of another user, from being looked at."""
    return tolerated(logger, "thread %s cannot be read: turns of it that were not written down stay so", thread_id)
