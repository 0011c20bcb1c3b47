"""Turns that ended before they were written down, and whose threads nobody goes on with: found in the checkpoints."""

import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from langchain_core.messages import AnyMessage, BaseMessage, convert_to_messages
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph_sdk import get_client

from graphs.chat import build_graph
from graphs.delayed_runs import OWNER_KEY
from graphs.persistence import CHECKPOINTS
from graphs.persistence.checkpoint_file import CheckpointFile
from graphs.server.threads import all_pages
from graphs.service import MemoryService
from memory.effects import tolerated
from memory.namespaces import Owner, user_segment
from memory.turn import TurnEpochs
from memory.unwritten import unwritten_of

logger = logging.getLogger(__name__)

MOST_THREADS = 1000
"""So many threads are looked at in one go; the next look sees more once these are written down."""
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
    messages: list[AnyMessage] | list[BaseMessage]
    memory: Mapping[str, object]


async def write_down_left(service: MemoryService, store: BaseStore) -> int:
    """Write down what the newest states of threads name as unwritten, each turn once, and return how many turns.

    It reads beside the server's run queue. What it cannot write now, the next look or the thread's next turn does.

    Raises:
        Exception: Whatever saver, server and store raise.
    """
    written, saver = 0, service.saver_of_server()
    async for left in _of_file(service, saver) if saver is not None else _of_server():
        epochs = TurnEpochs.from_state(left.memory)
        for turn in unwritten_of(left.memory.get("unwritten")):
            with tolerated(logger, "a turn of thread %s is not written down yet", left.thread_id):
                owner = vouched(turn.owner, left.user_id, single_user=service.settings.single_user)
                closing = owner and turn.closing(left.thread_id, owner, left.messages, epochs.learn_from)
                if closing and await service.aremember(store, closing, reader=left.user_id or None):
                    written += 1
    if written:
        logger.info("%d turns were written down that had not been in time", written)
    return written


def vouched(named: str, user_id: str, *, single_user: bool) -> Owner | None:
    """Return whose turn it is, if the server says the same as the state, which a client may have written."""
    owner = Owner.from_due_key(named)
    if user_id:
        return owner if owner.segment == user_segment(user_id) else None
    return owner if single_user else None


async def _of_file(service: MemoryService, saver: BaseCheckpointSaver[str]) -> AsyncIterator[Left]:
    # Read from the file, not through the server: after a crash it may lack a thread's row.
    file = CheckpointFile(service.settings.data_dir / CHECKPOINTS)
    graph = build_graph(service=service).compile(checkpointer=saver)
    for thread_id, user_id in await file.unwritten(MOST_THREADS):
        values = (await graph.aget_state({"configurable": {"thread_id": thread_id}})).values
        if isinstance(memory := values.get("memory"), Mapping):
            yield Left(thread_id, user_id, values.get("messages", []), memory)


async def _of_server() -> AsyncIterator[Left]:
    found = all_pages(
        lambda offset: get_client().threads.search(
            values={"memory": {"has_unwritten": True}},
            limit=_PAGE,
            offset=offset,
            sort_by="created_at",
            sort_order="asc",
        ),
        _PAGE,
    )
    seen = 0
    async for thread in found:
        values, metadata = thread.get("values"), thread.get("metadata") or {}
        memory = values.get("memory") if isinstance(values, Mapping) else None
        if isinstance(values, Mapping) and isinstance(memory, Mapping):
            messages = convert_to_messages(values.get("messages") or [])
            yield Left(str(thread["thread_id"]), str(metadata.get(OWNER_KEY) or ""), messages, memory)
        seen += 1
        if seen >= MOST_THREADS:
            return
