"""The command line as a person types it, against a real `langgraph dev`."""

import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

import pytest

from tests.command_line import Typed
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.e2e.waiting import eventually
from tests.stories.serving import PROJECT
from tests.stub_model import ChatRequest, Reply, StubModel

FIGS = "User likes figs."
COMMAND = (sys.executable, "-m", "palimpsest")


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.2")


def variables(server: DevServer) -> dict[str, str]:
    return {
        "PATH": os.defpath, "PYTHONPATH": str(PROJECT), "LANG": "C.UTF-8", "TERM": "dumb", "PALIMPSEST_URL": server.url
    }  # fmt: skip


@pytest.fixture
def typed(server: DevServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """The commands in this process: starting one costs seconds, and the terminal below starts its own."""
    monkeypatch.chdir(tmp_path)
    return Typed(None, {"PALIMPSEST_URL": server.url, "PALIMPSEST_DATA_DIR": str(server.data)})


def answer(request: ChatRequest) -> str:
    return "You like figs, I recall." if FIGS in request.text else "Noted."


def test_the_local_files_beside_a_running_server_are_its_memory(typed: Typed) -> None:
    fact = typed.json("facts", "add", "Likes dates")["id"]
    assert fact in typed("facts", "list", "--local")
    typed("facts", "edit", fact, "--content", "Likes plums", "--local")
    assert "Likes plums" in typed("facts", "list")
    assert typed.json("erase", "fact", fact, "--yes")["items"] > 0


class Terminal:
    """A person at a terminal."""

    def __init__(self, server: DevServer, folder: Path, *words: str) -> None:
        self._side, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, *words], cwd=folder, env=variables(server), stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True,
            # A shell lets what it starts in the background ignore Ctrl-C, and so would all that the tests start.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        os.close(theirs)
        self.seen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._side)

    def sees(self, text: str, seconds: float = 180.0) -> None:
        """Wait for a text behind what was seen before."""
        until = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self._side], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"{text!r} did not come: {self.seen}"
            self.seen += os.read(self._side, 4096).decode("utf-8", "replace")
        self.seen = self.seen.partition(text)[2]

    def interrupts(self, text: str) -> bool:
        """Press Ctrl-C, and say whether a text comes."""
        self.process.send_signal(signal.SIGINT)
        with suppress(AssertionError):
            self.sees(text, 20.0)
            return True
        return False

    def leaves(self) -> bool:
        """Press Ctrl-D, and say whether the program ends."""
        self.types("\x04")
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(20.0)
            return True
        return False

    def types(self, text: str) -> None:
        os.write(self._side, text.encode())


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    gate = threading.Event()
    yield gate
    gate.set()


def test_ctrl_c_ends_a_turn_and_not_the_conversation(
    server: DevServer, model: StubModel, tmp_path: Path, gate: threading.Event
) -> None:
    # What the turn that was ended said goes with the next one.
    model.respond = Scripted(
        chat=lambda request: Reply(text="Yes.", gate=gate if request.last.endswith("slow.") else None)
    )
    with Terminal(server, tmp_path, "chat") as person:
        person.sees("you> ")
        person.types("Think slow.\n")
        eventually(lambda: any("slow" in request.last for request in model.requests))
        eventually(lambda: person.interrupts("The turn is ended"), timeout=180)
        person.sees("you> ")
        person.types("And now?\n")
        person.sees("Yes.")
        person.sees("you> ")
        # The prompt is written a moment before the terminal listens: what comes in between is lost, as for a person.
        eventually(lambda: person.interrupts("Ctrl-D ends the conversation"), timeout=180)
        eventually(person.leaves, timeout=180)
        assert person.process.returncode == 0


def test_a_person_is_asked_before_all_is_erased(server: DevServer, typed: Typed, tmp_path: Path) -> None:
    typed("facts", "add", "Likes plums")
    for answer, code, left in (("n", 1, 1), ("y", 0, 0)):
        with Terminal(server, tmp_path, "erase", "everything") as person:
            person.sees("Everything goes for good: 1 fact")
            person.sees("Go on?")
            person.types(f"{answer}\n")
            assert person.process.wait(120) == code
        assert typed.json("facts", "list")["total"] == left
