"""A real `langgraph dev` process in a folder of its own."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from langgraph.store.base import BaseStore

from graphs.persistence.sqlite_store import open_store
from tests.limits import limits
from tests.ports import free_port

if TYPE_CHECKING:
    from tests.e2e.langhost.cluster import Cluster

PROJECT = Path(__file__).resolve().parents[2]

START_SECONDS = 240.0
STOP_SECONDS = 120.0
_LOG_TAIL = 40

_QUIET = {
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "LANGSMITH_TRACING": "false",
    "NO_COLOR": "1",
    "PYTHONUNBUFFERED": "1",
    **limits(),
    "PALIMPSEST_EMBEDDER": "none",  # `palimpsest dev` would choose one where it is installed, and fetch its weights
}


class ServerFailed(RuntimeError):
    """The server did not come up, or died; the message ends with the tail of its log."""


@dataclass
class DevServer:
    """`with DevServer(folder) as server:` starts the project's server and stops it in the end, whatever happens.

    The process runs in `folder`, so that its `.langgraph_api` and its data are there and no `.env` of a developer is
    read; it inherits no variable of the environment the tests run in.

    Attributes:
        folder: Where the process runs; what it stores outlives a restart.
        config: Which `langgraph.json` it serves; none where the command finds it by itself.
        environment: Variables set for it, beside the quiet defaults.
        workers: How many runs it carries out at once.
        host: The address it listens on; the tests ask it on loopback.
        port: Where it listens, from the first start on.
        command: What starts it instead of `langgraph dev` with the options of most tests; it is told what to serve and
            where to listen.
        cluster: What all servers of a run are served by instead of `langgraph dev`: see `--servers`.
    """

    folder: Path
    config: Path | None = PROJECT / "langgraph.json"
    environment: Mapping[str, str] = field(default_factory=dict)
    workers: int = 10
    host: str = "127.0.0.1"
    port: int = 0
    command: tuple[str, ...] = ()
    cluster: ClassVar["Cluster | None"] = None
    _process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.terminate()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

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

    @property
    def log(self) -> str:
        """Everything it has written so far, over all its starts."""
        with suppress(FileNotFoundError):
            return self._log_file.read_text("utf-8", "replace")
        return ""

    def start(self) -> None:
        """Start the process and wait until it answers on its port; `ServerFailed` otherwise."""
        if self.running:
            raise RuntimeError("the server is running already")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = self.port or free_port()
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), cwd=self.folder, env=self._variables(), stdout=log, stderr=log, start_new_session=True
            )
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill9()
            raise

    def kill9(self) -> None:
        """Kill the process as a crash would: no handler runs, nothing is flushed."""
        self._signal(signal.SIGKILL)
        self._reap(STOP_SECONDS)

    def terminate(self) -> None:
        """Stop the process as an operator would; it is killed if it does not end in time."""
        self._signal(signal.SIGTERM)
        try:
            self._reap(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise ServerFailed(f"the server did not stop within {STOP_SECONDS} s\n{self._tail()}") from None

    def restart(self) -> None:
        """Start again in the same folder and on the same port; a running process is stopped first."""
        self.terminate()
        self.start()

    def _files(self) -> Iterator[tuple[str, bytes]]:
        for path in self.folder.rglob("*"):
            # A running server renames what it has written: a name may be gone before it is read.
            with suppress(FileNotFoundError):
                if path.is_file():
                    yield path.name, path.read_bytes()

    @property
    def _log_file(self) -> Path:
        return self.folder / "server.log"

    def _command(self) -> list[str]:
        served = ["--config", str(self.config)] if self.config else []
        here = [*served, "--host", self.host, "--port", str(self.port)]
        if self.command:
            return [*self.command, *here]
        if self.cluster:
            return [*self.cluster.command(self.workers), *here]
        options = ["--no-browser", "--no-reload", "--n-jobs-per-worker", str(self.workers)]
        return [sys.executable, "-m", "langgraph_cli", "dev", *here, *options]

    def _variables(self) -> dict[str, str]:
        return {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
            "PYTHONPATH": str(PROJECT),
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "PALIMPSEST_DATA_DIR": str(self.data),
            **_QUIET,
            **(self.cluster.variables(self.folder) if self.cluster and not self.command else {}),
            **self.environment,
        }

    def _wait_until_ready(self) -> None:
        seconds = START_SECONDS * (self.cluster.processes if self.cluster else 1)
        deadline = time.monotonic() + seconds
        while not self._answers():
            if self._process and self._process.poll() is not None:
                raise ServerFailed(f"the server ended with {self._process.returncode}\n{self._tail()}")
            if "already in use" in self._tail():
                raise ServerFailed(f"port {self.port} is taken\n{self._tail()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"the server did not answer within {seconds} s\n{self._tail()}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/ok", timeout=1) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    def _signal(self, number: signal.Signals) -> None:
        if self._process and self.running:
            os.killpg(self._process.pid, number)

    def _reap(self, timeout: float) -> None:
        if self._process:
            self._process.wait(timeout)
            self._process = None

    def _tail(self) -> str:
        return "\n".join(self.log.splitlines()[-_LOG_TAIL:])
