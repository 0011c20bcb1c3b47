"""Persistence: what the server loads by `langgraph.json`, and what a program in process opens.

Which one: the Postgres of `DATABASE_URI`, else two SQLite files. A server that keeps checkpoints itself goes on with
its own; memory is kept in our store there too.

What survives of SQLite: a commit has returned only after the file system was told to write it down (WAL with
`synchronous=FULL`), so neither `kill -9` nor a power cut takes away a finished superstep or store write; an
unfinished one is rolled back when the file is opened next. Several processes may use the same two files.
"""

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from graphs.process.data_folder import CHECKPOINTS, FILES, STORE
from graphs.settings import Settings

if TYPE_CHECKING:
    from graphs.persistence.durable_saver import Checkpoints

logger = logging.getLogger(__name__)

_OVERWRITING_SECONDS = 20.0  # how long an erasure waits for the overwriting of moved rows: 5 GB take so long
_POSTGRES = ("psycopg", "psycopg_pool", "langgraph.store.postgres")
# What opens files and databases is imported then: LangGraph's store brings numpy along, for which no start waits.


async def checkpointed_threads(settings: Settings, user_ids: Collection[str]) -> list[str]:
    """Return the ids of the threads in which these users have saved, and no other; no user is the empty id.

    If a server keeps the checkpoints itself, its database is read, as its API tells nothing of threads without a row.
    If that cannot be read, or has other tables than LangGraph's, no thread is found, and the log says what that means.
    """
    uri = settings.database_uri
    if not settings.keeps_its_own:
        return await own_checkpoints_of(settings).threads_of(user_ids)
    if not uri or not all(map(find_spec, (*_POSTGRES, "langgraph.checkpoint.postgres"))):
        why = "it takes DATABASE_URI, and palimpsest-memory[postgres] beside the server"
    else:
        from psycopg import Error

        try:
            return await own_checkpoints_of(settings).threads_of(user_ids)
        except Error as error:
            why = f"the server's database cannot be read ({type(error).__name__})"
    logger.warning("checkpoints whose thread has no row any more are not looked for, nor erased: %s", why)
    return []


def own_checkpoints_of(settings: Settings) -> "Checkpoints":
    """Return what knows the checkpoints that a deployment keeps itself, beside the saver that writes them."""
    if settings.database_uri:
        check_postgres()
        from graphs.persistence.postgres_saver import checkpoints_at

        return checkpoints_at(settings.database_uri)
    from graphs.persistence.sqlite_saver import checkpoints_in

    return checkpoints_in(settings.data_dir / CHECKPOINTS)


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open the deployment's checkpoints; `checkpointer.path` in `langgraph.json` names this function."""
    from graphs.process.deployment import service_of_process  # with the graph's tools, which a command does not need
    from graphs.server.workarounds.named_checkpointer import checkpointer_of_server
    from graphs.server.workarounds.wrong_row import delete_one_at_a_time

    service = service_of_process()
    settings = service.settings
    if settings.keeps_its_own:
        yield await checkpointer_of_server()
        return
    delete_one_at_a_time()
    opened: AbstractAsyncContextManager[BaseCheckpointSaver[str]]
    if settings.database_uri:
        check_postgres()
        from graphs.persistence.postgres_saver import open_postgres_checkpointer

        opened = open_postgres_checkpointer(settings.database_uri)
    else:
        from graphs.persistence.sqlite_saver import open_checkpointer

        opened = open_checkpointer(settings.data_dir / CHECKPOINTS)
    async with opened as saver:
        service.bind(saver)
        yield saver


def store() -> AbstractAsyncContextManager[BaseStore]:
    """Open the deployment's store; `store.path` in `langgraph.json` names this function."""
    from graphs.process.deployment import service_of_process  # as above

    settings = service_of_process().settings
    if settings.database_uri:
        check_postgres()
        from graphs.persistence.postgres_store import open_postgres_store

        return open_postgres_store(settings.database_uri)
    if settings.keeps_its_own:  # by several processes, perhaps on several machines: no file would be theirs all
        raise ValueError("DATABASE_URI must name a Postgres (postgresql://…): this server keeps memory there")
    from graphs.persistence.sqlite_store import open_store

    return open_store(settings.data_dir / STORE)


def check_postgres() -> None:
    """Raise `ValueError` where a package that a Postgres needs is not installed."""
    missing = [name for name in _POSTGRES if find_spec(name) is None]
    if missing:
        raise ValueError(
            f"DATABASE_URI needs packages that are not installed ({', '.join(missing)}): "
            "pip install 'palimpsest-memory[postgres]'"
        )


async def leave_no_bytes(data_dir: Path) -> None:
    """Start a process that empties the logs, and overwrites what moved rows left in pages: both hold deleted text.

    Past the deadline, or while somebody reads from a log, it goes on by itself.
    """

    def overwrite() -> None:
        if not (files := [path for name in FILES if (path := data_dir / name).exists()]):
            return
        program = Path(__file__).with_name("moved_rows.py")
        process = subprocess.Popen([sys.executable, "-I", "-S", program, *files], stderr=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            if process.wait(_OVERWRITING_SECONDS):
                logger.error("deleted words may still be in files of %s: erase once more", data_dir)

    await asyncio.to_thread(overwrite)
