"""Turns that ended before they were written down, and whose threads nobody goes on with: found in the checkpoints."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
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
from memory.updates.unwritten import HAS_UNWRITTEN, unwritten_of

logger = logging.getLogger(__name__)

_PAGE_OF_CHECKPOINTS = 1000
_PAGE = 20


Kept = tuple[Mapping[str, Any], Sequence[BaseMessage], Sequence[str]]
"""The state of a thread, its messages, and the nodes at which its run stopped."""
Found = AsyncIterator[tuple[str, str, Callable[[], Awaitable[Kept]]]]
"""Threads that name unwritten turns: the id, whose it is as the server says (empty where nobody logs in), and what
reads it."""


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
    async for thread_id, user_id, read in _of_checkpoints(service, saver, page) if saver is not None else _of_server():
        # One that cannot be read keeps no other one, maybe of another user, from being looked at.
        with tolerated(logger, "thread %s cannot be read: turns of it that were not written down stay so", thread_id):
            for memory, messages in _memories(*await read()):
                learn_from = TurnEpochs.from_state(memory).learn_from
                for turn in unwritten_of(memory.get("unwritten")):
                    with tolerated(logger, "a turn of thread %s is not written down yet", thread_id):
                        if (owner := Owner.from_due_key(turn.owner)) is None:
                            continue
                        # The state may have been written by a client: the server says the same, or nobody logs in.
                        is_vouched = owner.segment == user_segment(user_id) if user_id else service.settings.single_user
                        closing = turn.closing(thread_id, owner, messages, learn_from) if is_vouched else None
                        if closing and await service.aremember(store, closing):
                            written += 1
    if written:
        logger.info("%d turns were written down that had not been in time", written)
    return written


def _memories(
    values: Mapping[str, Any], messages: Sequence[BaseMessage], waits_for: Sequence[str]
) -> Iterator[tuple[Mapping[str, Any], Sequence[BaseMessage]]]:
    """Yield what a state says of memory, of the graph or of each `PalimpsestMemory` of an agent, and its messages."""
    if isinstance(memory := values.get("memory"), Mapping):
        yield memory, messages
    said = [message for message in messages if not is_made(message)]
    questions = [at for at, message in enumerate(said) if isinstance(message, HumanMessage)]
    if questions and MODEL not in waits_for and values.get(ASKED_KEY) not in (None, said[questions[-1]].id):
        # Its model was never asked the newest question: a guard may have refused it.
        del said[questions[-1] :]
    for kept in state_of(values.get(MEMORY_KEY)).values():
        if isinstance(kept, Mapping):
            yield kept, said


async def _of_checkpoints(service: MemoryService, saver: BaseCheckpointSaver[str], page: int) -> Found:
    # Read where they are, not through the server: after a crash it may lack a thread's row.
    checkpoints = own_checkpoints_of(service.settings)
    # A graph that only reads: whichever graph wrote a state, what is asked for stands under these names.
    graph = reading_graph(KeptState, saver)

    async def read(thread_id: str) -> Kept:
        # As it was saved: of what a client sent last nobody knows that it is a message, and without naming the
        # checkpoint LangGraph adds it, or fails.
        newest = await saver.aget_tuple({"configurable": {"thread_id": thread_id}})
        if newest is None:
            return {}, (), ()
        state = await graph.aget_state(newest.config)
        return state.values, state.values.get("messages", []), state.next

    newest_read = ""
    while found := await checkpoints.unwritten(page, after=newest_read):
        for thread_id, user_id in found:
            yield thread_id, user_id, partial(read, thread_id)
        newest_read = found[-1][0]


async def _of_server() -> Found:
    threads = get_client().threads

    async def read(thread: Mapping[str, Any]) -> Kept:
        values = state_of(thread.get("values"))
        waits_for = (await threads.get_state(str(thread["thread_id"])))["next"]
        return values, convert_to_messages(values.get("messages") or []), waits_for

    for key in ("memory", MEMORY_KEY):
        options: dict[str, Any] = {"values": {key: {HAS_UNWRITTEN: True}}, "limit": _PAGE}
        options |= {"sort_by": "created_at", "sort_order": "asc"}
        async for thread in all_pages(lambda offset: threads.search(offset=offset, **options), _PAGE):  # noqa: B023
            owner = state_of(thread.get("metadata")).get(OWNER_KEY)
            yield str(thread["thread_id"]), str(owner or ""), partial(read, thread)
