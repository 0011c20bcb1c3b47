"""A real `langgraph dev` process in a folder of its own."""

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from langgraph.store.base import BaseStore

from graphs.persistence.sqlite_store import open_store
from tests.limits import limits
from tests.stories.serving import PROJECT, START_SECONDS, Process

if TYPE_CHECKING:
    from tests.e2e.langhost.cluster import Cluster

_QUIET = {
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "LANGSMITH_TRACING": "false",
    "NO_COLOR": "1",
    "PYTHONUNBUFFERED": "1",
    **limits(),
    "PALIMPSEST_EMBEDDER": "none",  # `palimpsest dev` would choose one where it is installed, and fetch its weights
}


@dataclass
class DevServer(Process):
    """`with DevServer(folder) as server:` starts the project's server and stops it in the end, whatever happens.

    Attributes:
        config: Which `langgraph.json` it serves; none where the command finds it by itself.
        environment: Variables set for it, beside the quiet defaults.
        workers: How many runs it carries out at once.
        host: The address it listens on; the tests ask it on loopback.
        starter: What starts it instead of `langgraph dev` with the options of most tests; it is told what to serve and
            where to listen.
        cluster: What all servers of a run are served by instead of `langgraph dev`: see `--servers`.
    """

    config: Path | None = PROJECT / "langgraph.json"
    environment: Mapping[str, str] = field(default_factory=dict)
    workers: int = 10
    host: str = "127.0.0.1"
    starter: tuple[str, ...] = ()
    cluster: ClassVar["Cluster | None"] = None

    @property
    def data(self) -> Path:
        """The folder of its SQLite files."""
        return self.folder / "data"

    def stored(self) -> dict[str, bytes]:
        """Return all that it keeps and logs, by the names of files; tables stand under the names of such files."""
        kept = self.cluster.tables(self.folder) if self.cluster else {}
        return {**dict(self._files()), **kept}

    def store(self) -> AbstractAsyncContextManager[BaseStore]:
        """Open the store of its memory, beside it."""
        return self.cluster.store(self.folder) if self.cluster else open_store(self.data / "store.sqlite")

    def kill9(self) -> None:
        """Kill the process as a crash would: no handler runs, nothing is flushed."""
        self.stop(signal.SIGKILL)

    def restart(self) -> None:
        """Start again in the same folder and on the same port; a running process is stopped first."""
        self.stop()
        self.start()

    def wait(self, seconds: float = START_SECONDS) -> None:
        super().wait(seconds * (self.cluster.processes if self.cluster else 1))

    def _files(self) -> Iterator[tuple[str, bytes]]:
        for path in self.folder.rglob("*"):
            # A running server renames what it has written: a name may be gone before it is read.
            with suppress(FileNotFoundError):
                if path.is_file():
                    yield path.name, path.read_bytes()

    def command(self) -> list[str]:
        served = ["--config", str(self.config)] if self.config else []
        here = [*served, "--host", self.host, "--port", str(self.port)]
        if self.starter:
            return [*self.starter, *here]
        if self.cluster:
            return [*self.cluster.command(self.workers), *here]
        options = ["--no-browser", "--no-reload", "--n-jobs-per-worker", str(self.workers)]
        return [sys.executable, "-m", "langgraph_cli", "dev", *here, *options]

    def variables(self) -> dict[str, str]:
        return {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
            "PYTHONPATH": str(PROJECT),
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "PALIMPSEST_DATA_DIR": str(self.data),
            **_QUIET,
            **(self.cluster.variables(self.folder) if self.cluster and not self.starter else {}),
            **self.environment,
        }
