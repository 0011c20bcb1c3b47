"""The process in which the stories' model lives and that starts their two servers: one for all workers of a test run.

Each worker shares a lock while it runs stories. The host ends once it gets that lock for itself: then nobody is left,
however they ended. So a run that is killed leaves no server behind.
"""

import fcntl
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.stories.model import answer
from tests.stories.serving import PROJECT, START_SECONDS, Server
from tests.stub_model import StubModel


@dataclass(frozen=True)
class Place:
    """A shared server, as a story knows it."""

    url: str
    folder: Path
    guarded: bool

    def holding(self, word: str, folder: str = "data") -> list[str]:
        """Return the names of the files in which a word stands; `.` looks at logs and at what the server keeps, too."""
        found = []
        for path in (self.folder / folder).rglob("*"):
            # The server writes, and takes away, as it likes.
            with suppress(FileNotFoundError, IsADirectoryError):
                if word.encode() in path.read_bytes():
                    found.append(path.name)
        return sorted(found)


@contextmanager
def places(folder: Path) -> Iterator[dict[str, Place]]:
    """Yield the servers of this run, `open` and `guarded`; the first that asks starts them."""
    folder.mkdir(parents=True, exist_ok=True)
    said, host = folder / "places.json", None
    with (folder / "used").open("w") as used:
        fcntl.flock(used, fcntl.LOCK_SH)
        with (folder / "starting").open("w") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            if not said.exists():
                host = _start(folder, said)
        known: dict[str, str] = json.loads(said.read_text())
        yield {name: Place(url, folder / name, name == "guarded") for name, url in known.items()}
    # It fails where its model was sent what a strict chat template refuses: memory's own prompts may fail unseen.
    if host and host.wait():
        raise RuntimeError(f"the stories' model failed:\n{(folder / 'host.log').read_text()[-4000:]}")


def _start(folder: Path, said: Path) -> subprocess.Popen[bytes]:
    with (folder / "host.log").open("ab") as log:
        host = subprocess.Popen(
            [sys.executable, "-m", "tests.stories.host", str(folder)],
            cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + START_SECONDS
    while not said.exists():
        if host.poll() is not None or time.monotonic() > deadline:
            host.terminate()
            raise RuntimeError(f"the stories have no server:\n{(folder / 'host.log').read_text()[-4000:]}")
        time.sleep(0.05)
    return host


def main(folder: Path) -> None:
    """Serve until nobody shares the lock."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    said, used = folder / "places.json", (folder / "used").open("w")
    with StubModel(answer) as model, ExitStack() as running:
        servers = {name: Server(folder / name, model.url, guarded=name == "guarded") for name in ("open", "guarded")}
        for server in servers.values():
            running.callback(server.stop)
            server.launch()
        for server in servers.values():
            server.wait()
        _write(said, {name: server.url for name, server in servers.items()})
        fcntl.flock(used, fcntl.LOCK_EX)
        said.unlink()
        used.close()


def _write(path: Path, value: Any) -> None:
    """Write a file that nobody sees before it is whole."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(value))
    part.rename(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
