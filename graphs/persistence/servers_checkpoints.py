"""What a server's own checkpoints hold that its rows of threads do not say; `checkpoint_file.py` says it of a file.

A server with a database of its own deletes a thread's row before its checkpoints, and may be killed in between.
"""

import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from langgraph.checkpoint.base import BaseCheckpointSaver

from graphs.persistence.servers_own import running_checkpointer

logger = logging.getLogger(__name__)

_CLIENT: Final = ("psycopg", "langgraph.checkpoint.postgres")


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

    async def delete(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread."""
        await (await self.saver()).adelete_thread(thread_id)


def _say_what_is_not_found(why: str) -> None:
    logger.warning("checkpoints whose thread has no row any more are not looked for, nor erased: %s", why)
