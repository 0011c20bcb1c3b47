"""The LangGraph checkpointer on Postgres, with everything the server may ask of one.

Beside it, what the tables know that the server may not; `sqlite_saver.py` says the same of a file.
"""

import copy
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import DictRow, dict_row, tuple_row

from graphs.persistence.durable_saver import (
    CHECKPOINTED_TYPES,
    EARLY_SECONDS,
    GOING,
    KEPT_SECONDS,
    DurableSaver,
    ancestors,
    before_next,
    may_be_first,
    thread_named,
    user_named,
)
from graphs.persistence.postgres import CONNECT_SECONDS, Connection, Pool, migrated, open_pool, pool_transaction
from memory.text import check_encodable

_DEAD = """
    CREATE TABLE IF NOT EXISTS palimpsest_dead_checkpoints (
        thread_id TEXT NOT NULL, checkpoint_id TEXT NOT NULL, at TIMESTAMPTZ NOT NULL DEFAULT now(),
        PRIMARY KEY (thread_id, checkpoint_id))"""
# A task's writes may be saved before the first checkpoint of their thread, which a kill then prevents. Whose they are
# is noted until it is there, so that erasing finds them; what has none after a while, nobody can ever go on with.
_EARLY = """
    CREATE TABLE IF NOT EXISTS palimpsest_early_writes (
        thread_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, at TIMESTAMPTZ NOT NULL DEFAULT now())"""
_NOTE_EARLY = """
    INSERT INTO palimpsest_early_writes (thread_id, user_id) SELECT %(thread)s, %(user)s
    WHERE NOT EXISTS (SELECT 1 FROM checkpoints WHERE thread_id = %(thread)s) ON CONFLICT DO NOTHING"""
_NO_LONGER_EARLY = "DELETE FROM palimpsest_early_writes WHERE thread_id = %s"
_DROP_ORPHANS = f"""
    WITH orphans AS (DELETE FROM palimpsest_early_writes WHERE at < now() - interval '{EARLY_SECONDS} seconds'
        AND NOT EXISTS (SELECT 1 FROM checkpoints AS c WHERE c.thread_id = palimpsest_early_writes.thread_id)
        RETURNING thread_id)
    DELETE FROM checkpoint_writes USING orphans WHERE checkpoint_writes.thread_id = orphans.thread_id"""
USER_OF_CHECKPOINT = "COALESCE(metadata ->> 'langgraph_auth_user_id', '')"
"""Whose checkpoint it is, as the server wrote it into the metadata; empty where nobody logs in."""
_INDEXES = (
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS palimpsest_checkpoints_by_run ON checkpoints ((metadata ->> 'run_id'))",
    f"CREATE INDEX CONCURRENTLY IF NOT EXISTS palimpsest_checkpoints_by_user ON checkpoints (({USER_OF_CHECKPOINT}))",
)

# Whoever saves in a thread shares its lock, whoever deletes from it has it alone: so a deletion sees all that was
# saved before it, and what is saved later sees the deletion. It ends with its transaction.
_LOCK_CLASS = 0x50414C  # "PAL"
_SHARE = f"SELECT pg_advisory_xact_lock_shared({_LOCK_CLASS}, hashtext(%s))"
_OWN = f"SELECT pg_advisory_xact_lock({_LOCK_CLASS}, hashtext(%s))"

_BURY = """
    INSERT INTO palimpsest_dead_checkpoints (thread_id, checkpoint_id) VALUES (%s, %s)
    ON CONFLICT (thread_id, checkpoint_id) DO UPDATE SET at = now()"""
_BURY_THREAD = """
    INSERT INTO palimpsest_dead_checkpoints (thread_id, checkpoint_id)
    SELECT DISTINCT thread_id, checkpoint_id FROM checkpoints WHERE thread_id = %s
    ON CONFLICT (thread_id, checkpoint_id) DO UPDATE SET at = now()"""
_FORGET = f"DELETE FROM palimpsest_dead_checkpoints WHERE at < now() - interval '{KEPT_SECONDS} seconds'"
_IS_DEAD = "SELECT 1 FROM palimpsest_dead_checkpoints WHERE thread_id = %s AND checkpoint_id = ANY(%s) LIMIT 1"

_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "palimpsest_early_writes")
# A copy belongs to no run: rolling the original's run back must not take rows out of the copy.
_COPY = (
    """
    INSERT INTO checkpoints
        (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
    SELECT %(target)s, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,
        (metadata - 'run_id') || CASE WHEN metadata ? 'thread_id'
            THEN jsonb_build_object('thread_id', %(target)s::text) ELSE '{}'::jsonb END
    FROM checkpoints WHERE thread_id = %(source)s ON CONFLICT DO NOTHING""",
    """
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    SELECT %(target)s, checkpoint_ns, channel, version, type, blob
    FROM checkpoint_blobs WHERE thread_id = %(source)s ON CONFLICT DO NOTHING""",
    """
    INSERT INTO checkpoint_writes
        (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
    SELECT %(target)s, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
    FROM checkpoint_writes WHERE thread_id = %(source)s ON CONFLICT DO NOTHING""",
)
_THREADS_OF_RUNS = "SELECT DISTINCT thread_id FROM checkpoints WHERE metadata ->> 'run_id' = ANY(%s)"


class DurablePostgresSaver(DurableSaver, AsyncPostgresSaver):
    """An `AsyncPostgresSaver` that can also roll a run back and copy a thread, also one of delta channels.

    It promises what `DurableSqliteSaver` does: every write is one transaction, what is read back is limited to known
    types, and a run that is going on in a thread that somebody deletes, in this process or another, saves nothing.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool, serde=JsonPlusSerializer(allowed_msgpack_modules=CHECKPOINTED_TYPES))
        self._pool = pool

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        # The stock saver lets one caller at a time use all of a pool.
        if isinstance(self.conn, AsyncConnection):  # in a transaction of ours
            async with self.conn.cursor(binary=True, row_factory=dict_row) as cursor:
                yield cursor
            return
        async with self._transaction(pipeline=pipeline) as (_, cursor):
            yield cursor

    @asynccontextmanager
    async def _transaction(self, *, pipeline: bool = True) -> AsyncIterator[tuple[Self, AsyncCursor[DictRow]]]:
        """Begin a transaction on a connection of the pool; yield this saver on it, and a cursor."""
        async with pool_transaction(self._pool, pipelined=pipeline and self.supports_pipeline) as (connection, cursor):
            on_it = copy.copy(self)
            on_it.conn = connection
            yield on_it, cursor

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that a config names, or the newest of its thread, or `None`."""
        thread_named(config)
        return before_next(await super().aget_tuple(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, object] | None = None,  # noqa: A002 (the name is the base class's)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield the matching checkpoints, newest first; no connection is held while they are looked at."""
        listed = super().alist(config, filter=filter, before=before, limit=limit)
        for found in [found async for found in listed]:
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, unless its thread was deleted meanwhile, and return the config that finds it."""
        thread_id, checkpoint_id = thread_named(config), checkpoint["id"]
        async with self._transaction() as (on_it, cursor):
            await cursor.execute(_SHARE, (thread_id,))
            if not await _is_dead(cursor, thread_id, ancestors(config, metadata)):
                if may_be_first(metadata):
                    await cursor.execute(_NO_LONGER_EARLY, (thread_id,))
                return await AsyncPostgresSaver.aput(on_it, config, checkpoint, metadata, new_versions)
            # The run goes on: it must not fail because somebody else deletes its thread.
            await cursor.execute(_BURY, (thread_id, checkpoint_id))
            await cursor.execute(
                "DELETE FROM checkpoint_writes WHERE thread_id = %s AND checkpoint_id = %s", (thread_id, checkpoint_id)
            )
        return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint_id}}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what one task wrote, all of it or nothing; nothing if its thread was deleted meanwhile."""
        thread_id = thread_named(config)
        async with self._transaction() as (on_it, cursor):
            await cursor.execute(_SHARE, (thread_id,))
            if not await _is_dead(cursor, thread_id, ancestors(config)):
                await cursor.execute(_NOTE_EARLY, {"thread": thread_id, "user": user_named(config)})
                await AsyncPostgresSaver.aput_writes(on_it, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread, as `DurableSqliteSaver.adelete_thread` does."""
        check_encodable("thread_id", thread_id)
        async with self._transaction() as (_, cursor):
            await cursor.execute(_OWN, (thread_id,))
            await cursor.execute(_FORGET)
            await cursor.execute(_DROP_ORPHANS)
            await cursor.execute(_BURY_THREAD, (thread_id,))
            for table in _TABLES:
                await cursor.execute(f"DELETE FROM {table} WHERE thread_id = %s", (thread_id,))

    async def adelete_for_runs(self, run_ids: Iterable[str]) -> None:
        """Delete the checkpoints and writes of these runs; what another run is replayed from stays."""
        runs = [str(run_id) for run_id in run_ids]
        async with self._transaction(pipeline=False) as (_, cursor):
            await cursor.execute(_THREADS_OF_RUNS, (runs,))
            for thread_id in sorted(row["thread_id"] for row in await cursor.fetchall()):  # in one order, for all
                await cursor.execute(_OWN, (thread_id,))
                await remove_runs(cursor, thread_id, runs)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another one, under the same checkpoint ids."""
        if names := self._to_copy(source_thread_id, target_thread_id):
            async with self._transaction() as (_, cursor):
                for thread_id in sorted(names.values()):
                    await cursor.execute(_SHARE, (thread_id,))
                for statement in _COPY:
                    await cursor.execute(statement, names)


async def _is_dead(cursor: AsyncCursor[DictRow], thread_id: str, checkpoint_ids: Iterable[str]) -> bool:
    """Say whether any of these checkpoints went with its thread."""
    await cursor.execute(_IS_DEAD, (thread_id, sorted(checkpoint_ids)))
    return await cursor.fetchone() is not None


async def _make_tables(connection: Connection) -> None:
    await AsyncPostgresSaver(connection).setup()
    for statement in (_DEAD, _EARLY, _DROP_ORPHANS, *_INDEXES):
        await connection.execute(statement)


@asynccontextmanager
async def open_postgres_checkpointer(uri: str, connections: int = 10) -> AsyncIterator[DurablePostgresSaver]:
    """Open the checkpoints in a Postgres, making its tables where they are missing; bound to the running event loop.

    A deletion takes nothing out of memory: a program that deletes a thread calls `memory.erase.aerase_thread` too.

    Args:
        uri: `postgresql://user:password@host:port/name`.
        connections: So many connections at most.

    Raises:
        DatabaseAway: If it cannot be used.
    """
    await migrated(uri, _make_tables)
    async with open_pool(uri, connections) as pool:
        yield DurablePostgresSaver(pool)


_GOING = GOING.format(
    of_runs="thread_id = %s AND metadata ->> 'run_id' = ANY(%s)",
    is_replayed="jsonb_typeof(child.metadata -> 'counters_since_delta_snapshot') = 'object'",
)
_DELETE_WRITES = "DELETE FROM checkpoint_writes WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = ANY(%s)"
_DELETE = """
    DELETE FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = ANY(%s)
    RETURNING checkpoint -> 'channel_versions' AS versions"""
_VERSIONS = """
    SELECT checkpoint -> 'channel_versions' AS versions FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s"""
_DELETE_BLOB = """
    DELETE FROM checkpoint_blobs WHERE thread_id = %s AND checkpoint_ns = %s AND channel = %s AND version = %s"""


async def remove_runs(cursor: AsyncCursor[DictRow], thread_id: str, runs: Sequence[str]) -> None:
    """Delete checkpoints of runs in a thread with what only they use; what another run is replayed from stays."""
    await cursor.execute(_GOING, (thread_id, runs))
    going = [(row["checkpoint_ns"], row["checkpoint_id"]) for row in await cursor.fetchall()]
    for namespace in sorted({namespace for namespace, _ in going}):
        place = (thread_id, namespace)
        ids = [checkpoint_id for of, checkpoint_id in going if of == namespace]
        await cursor.execute(_DELETE_WRITES, (*place, ids))
        await cursor.execute(_DELETE, (*place, ids))
        freed = _versions(await cursor.fetchall())
        await cursor.execute(_VERSIONS, place)
        for channel, version in sorted(freed - _versions(await cursor.fetchall())):
            await cursor.execute(_DELETE_BLOB, (*place, channel, version))


def _versions(rows: Iterable[DictRow]) -> set[tuple[str, str]]:
    return {(channel, str(version)) for row in rows for channel, version in (row["versions"] or {}).items()}


_IS_THERE: Final = "SELECT to_regclass('checkpoint_writes') IS NOT NULL"  # which is made after the other two
_HAS_EARLY: Final = "SELECT to_regclass('palimpsest_early_writes') IS NOT NULL"  # a server's own tables are without
_OF_USERS: Final = f"SELECT thread_id FROM checkpoints WHERE {USER_OF_CHECKPOINT} = ANY(%(users)s)"
_EARLY_OF_USERS: Final = "SELECT thread_id FROM palimpsest_early_writes WHERE user_id = ANY(%(users)s)"
_OF_NO_OTHER: Final = f"""
    SELECT DISTINCT thread_id FROM ({{theirs}}) AS theirs WHERE NOT EXISTS (
        SELECT 1 FROM checkpoints AS other WHERE other.thread_id = theirs.thread_id
        AND NOT {USER_OF_CHECKPOINT.replace("metadata", "other.metadata")} = ANY(%(users)s))"""
# MessagePack keeps strings as they are, so that the name of a key can be looked for without reading what it is in.
_UNWRITTEN: Final = f"""
    SELECT newest.thread_id, {USER_OF_CHECKPOINT.replace("metadata", "newest.metadata")} FROM (
        SELECT DISTINCT ON (thread_id) thread_id, checkpoint, metadata FROM checkpoints
        WHERE checkpoint_ns = '' AND thread_id > %s ORDER BY thread_id, checkpoint_id DESC) AS newest
    WHERE EXISTS (
        SELECT 1 FROM checkpoint_blobs AS b
        WHERE b.thread_id = newest.thread_id AND b.checkpoint_ns = ''
        AND b.version = newest.checkpoint -> 'channel_versions' ->> b.channel
        AND position(convert_to('has_unwritten', 'UTF8') IN b.blob) > 0)
    ORDER BY newest.thread_id LIMIT %s"""


@dataclass(frozen=True, slots=True)
class CheckpointTables:
    """The checkpoints as they are in a database; where there are no tables yet, it knows of none.

    Attributes:
        uri: The database.
    """

    uri: str

    async def threads_of(self, user_ids: Collection[str]) -> list[str]:
        """Return the ids of the threads in which nobody but these users has saved; no user is the empty id."""
        has_early = await self._read(_HAS_EARLY)
        theirs = f"{_OF_USERS} UNION {_EARLY_OF_USERS}" if has_early and has_early[0][0] else _OF_USERS
        found = await self._read(_OF_NO_OTHER.format(theirs=theirs), {"users": list(user_ids)})
        return [str(thread_id) for (thread_id,) in found]

    async def unwritten(self, limit: int, after: str = "") -> list[tuple[str, str]]:
        """Return the threads, each with its user, whose newest state may name turns that are not written down yet.

        Args:
            limit: So many at most, in the order of their ids.
            after: Only threads whose ids come behind this one.
        """
        return [(str(thread), str(user)) for thread, user in await self._read(_UNWRITTEN, (after, limit))]

    async def _read(self, query: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        # A connection of its own: those of the pool are for turns.
        async with await AsyncConnection.connect(
            self.uri, autocommit=True, row_factory=tuple_row, connect_timeout=CONNECT_SECONDS
        ) as connection:
            there = await (await connection.execute(_IS_THERE)).fetchone()
            return await (await connection.execute(query, parameters)).fetchall() if there and there[0] else []
