"""The LangGraph checkpointer on Postgres, with everything the server may ask of one.

Beside it, what the tables know that the server may not; `sqlite_saver.py` says the same of a file.
"""

import copy
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Self

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import DictRow, dict_row, tuple_row

from graphs.persistence.durable_saver import (
    CHECKPOINTED_TYPES,
    CREATE,
    Checkpoints,
    Dialect,
    DurableSaver,
    Execute,
)
from graphs.persistence.postgres import CONNECT_SECONDS, Connection, Pool, migrated, open_pool, pool_transaction
from graphs.process.identity import SAVED_BY

_NAME: Final = re.compile(r":(\w+)")
_COPIED: Final = {
    "checkpoint_blobs": "channel, version, type, blob",
    "checkpoint_writes": "checkpoint_id, task_id, task_path, idx, channel, type, blob",
}
_SQL: Final = Dialect(
    writes="checkpoint_writes",
    tables=("checkpoints", "checkpoint_blobs", "checkpoint_writes"),
    # A copy belongs to no run: rolling the original's run back must not take rows out of the copy.
    copies=(
        """
        INSERT INTO checkpoints
            (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
        SELECT :target, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,
            (metadata - 'run_id') || CASE WHEN metadata ? 'thread_id'
                THEN jsonb_build_object('thread_id', CAST(:target AS text)) ELSE CAST('{}' AS jsonb) END
        FROM checkpoints WHERE thread_id = :source ON CONFLICT DO NOTHING""",
        *(
            f"""
            INSERT INTO {table} (thread_id, checkpoint_ns, {columns}) SELECT :target, checkpoint_ns, {columns}
            FROM {table} WHERE thread_id = :source ON CONFLICT DO NOTHING"""
            for table, columns in _COPIED.items()
        ),
    ),
    # MessagePack keeps strings as they are, so that the name of a key can be looked for without reading what it is in.
    unwritten=f"""
        SELECT newest.thread_id, COALESCE(newest.metadata ->> '{SAVED_BY}', '') FROM (
            SELECT DISTINCT ON (thread_id) thread_id, checkpoint, metadata FROM checkpoints
            WHERE checkpoint_ns = '' AND thread_id > :after ORDER BY thread_id, checkpoint_id DESC) AS newest
        WHERE EXISTS (
            SELECT 1 FROM checkpoint_blobs AS b
            WHERE b.thread_id = newest.thread_id AND b.checkpoint_ns = ''
            AND b.version = newest.checkpoint -> 'channel_versions' ->> b.channel
            AND position(convert_to('has_unwritten', 'UTF8') IN b.blob) > 0)
        ORDER BY newest.thread_id LIMIT :limit""",
    saying="{of} ->> '{name}'",
    among="= ANY(:{})",
    listed=list,
)
_INDEXES: Final = (
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS palimpsest_checkpoints_by_run ON checkpoints ((metadata ->> 'run_id'))",
    f"CREATE INDEX CONCURRENTLY IF NOT EXISTS palimpsest_checkpoints_by_user ON checkpoints (({_SQL.user()}))",
)
# It ends with its transaction.
_LOCK: Final = "SELECT pg_advisory_xact_lock{}(5259596, hashtext(%s))"  # "PAL"
_UNUSED: Final = """
    DELETE FROM checkpoint_blobs AS unused WHERE thread_id = :thread AND NOT EXISTS (
        SELECT 1 FROM checkpoints AS c, jsonb_each_text(c.checkpoint -> 'channel_versions') AS used
        WHERE c.thread_id = :thread AND c.checkpoint_ns = unused.checkpoint_ns
        AND used.key = unused.channel AND used.value = unused.version)"""


class DurablePostgresSaver(DurableSaver, AsyncPostgresSaver):
    """An `AsyncPostgresSaver` that can also roll a run back and copy a thread, also one of delta channels."""

    sql = _SQL

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool, serde=JsonPlusSerializer(allowed_msgpack_modules=CHECKPOINTED_TYPES))
        self._pool, self._beginning, self._saving = pool, {}, set()

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        # The stock saver lets one caller at a time use all of a pool.
        if isinstance(self.conn, AsyncConnection):  # in a transaction of ours
            async with self.conn.cursor(binary=True, row_factory=dict_row) as cursor:
                yield cursor
            return
        async with pool_transaction(self._pool, pipelined=pipeline and self.supports_pipeline) as (_, cursor):
            yield cursor

    @asynccontextmanager
    async def _transaction(
        self, *, shares: Sequence[str] = (), owns: Sequence[str] = ()
    ) -> AsyncIterator[tuple[Self, Execute]]:
        async with (
            pool_transaction(self._pool, pipelined=self.supports_pipeline) as (connection, _),
            connection.cursor(binary=True, row_factory=tuple_row) as cursor,
        ):

            async def execute(statement: str, **values: object) -> list[Any]:
                await cursor.execute(_NAME.sub(r"%(\1)s", statement), values)
                # In a pipeline, a cursor knows only what it has waited for.
                return await cursor.fetchall() if statement.lstrip().startswith(("SELECT", "WITH")) else []

            for kind, threads in (("_shared", shares), ("", owns)):
                for thread_id in threads:
                    await cursor.execute(_LOCK.format(kind), (thread_id,))
            on_it = copy.copy(self)
            on_it.conn = connection
            yield on_it, execute

    async def _drop_unused(self, execute: Execute, thread_id: str) -> None:
        await execute(_UNUSED, thread=thread_id)


async def _make_tables(connection: Connection) -> None:
    await AsyncPostgresSaver(connection).setup()
    for statement in (CREATE, *_INDEXES):
        await connection.execute(statement)


@asynccontextmanager
async def open_postgres_checkpointer(uri: str, connections: int = 10) -> AsyncIterator[DurablePostgresSaver]:
    """Open the checkpoints in a Postgres, making its tables where they are missing; bound to the running event loop.

    A deletion takes nothing out of memory: a program that deletes a thread calls `memory.aerase_thread` too.

    Args:
        uri: `postgresql://user:password@host:port/name`.
        connections: So many connections at most.

    Raises:
        DatabaseAway: If it cannot be used.
    """
    await migrated(uri, _make_tables)
    async with open_pool(uri, connections) as pool:
        yield DurablePostgresSaver(pool)


def checkpoints_at(uri: str) -> Checkpoints:
    """Return the checkpoints in a database; where there are no tables yet, there are none."""

    async def read(query: str, values: dict[str, object]) -> list[Any]:
        # A connection of its own: those of the pool are for turns.
        async with await AsyncConnection.connect(
            uri, autocommit=True, row_factory=tuple_row, connect_timeout=CONNECT_SECONDS
        ) as connection:
            # The table that is made after the other two.
            there = await (await connection.execute("SELECT to_regclass('checkpoint_writes') IS NOT NULL")).fetchone()
            if not there or not there[0]:
                return []
            return await (await connection.execute(_NAME.sub(r"%(\1)s", query), values)).fetchall()

    return Checkpoints(_SQL, read)
