"""What two SQLite files hold, carried over into a Postgres: items of the store, checkpoints of threads, all counted.

It may be stopped at any time, and goes on where it was: an item that is there stays, and a thread that is not there as
a whole is written again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import aiosqlite
from langchain_core.runnables import RunnableConfig
from psycopg import AsyncConnection

from graphs.persistence.postgres_saver import DurablePostgresSaver, open_postgres_checkpointer
from graphs.persistence.postgres_store import DurablePostgresStore, open_postgres_store
from graphs.persistence.sqlite_saver import DurableSqliteSaver, open_checkpointer
from graphs.persistence.sqlite_store import DurableSqliteStore, open_store

_BATCH: Final = 500
_OURS: Final = "palimpsest%"

_BEGUN: Final = """
    CREATE TABLE IF NOT EXISTS palimpsest_migrations (
        source TEXT PRIMARY KEY, begun TIMESTAMPTZ NOT NULL DEFAULT now(), done TIMESTAMPTZ)"""
_IS_BEGUN: Final = "SELECT done FROM palimpsest_migrations WHERE source = %s"
_MEMORY: Final = "SELECT 1 FROM store WHERE prefix LIKE %s LIMIT 1"
_BEGIN: Final = "INSERT INTO palimpsest_migrations (source) VALUES (%s)"
_END: Final = "UPDATE palimpsest_migrations SET done = now() WHERE source = %s"
_ITEMS: Final = "SELECT prefix, key, CAST(value AS TEXT), created_at, updated_at, expires_at, ttl_minutes FROM store"
_PUT: Final = """
    INSERT INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)
    VALUES (%s, %s, %s::jsonb, %s::timestamptz, %s::timestamptz, %s::timestamptz, %s)
    ON CONFLICT (prefix, key) DO NOTHING"""
_WRITES: Final = """
    SELECT thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value
    FROM writes WHERE thread_id = ?"""
_WRITE: Final = """
    INSERT INTO checkpoint_writes
        (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO NOTHING"""
_OF_THREADS: Final = """
    SELECT thread_id, SUM(checkpoints) AS checkpoints, SUM(writes) AS writes FROM (
        SELECT thread_id, COUNT(*) AS checkpoints, 0 AS writes FROM checkpoints GROUP BY thread_id
        UNION ALL SELECT thread_id, 0, COUNT(*) FROM {writes} GROUP BY thread_id) AS counted GROUP BY thread_id"""
_KINDS: Final = """
    SELECT COUNT(*) AS items,
        SUM(CASE WHEN prefix LIKE 'palimpsest.%%.facts' THEN 1 ELSE 0 END) AS facts,
        SUM(CASE WHEN prefix LIKE 'palimpsest.%%.journal' THEN 1 ELSE 0 END) AS journal FROM store"""


class NotEmpty(ValueError):
    """The database holds memory that did not come from these files."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What there is on one side.

    Attributes:
        facts: Facts of all users and agents.
        journal: Lines of journals.
        items: All items of the store, those two among them.
        threads: Threads with checkpoints.
        checkpoints: Checkpoints of all threads.
        writes: What tasks wrote between checkpoints.
    """

    facts: int
    journal: int
    items: int
    threads: int
    checkpoints: int
    writes: int

    def missing_from(self, other: "Counts") -> list[str]:
        """Return the kinds of which the other side has fewer."""
        theirs = asdict(other)
        return [kind for kind, number in asdict(self).items() if theirs[kind] < number]


@dataclass(frozen=True, slots=True)
class Migration:
    """Two files and the database that takes what they hold.

    Attributes:
        source: What the files are called in the database, so that a second start knows them again.
        saver: The file of checkpoints.
        store: The file of memory.
        to_saver: The database's checkpoints.
        to_store: The database's memory.
    """

    source: str
    saver: DurableSqliteSaver
    store: DurableSqliteStore
    to_saver: DurablePostgresSaver
    to_store: DurablePostgresStore

    async def counts_before(self) -> Counts:
        """Count what the files hold."""
        threads = await self._threads()
        (kinds,) = await _rows(self.store.conn, _KINDS.replace("%%", "%"))
        return _counts(kinds, threads)

    async def counts_after(self) -> Counts:
        """Count what the database holds."""
        threads = await self._threads_there()
        async with self.to_store.pool.connection() as connection:
            kinds = await (await connection.execute(_KINDS, ())).fetchone()
        return _counts(kinds or {}, threads)

    async def begin(self) -> bool:
        """Note in the database that this migration has begun, and return whether it was done before.

        Raises:
            NotEmpty: If the database has memory already, which did not come from these files.
        """
        async with self.to_store.pool.connection() as connection:
            await connection.execute(_BEGUN)
            begun = await (await connection.execute(_IS_BEGUN, (self.source,))).fetchone()
            if begun:
                return begun["done"] is not None
            if await (await connection.execute(_MEMORY, (_OURS,))).fetchone():
                raise NotEmpty("the database holds memory already, which is not of these files: name an empty one")
            await connection.execute(_BEGIN, (self.source,))
            return False

    async def carry(self, told: Callable[[str, int, int], None]) -> None:
        """Carry over all that is not there yet.

        Args:
            told: Called with what is carried over, how much of it is done, and how much there is.
        """
        await self._carry_items(told)
        await self._carry_threads(told)
        async with self.to_store.pool.connection() as connection:
            await connection.execute(_END, (self.source,))

    async def _carry_items(self, told: Callable[[str, int, int], None]) -> None:
        (number,) = await _rows(self.store.conn, "SELECT COUNT(*) AS items FROM store")
        done = 0
        async for batch in _batches(self.store.conn, _ITEMS):
            async with self.to_store.pool.connection() as connection, connection.transaction():
                await connection.execute("SET LOCAL TimeZone = 'UTC'")  # of SQLite's times, which name none
                async with connection.cursor() as cursor:
                    await cursor.executemany(_PUT, [tuple(row) for row in batch])
            done += len(batch)
            told("items of memory", done, int(number["items"]))

    async def _carry_threads(self, told: Callable[[str, int, int], None]) -> None:
        wanted, there = await self._threads(), await self._threads_there()
        for done, (thread_id, counted) in enumerate(sorted(wanted.items()), 1):
            if there.get(thread_id) != counted:
                await self._carry_thread(thread_id)
            told("threads", done, len(wanted))

    async def _carry_thread(self, thread_id: str) -> None:
        found = [each async for each in self.saver.alist({"configurable": {"thread_id": thread_id}})]
        for each in reversed(found):  # the oldest first
            here = each.config["configurable"]
            parent = (each.parent_config or {}).get("configurable", {})
            config: RunnableConfig = {
                "configurable": {
                    "thread_id": thread_id,
                    "checkpoint_ns": here.get("checkpoint_ns", ""),
                    "checkpoint_id": parent.get("checkpoint_id"),
                }
            }
            # All versions: what is there under one of them already is the same value.
            await self.to_saver.aput(config, each.checkpoint, each.metadata, each.checkpoint["channel_versions"])
        # As they are, not through the saver: their order within a step would be another.
        writes = [tuple(row) for row in await _rows(self.saver.conn, _WRITES, thread_id)]
        pool = self.to_store.pool
        async with pool.connection() as connection, connection.transaction(), connection.cursor() as cursor:
            await cursor.executemany(_WRITE, writes)

    async def _threads(self) -> dict[str, tuple[int, int]]:
        return _by_thread(await _rows(self.saver.conn, _OF_THREADS.format(writes="writes")))

    async def _threads_there(self) -> dict[str, tuple[int, int]]:
        async with self.to_store.pool.connection() as connection:
            return _by_thread(await _all(connection, _OF_THREADS.format(writes="checkpoint_writes")))


def _counts(kinds: Any, threads: dict[str, tuple[int, int]]) -> Counts:
    facts, journal, items = (int(kinds[name] or 0) for name in ("facts", "journal", "items"))
    checkpoints, writes = (sum(counted[at] for counted in threads.values()) for at in (0, 1))
    return Counts(facts, journal, items, len(threads), checkpoints, writes)


def _by_thread(rows: Any) -> dict[str, tuple[int, int]]:
    return {str(row["thread_id"]): (int(row["checkpoints"]), int(row["writes"])) for row in rows}


async def _all(connection: AsyncConnection[Any], query: str) -> list[Any]:
    return await (await connection.execute(query)).fetchall()


async def _rows(connection: aiosqlite.Connection, query: str, *parameters: str) -> list[Any]:
    async with connection.cursor() as cursor:
        cursor.row_factory = aiosqlite.Row
        await cursor.execute(query, parameters)
        return list(await cursor.fetchall())


async def _batches(connection: aiosqlite.Connection, query: str) -> AsyncIterator[list[Any]]:
    async with connection.execute(query) as cursor:
        while batch := list(await cursor.fetchmany(_BATCH)):
            yield batch


@asynccontextmanager
async def open_migration(checkpoints: Path, store: Path, uri: str) -> AsyncIterator[Migration]:
    """Open both sides, making the database's tables where they are missing.

    Args:
        checkpoints: The file of checkpoints.
        store: The file of memory.
        uri: The database.

    Raises:
        DatabaseAway: If it cannot be used.
        WrongKey: If the files are encrypted.
    """
    async with AsyncExitStack() as stack:
        yield Migration(
            source=str(await asyncio.to_thread(store.absolute)),
            saver=await stack.enter_async_context(open_checkpointer(checkpoints)),
            store=await stack.enter_async_context(open_store(store)),
            to_saver=await stack.enter_async_context(open_postgres_checkpointer(uri, 2)),
            to_store=await stack.enter_async_context(open_postgres_store(uri, 2)),
        )
