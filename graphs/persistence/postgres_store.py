"""The LangGraph store on Postgres: atomic batches, in a schema of its own, one caller's bad value harms no other."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from typing import Any, Final, Self

from langgraph.store.postgres.aio import AsyncPostgresStore
from psycopg import AsyncCursor
from psycopg.rows import DictRow, dict_row

from graphs.persistence.durable_store import DurableStore
from graphs.persistence.postgres import Connection, Pool, migrated, open_pool, pool_transaction
from memory.door import Batching, turns_of

# An operator may have made it for a user who may make none.
_MAKE_SCHEMA: Final = """
    DO $$ BEGIN IF to_regnamespace('palimpsest') IS NULL THEN CREATE SCHEMA palimpsest; END IF; END $$"""
_PATIENCE_SECONDS: Final = 15.0
_TABLE: Final = re.compile(r"\b(FROM|INTO|UPDATE|ON|TABLE|EXISTS) (store|store_migrations)\b")


class _InSchema(AsyncCursor[DictRow]):
    """Names the schema of the stock store's tables: a server's own `store` may stand in the same database.

    No `search_path` says it: behind a pooler, the session may be another program's next.
    """

    async def execute(self, query: Any, *args: Any, **options: Any) -> Self:
        """Execute a statement of the stock store."""
        return await super().execute(_TABLE.sub(r"\1 palimpsest.\2", query), *args, **options)


class DurablePostgresStore(DurableStore, AsyncPostgresStore):
    """An `AsyncPostgresStore` whose batches hold or fail as a whole, each on a connection of its own.

    Two batches that write the same items in another order may end one of them with a deadlock, which Postgres finds
    within a second; memory then writes again (`memory/door.py`).
    """

    _connection: Connection | None = None
    """Of the one transaction that this handle carries out; without it, each batch has a connection of its own."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.pool = pool

    @asynccontextmanager
    async def writing(self, *names: str) -> AsyncIterator[Batching]:
        """Begin a transaction that has these names, and yield what carries out batches in it; the end commits."""
        inside, locks = copy(self), [f"palimpsest.{name}" for name in names]
        # Who waits in this process holds no connection.
        places = (f"{self.pool.conninfo} {name}" for name in names)
        async with turns_of(places, _PATIENCE_SECONDS), pool_transaction(self.pool, locks=locks) as (connection, _):
            inside._connection = connection
            yield super(DurablePostgresStore, inside).abatch

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        if connection := self._connection:
            async with connection.pipeline(), connection.cursor(binary=True, row_factory=dict_row) as cursor:
                yield cursor
            return
        # The stock cursor has no transaction: what reads within a batch would commit the half that came before.
        async with pool_transaction(self.pool, pipelined=pipeline and self.supports_pipeline) as (_, cursor):
            yield cursor


async def _make_store_tables(connection: Connection) -> None:
    await connection.execute(_MAKE_SCHEMA)
    connection.cursor_factory = _InSchema
    await AsyncPostgresStore(connection).setup()


@asynccontextmanager
async def open_postgres_store(uri: str, connections: int = 10) -> AsyncIterator[DurablePostgresStore]:
    """Open the store in the schema `palimpsest` of a Postgres, made where it is missing, for the running event loop.

    Args:
        uri: `postgresql://user:password@host:port/name`.
        connections: So many connections at most.

    Raises:
        DatabaseAway: If it cannot be used.
    """
    await migrated(uri, _make_store_tables)
    async with open_pool(uri, connections, cursor_factory=_InSchema) as pool:
        yield DurablePostgresStore(pool)
