"""SQLite persistence: what the server loads by `langgraph.json`, and what a program in process opens.

What survives: a commit has returned only after the file system was told to write it down (WAL with
`synchronous=FULL`), so neither `kill -9` nor a power cut takes away a finished superstep or store write; an
unfinished one is rolled back when the file is opened next. Several processes may use the same two files.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from graphs.persistence.sqlite_saver import DurableSqliteSaver, open_checkpointer
from graphs.persistence.sqlite_store import DurableSqliteStore, open_store
from graphs.settings import Settings

__all__ = [
    "DurableSqliteSaver",
    "DurableSqliteStore",
    "checkpointer",
    "open_checkpointer",
    "open_store",
    "store",
]


@asynccontextmanager
async def checkpointer() -> AsyncIterator[DurableSqliteSaver]:
    """Open the deployment's checkpoints; `checkpointer.path` in `langgraph.json` names this function."""
    async with open_checkpointer(Settings.from_environment().data_dir / "checkpoints.sqlite") as saver:
        yield saver


@asynccontextmanager
async def store() -> AsyncIterator[DurableSqliteStore]:
    """Open the deployment's store; `store.path` in `langgraph.json` names this function."""
    async with open_store(Settings.from_environment().data_dir / "store.sqlite") as shelf:
        yield shelf
