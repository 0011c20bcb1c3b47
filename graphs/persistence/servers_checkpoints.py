"""What a server's own checkpoints hold that its rows of threads do not say; `checkpoint_file.py` says it of a file.

A server with a database of its own deletes a thread's row before its checkpoints, and may be killed in between.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from graphs.persistence.servers_own import running_checkpointer

logger = logging.getLogger(__name__)

_PAGE: Final = 50
"""A checkpoint may hold a whole conversation: so many are in memory at once."""
_CLIENT: Final = ("psycopg", "langgraph.checkpoint.postgres")
_SERDE: Final = JsonPlusSerializer()


@dataclass(frozen=True, slots=True)
class ServersCheckpoints:
    """The checkpoints of the server that this process is.

    What they hold is read through the server, which may encrypt them. Whose they are, where no row says it, is read
    from its database: no server can be asked for that.

    Attributes:
        uri: The server's Postgres; empty where it has none that is known here.
        saver: Returns the server's own checkpointer.
    """

    uri: str
    saver: Callable[[], Awaitable[BaseCheckpointSaver[Any]]] = running_checkpointer

    async def threads_of(self, user_ids: Collection[str]) -> list[str]:
        """Return the ids of the threads in which nobody but these users has saved; no user is the empty id.

        Where the database cannot be read, or its tables are others than LangGraph's, there are none, and the log says
        what is not found for it.
        """
        missing = [name for name in _CLIENT if not self.uri or find_spec(name) is None]
        if missing:
            _say_what_is_not_found("it takes DATABASE_URI, and palimpsest-memory[postgres] beside the server")
            return []
        from psycopg import Error

        from graphs.persistence.checkpoint_tables import CheckpointTables

        try:
            return await CheckpointTables(self.uri).threads_of(user_ids)
        except Error as error:
            _say_what_is_not_found(f"the server's database cannot be read ({type(error).__name__})")
            return []

    async def holding(self, thread_ids: Collection[str], is_held: Callable[[str, str], bool]) -> list[str]:
        """Return those of the threads of which one state, however old, holds a text.

        Args:
            thread_ids: The threads to look into.
            is_held: Says of a thread's id and a text whether it is that text.
        """
        saver, found = await self.saver(), []
        for thread_id in thread_ids:
            before = None
            while page := [
                state
                async for state in saver.alist({"configurable": {"thread_id": thread_id}}, before=before, limit=_PAGE)
            ]:
                # In a thread of its own: long conversations take long enough to keep others waiting.
                if await asyncio.to_thread(_is_in, page, thread_id, is_held):
                    found.append(thread_id)
                    break
                before = page[-1].config
        return found

    async def delete(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread."""
        await (await self.saver()).adelete_thread(thread_id)


def _is_in(page: list[CheckpointTuple], thread_id: str, is_held: Callable[[str, str], bool]) -> bool:
    return any(is_held(thread_id, text) for state in page for text in _texts(state))


def _texts(state: CheckpointTuple) -> Iterator[str]:
    """Yield what a checkpoint holds as text, value by value: MessagePack keeps strings as they are."""
    written = (value for _, _, value in state.pending_writes or ())
    for value in (state.metadata, *state.checkpoint["channel_values"].values(), *written):
        yield _SERDE.dumps_typed(value)[1].decode("utf-8", "ignore")


def _say_what_is_not_found(why: str) -> None:
    logger.warning("checkpoints whose thread has no row any more are not looked for, nor erased: %s", why)
