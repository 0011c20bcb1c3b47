"""One SQLite file as saver and store need it: durable, shared with other processes, read while it is written."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiosqlite

from graphs.persistence.write_ahead_log import WriteAheadLog

BUSY_SECONDS = 30.0
"""How long a statement waits for another process's transaction; theirs are a few milliseconds long."""

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",  # readers and the writer, of this process and of others, do not wait for each other
    "PRAGMA synchronous=FULL",  # in WAL mode, NORMAL would lose the last commits in a power cut
    "PRAGMA secure_delete=ON",  # a deleted conversation must not be readable in the file's free pages
)
_DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


@dataclass(frozen=True, slots=True)
class SqliteFile:
    """An open database file.

    SQLite refuses a writing transaction at once, however long the busy timeout is, on a connection that still reads,
    and one that began as a reader. So whoever reads has a connection of its own.

    Attributes:
        writer: Its transactions begin with the write lock; nobody iterates over rows on it.
        reader: Sees what was committed when it begins to read.
        log: The write-ahead log, to be marked when something was deleted.
    """

    writer: aiosqlite.Connection
    reader: aiosqlite.Connection
    log: WriteAheadLog


@asynccontextmanager
async def open_file(path: Path | str) -> AsyncIterator[SqliteFile]:
    """Open a database file in autocommit mode, creating it and its folder, each readable by its owner only.

    Raises:
        OSError: If the folder cannot be made.
        sqlite3.Error: If the file cannot be opened or is no database.
    """
    path = Path(path)
    await asyncio.to_thread(_create, path)
    async with WriteAheadLog(path) as log, _connect(path) as writer, _connect(path) as reader:
        yield SqliteFile(writer, reader, log)


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Say in an error of SQLite which file it is about, and what to do with a damaged one."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        is_damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
        advice = ": restore it from a backup, or move it away to begin with an empty one" if is_damaged else ""
        raise type(error)(f"{path}: {error}{advice}") from error


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


@asynccontextmanager
async def _connect(path: Path) -> AsyncIterator[aiosqlite.Connection]:
    async with aiosqlite.connect(path, timeout=BUSY_SECONDS, isolation_level=None) as connection:
        for pragma in _PRAGMAS:
            await _execute_patiently(connection, pragma)
        yield connection


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
