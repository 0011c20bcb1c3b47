"""The LangGraph store on SQLite: atomic batches, safe between processes, one caller's bad value harms no other."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.sqlite.aio import AsyncSqliteStore

from graphs.persistence.connection import BUSY_SECONDS, SqliteFile, file_transaction, open_file
from graphs.persistence.durable_store import DurableStore
from memory.door import Batching, turns_of


class DurableSqliteStore(DurableStore, AsyncSqliteStore):
    """An `AsyncSqliteStore` without vectors whose batches hold or fail as a whole.

    A batch that writes begins with the write lock, so that processes on one file wait for each other instead of
    failing; a batch that fails is rolled back (the stock store commits its first half). Batches that only read wait
    for no writer. Vectors are left out: they need a Python that can load SQLite extensions. After each
    write the log is emptied soon: the words that a new value takes the place of stay there like deleted ones.
    """

    def __init__(self, file: SqliteFile) -> None:
        super().__init__(file.writer)
        self._file = file
        self._reader = _ReadConnection(file.reader)

    async def setup(self) -> None:
        """Create or migrate the tables in one transaction, so that neither a crash nor a second process meets half."""
        async with self.lock, file_transaction(self.conn):
            await self._migrate()
        await super().setup()
        await self._reader.setup()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out the operations in one transaction and return their results; reads see the state before the writes.

        Raises:
            TypeError: If a value is no JSON (sets, bytes, numbers beyond 64 bits, lone surrogates); nothing is stored.
            sqlite3.Error: If the file cannot be read or written; nothing is stored.
        """
        batch = list(ops)
        if not any(isinstance(op, PutOp) for op in batch):
            return await self._reader.abatch(batch)
        async with self.writing() as carry_out:
            return await carry_out(batch)

    @asynccontextmanager
    async def writing(self, *names: str) -> AsyncIterator[Batching]:
        """Begin a transaction with the write lock and yield what carries out batches in it; the end commits."""
        # SQLite serves waiting writers in no order, so one of this process waits there, and the others queue here: one
        # of each name, so that many writers of one user keep no other waiting.
        places = (f"{self._file.name} {name}" for name in (*names, ""))
        async with turns_of(places, BUSY_SECONDS), self.lock, file_transaction(self.conn):
            yield super().abatch
        self._file.has_deleted.set()

    @asynccontextmanager
    async def _cursor(self, *, transaction: bool = True) -> AsyncIterator[aiosqlite.Cursor]:  # noqa: ARG002 (inherited)
        # The stock cursor begins without the write lock and commits a failed batch; `abatch` has begun already.
        async with self.conn.cursor() as cursor:
            yield cursor

    async def _migrate(self) -> None:
        await self.conn.execute("CREATE TABLE IF NOT EXISTS store_migrations (v INTEGER PRIMARY KEY)")
        async with self.conn.execute("SELECT COALESCE(MAX(v), -1) FROM store_migrations") as cursor:
            row = await cursor.fetchone()
        done = int(row[0]) if row else -1
        for version, statement in list(enumerate(self.MIGRATIONS))[done + 1 :]:
            await self.conn.execute(statement)
            await self.conn.execute("INSERT INTO store_migrations (v) VALUES (?)", (version,))


class _ReadConnection(AsyncSqliteStore):
    """The same store on a connection that only reads."""

    @asynccontextmanager
    async def _cursor(self, *, transaction: bool = True) -> AsyncIterator[aiosqlite.Cursor]:  # noqa: ARG002 (inherited)
        # The stock cursor, cancelled while it begins, leaves its transaction open.
        async with self.lock, file_transaction(self.conn, writes=False), self.conn.cursor() as cursor:
            yield cursor


@asynccontextmanager
async def open_store(path: Path | str) -> AsyncIterator[DurableSqliteStore]:
    """Open the store in a SQLite file, creating the file and its folder; it is bound to the running event loop."""
    async with open_file(path) as file:
        store = DurableSqliteStore(file)
        await store.setup()
        yield store
