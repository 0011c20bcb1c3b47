"""One SQLite file as saver and store need it: durable, shared with other processes, without deleted text."""

import asyncio
import logging
import math
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import aiosqlite

from graphs.process.address import close_to_others
from graphs.process.failures import FileUnusable, cause_of
from memory.door import tolerated

logger = logging.getLogger(__name__)

SOON_SECONDS = 1.0
"""How long after a deletion the log is emptied: what is deleted in the meantime is paid for together."""

_BUSY_SECONDS = 0.2
_AGAIN_SECONDS = 5.0


@asynccontextmanager
async def emptying(path: Path) -> AsyncIterator[asyncio.Event]:
    """While the block runs, empty a file's log after deletions: set the event that is yielded after each of them.

    The log is emptied within seconds, or as soon as nobody reads from it, at the latest when the last process closes
    the file. The log of a killed process is emptied when the file is opened next.
    """
    has_deleted, is_free, log = asyncio.Event(), asyncio.Lock(), path.with_name(f"{path.name}-wal")
    if await asyncio.to_thread(lambda: log.exists() and log.stat().st_size > 0):
        has_deleted.set()
    again = asyncio.create_task(_empty_again_and_again(path, has_deleted, is_free))
    try:
        yield has_deleted
    finally:
        try:
            await is_free.acquire()  # a thread that was left behind would have the file open when this has ended
        finally:
            again.cancel()
        await asyncio.wait({again})
        if has_deleted.is_set():
            with tolerated(logger, "the log of %s could not be emptied", path.name):
                if not await asyncio.to_thread(_empty, path):
                    logger.warning("the log of %s is not emptied yet: another process reads the file", path.name)


async def _empty_again_and_again(path: Path, has_deleted: asyncio.Event, is_free: asyncio.Lock) -> None:
    pause = SOON_SECONDS
    while await has_deleted.wait():
        await asyncio.sleep(pause)
        has_deleted.clear()  # what is deleted from here on has its own turn
        is_emptied = False
        try:
            async with is_free:
                with tolerated(logger, "the log of %s could not be emptied", path.name):
                    is_emptied = await asyncio.to_thread(_empty, path)
        finally:
            if not is_emptied:
                has_deleted.set()
        pause = SOON_SECONDS if is_emptied else _AGAIN_SECONDS  # somebody may read it: a long export does, for minutes


def _empty(path: Path) -> bool:
    """Empty the log of a file, and say whether that was possible."""
    if not path.exists():
        return True
    there = f"{path.absolute().as_uri()}?mode=rw"  # a file that went meanwhile is not made again
    with closing(sqlite3.connect(there, timeout=_BUSY_SECONDS, uri=True)) as connection:
        try:
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            return False
    return not busy


BUSY_SECONDS = 15.0
"""How long a statement waits for another process's transaction; ours are a few milliseconds long."""

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",  # readers and the writer, of this process and of others, do not wait for each other
    "PRAGMA synchronous=FULL",  # in WAL mode, NORMAL would lose the last commits in a power cut
    "PRAGMA secure_delete=ON",  # a deleted conversation must not be readable in the file's free pages
)


@dataclass(frozen=True, slots=True)
class SqliteFile:
    """An open database file.

    Whatever its busy timeout, SQLite refuses at once to begin writing on a connection that still reads, or in a
    transaction that began as a reader. So readers have a connection of their own.

    Attributes:
        writer: Its transactions begin with the write lock; nobody iterates over rows on it.
        reader: Sees what was committed when it begins to read.
        has_deleted: To be set when something was deleted, or written over: the log is emptied soon.
        name: The file's name, the same for all connections of this process, by which they share a lock.
    """

    writer: aiosqlite.Connection
    reader: aiosqlite.Connection
    has_deleted: asyncio.Event
    name: str


@asynccontextmanager
async def open_file(path: Path | str) -> AsyncIterator[SqliteFile]:
    """Open a database file in autocommit mode, creating it and its folder, each readable by its owner only.

    What is opened as `:memory:` is gone when it is closed.

    Raises:
        OSError: If the folder cannot be made.
        sqlite3.Error: If the file cannot be opened or is no database.
    """
    if str(path) == ":memory:":  # SQLite's own kind is one connection's
        with TemporaryDirectory() as folder:
            async with open_file(Path(folder, "memory")) as file:
                yield file
        return
    path = Path(path)
    await asyncio.to_thread(_create, path)
    async with emptying(path) as has_deleted, _connect(path) as writer, _connect(path) as reader:
        yield SqliteFile(writer, reader, has_deleted, str(await asyncio.to_thread(path.resolve)))


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Say in an error of SQLite which file it is about, and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        why = cause_of(error)
        raise (FileUnusable if why else type(error))(f"{path}: {why or error}") from error


@asynccontextmanager
async def file_transaction(connection: aiosqlite.Connection, *, writes: bool = True) -> AsyncIterator[None]:
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


class _Connection(aiosqlite.Connection):
    """A connection that waits for who has locked its file, and says in errors which file that is, and what to do.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(partial(sqlite3.connect, path, timeout=_BUSY_SECONDS, isolation_level=None), 64)
        self._path, self._gave_up = path, -math.inf

    async def _connect(self) -> Self:
        with naming(self._path):
            await super()._connect()
        return self

    async def _execute(self, fn: Any, *args: Any, **options: Any) -> Any:
        clock = asyncio.get_running_loop().time
        begun = clock()
        while True:
            try:
                with naming(self._path):
                    return await super()._execute(fn, *args, **options)  # type: ignore[no-untyped-call]
            except FileUnusable as error:
                # SQLite's own wait is short: it fails some statements at once, and a turn saves more than once, of
                # which the first alone may wait in vain.
                if getattr(error.__cause__, "sqlite_errorcode", 0) != sqlite3.SQLITE_BUSY:
                    raise
                if begun - self._gave_up < BUSY_SECONDS:
                    raise
                if clock() - begun > BUSY_SECONDS:
                    self._gave_up = clock()
                    raise
            await asyncio.sleep(0.02)


@asynccontextmanager
async def _connect(path: Path) -> AsyncIterator[aiosqlite.Connection]:
    async with _Connection(path) as connection:
        for pragma in _PRAGMAS:
            await connection.execute(pragma)
        yield connection


def _create(path: Path) -> None:
    """Have a file that only its owner reads, wherever it lies; SQLite gives a new log the same mode."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        path.touch(mode=0o600)
    close_to_others(path.parent.glob(f"{path.name}*"))
