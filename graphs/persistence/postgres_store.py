"""The LangGraph store on Postgres: atomic batches, one caller's bad value harms no other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.store.base import BaseStore
from langgraph.store.postgres.aio import AsyncPostgresStore
from psycopg import AsyncCursor
from psycopg.rows import DictRow

from graphs.persistence.postgres import Connection, Pool, migrated, open_pool, transaction


class DurablePostgresStore(AsyncPostgresStore):
    """An `AsyncPostgresStore` whose batches hold or fail as a whole, each on a connection of its own.

    Two batches that write the same items in another order may end one of them with a deadlock, which Postgres finds
    within a second; memory then writes again (`memory/effects.py`).
    """

    # As in `DurableSqliteStore`: the stock store gathers the operations of one tick, whoever asked, into one batch.
    aget = BaseStore.aget
    asearch = BaseStore.asearch
    aput = BaseStore.aput
    adelete = BaseStore.adelete
    alist_namespaces = BaseStore.alist_namespaces

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.pool = pool

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        # The stock cursor has no transaction: what reads within a batch would commit the half that came before.
        async with transaction(self.pool, pipelined=pipeline and self.supports_pipeline) as (_, cursor):
            yield cursor


async def _make_tables(connection: Connection) -> None:
    await AsyncPostgresStore(connection).setup()


@asynccontextmanager
async def open_postgres_store(uri: str, connections: int = 10) -> AsyncIterator[DurablePostgresStore]:
    """Open the store in a Postgres, making its tables where they are missing; bound to the running event loop.

    Args:
        uri: `postgresql://user:password@host:port/name`.
        connections: So many connections at most.

    Raises:
        DatabaseAway: If it cannot be used.
    """
    await migrated(uri, _make_tables)
    async with open_pool(uri, connections) as pool:
        yield DurablePostgresStore(pool)
