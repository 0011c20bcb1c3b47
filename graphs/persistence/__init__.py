"""SQLite persistence: what the server loads by `langgraph.json`, and what a program in process opens.

What survives: a commit has returned only after the file system was told to write it down (WAL with
`synchronous=FULL`), so neither `kill -9` nor a power cut takes away a finished superstep or store write; an
unfinished one is rolled back when the file is opened next. Several processes may use the same two files.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from graphs.deployment import service_of_process
from graphs.persistence.cipher import Cipher, WrongKey
from graphs.persistence.connection import empty_log
from graphs.persistence.sqlite_saver import DurableSqliteSaver, open_checkpointer
from graphs.persistence.sqlite_store import DurableSqliteStore, open_store
from graphs.settings import Settings

__all__ = [
    "Cipher",
    "DurableSqliteSaver",
    "DurableSqliteStore",
    "WrongKey",
    "checkpointer",
    "cipher_of",
    "cipher_of_server",
    "empty_logs",
    "open_checkpointer",
    "open_store",
    "store",
]


logger = logging.getLogger(__name__)

CHECKPOINTS, STORE = FILES = ("checkpoints.sqlite", "store.sqlite")


def cipher_of(settings: Settings) -> Cipher | None:
    """Return what encrypts the files of a deployment; `None` where nothing does."""
    return Cipher(settings.encryption_key) if settings.encryption_key else None


def cipher_of_server(settings: Settings) -> Cipher | None:
    """Return the same for a server; `ValueError` if it writes conversations elsewhere, where nothing encrypts them."""
    if settings.encryption_key and settings.writes_threads:
        raise ValueError(
            "LANGGRAPH_AES_KEY is set, but `langgraph dev` writes every thread with its messages into .langgraph_api, "
            "which nothing encrypts: unset the key, and encrypt the disk, or serve from a platform with its own store"
        )
    return cipher_of(settings)


@asynccontextmanager
async def checkpointer() -> AsyncIterator[DurableSqliteSaver]:
    """Open the deployment's checkpoints; `checkpointer.path` in `langgraph.json` names this function."""
    service = service_of_process()
    cipher = cipher_of_server(service.settings)
    async with open_checkpointer(service.settings.data_dir / CHECKPOINTS, cipher) as saver:
        service.bind(saver)
        yield saver


@asynccontextmanager
async def store() -> AsyncIterator[DurableSqliteStore]:
    """Open the deployment's store; `store.path` in `langgraph.json` names this function."""
    service = service_of_process()
    async with open_store(service.settings.data_dir / STORE, cipher_of_server(service.settings)) as opened:
        service.bind(opened)
        yield opened


async def empty_logs(data_dir: Path) -> None:
    """Write the write-ahead logs back into their files and empty them: they hold deleted text until then.

    Where there are no such files, nothing happens. A log that others read for seconds is left to the process that
    wrote in it, which goes on trying.
    """
    emptied = await asyncio.gather(*(empty_log(data_dir / name) for name in FILES))
    for name in (name for name, done in zip(FILES, emptied, strict=True) if not done):
        logger.warning("the log of %s is not emptied yet: it is being read", name)
