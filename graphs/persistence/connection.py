"""One SQLite connection as saver and store need it: durable, and shared with other processes."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite

BUSY_SECONDS = 30.0
"""How long a statement waits for another process's transaction; theirs are a few milliseconds long."""

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",  # readers and the writer of other processes do not wait for each other
    "PRAGMA synchronous=FULL",  # in WAL mode, NORMAL would lose the last commits in a power cut
    "PRAGMA secure_delete=ON",  # a deleted conversation must not be readable in the file's free pages
)


@asynccontextmanager
async def connect(path: Path | str) -> AsyncIterator[aiosqlite.Connection]:
    """Open a database file in autocommit mode, creating it and its folder, each readable by its owner only.

    Raises:
        OSError: If the folder cannot be made.
        sqlite3.Error: If the file cannot be opened or is no database.
    """
    path = Path(path)
    await asyncio.to_thread(_create, path)
    async with aiosqlite.connect(path, timeout=BUSY_SECONDS, isolation_level=None) as connection:
        for pragma in _PRAGMAS:
            await _execute_patiently(connection, pragma)
        yield connection


@asynccontextmanager
async def transaction(connection: aiosqlite.Connection, *, writes: bool = True) -> AsyncIterator[None]:
    """Make everything inside one transaction: committed as a whole, or rolled back when an error leaves it.

    A writing transaction takes the write lock at once: one that began as a reader and is overtaken by another
    process's commit fails immediately, however long the busy timeout is.
    """
    try:
        await connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        yield
        await connection.commit()
    except BaseException:  # a cancelled run, too, must not leave a transaction open; without one this does nothing
        await connection.rollback()
        raise


def _create(path: Path) -> None:
    """Create a file that only its owner reads, wherever it lies; SQLite gives its log the same mode."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        path.touch(mode=0o600)


async def _execute_patiently(connection: aiosqlite.Connection, statement: str) -> None:
    """Execute a statement that SQLite fails at once instead of waiting, as changing the journal mode can."""
    deadline = asyncio.get_running_loop().time() + BUSY_SECONDS
    while True:
        try:
            await connection.execute(statement)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(0.02)
        else:
            return
