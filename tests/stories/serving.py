"""A server in a process and a folder of its own, started as a person would start it; and that of the stories."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.limits import limits
from tests.ports import free_port

PROJECT = Path(__file__).resolve().parents[2]
SECRET = "a secret of at least thirty-two bytes"
START_SECONDS, STOP_SECONDS = 240.0, 120.0

_PROCESS = {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
    "PYTHONPATH": str(PROJECT),
    "LANG": "C.UTF-8",
    "NO_COLOR": "1",
    "SSL_CERT_DIR": str(PROJECT / "tests"),  # as in `conftest.py`
}
_SETTINGS = {
    "LANGSMITH_TRACING": "false",
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "OPENAI_API_KEY": "stub",
    "PALIMPSEST_MODEL": "openai:chat",
    "PALIMPSEST_MEMORY_MODEL": "openai:memory",
    "PALIMPSEST_EMBEDDER": "none",
    "PALIMPSEST_DEBOUNCE_SECONDS": "0.2",
    **limits(sweep_seconds=1),
}


def variables(**more: str) -> dict[str, str]:
    """Return the environment of a process of the stories: nothing of the tests' own is in it."""
    return {**_PROCESS, **more}


class ServerFailed(RuntimeError):
    """The server did not come up, or died; the message ends with the tail of its log."""


@dataclass
class Process:
    """`with` it, a server is started in `folder`, and stopped in the end, whatever happens.

    What it stores outlives a restart. It inherits nothing of the environment of the tests, and reads no `.env` of a
    developer.
    """

    folder: Path
    port: int = field(default_factory=free_port, kw_only=True)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def command(self) -> list[str]:
        """Return what starts it."""
        raise NotImplementedError

    def variables(self) -> dict[str, str]:
        """Return its environment."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """Everything it has written so far, over all its starts."""
        with suppress(FileNotFoundError):
            return (self.folder / "server.log").read_text("utf-8", "replace")
        return ""

    def start(self) -> None:
        """Start it, and return once it answers."""
        self.launch()
        try:
            self.wait()
        except BaseException:
            self.stop(signal.SIGKILL)
            raise

    def launch(self) -> None:
        """Start the process, and return at once."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), cwd=self.folder, env=self.variables(), stdout=log, stderr=log, start_new_session=True
            )

    def wait(self, seconds: float = START_SECONDS) -> None:
        """Return once it answers."""
        deadline = time.monotonic() + seconds
        while not self._answers():
            if not self.running or time.monotonic() > deadline:
                self.stop(signal.SIGKILL)
                raise ServerFailed(f"no server came up:\n{self.log[-4000:]}")
            time.sleep(0.1)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the process: as an operator does, or as a crash would; it is killed if it does not end in time."""
        if self._process and self.running:
            os.killpg(self._process.pid, how)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(STOP_SECONDS)
                raise ServerFailed(f"it did not stop within {STOP_SECONDS} s:\n{self.log[-4000:]}") from None
        self._process = None

    def _answers(self) -> bool:
        with suppress(OSError), urllib.request.urlopen(f"{self.url}/ok", timeout=1) as response:
            return bool(response.status == 200)
        return False


@dataclass
class Server(Process):
    """The shipped server; with `guarded` users log in, as in production."""

    model_url: str
    guarded: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self) -> list[str]:
        # Beside stories of a slow model the runs of other users go on.
        jobs = ["--n-jobs-per-worker", "10"] if self.guarded else []
        where = ["--no-browser", "--no-reload", "--port", str(self.port), *jobs, "--config", str(self._config())]
        return [sys.executable, "-m", "langgraph_cli", "dev", *where]

    def variables(self) -> dict[str, str]:
        ours = {"HOME": self.folder, "PALIMPSEST_DATA_DIR": self.folder / "data", "OPENAI_BASE_URL": self.model_url}
        login = {"PALIMPSEST_AUTH_SECRET": SECRET} if self.guarded else {}
        return variables(**_SETTINGS, **{name: str(value) for name, value in ours.items()}, **login, **self.environment)

    def _config(self) -> Path:
        if not self.guarded:
            return PROJECT / "langgraph.json"
        # The production configuration, with files to look into.
        shipped: dict[str, Any] = json.loads((PROJECT / "langgraph.prod.json").read_text())
        development = json.loads((PROJECT / "langgraph.json").read_text())
        path = self.folder / "langgraph.json"
        path.write_text(json.dumps({**shipped, **{name: development[name] for name in ("checkpointer", "store")}}))
        return path
