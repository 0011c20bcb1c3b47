"""`palimpsest demo` against a real server: it says what it does, shows what `curl` shows, and comes to its end."""

import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import PROJECT, DevServer
from tests.e2e.scripted import Scripted, is_extraction
from tests.ports import free_port
from tests.stub_model import ChatRequest, Reply, StubModel

FIGS = "User likes figs."


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.2")


@dataclass
class Demo:
    """The command with a short conversation of its own."""

    folder: Path
    url: str
    turns: list[str] = field(default_factory=lambda: ["I like figs.", "It rains."])

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        questions = [{"text": "What do I like?", "answer": "Figs"}]
        path = self.folder / "conversation.json"
        path.write_text(json.dumps({"user": "Ines", "turns": self.turns, "questions": questions}))
        command = [sys.executable, "-m", "graphs.cli.main", "demo", "--url", self.url, "--conversation", str(path)]
        variables = {"PATH": os.defpath, "PYTHONPATH": str(PROJECT), "LANG": "C.UTF-8"}
        return subprocess.run(
            [*command, *options], cwd=self.folder, env=variables, capture_output=True, encoding="utf-8", timeout=400,
            check=False,
        )  # fmt: skip


@pytest.fixture
def demo(server: DevServer, tmp_path: Path) -> Demo:
    return Demo(tmp_path, server.url)


def answer(request: ChatRequest) -> str:
    return "You like figs, I recall." if FIGS in request.text else f"Noted that: {request.last}"


def facts(server: DevServer) -> list[str]:
    with urllib.request.urlopen(f"{server.url}/memory/facts", timeout=60) as response:
        return [fact["content"] for fact in json.load(response)["facts"]]


def fails(done: subprocess.CompletedProcess[str], says: str) -> bool:
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return re.search(says, done.stderr) is not None


def test_it_asks_shows_what_curl_shows_and_forgets_on_request(server: DevServer, model: StubModel, demo: Demo) -> None:
    model.respond = Scripted(learns={"like figs": FIGS}, chat=answer)
    done = demo.run()
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert said.index("[1/2] I like figs.") < said.index("Noted that: I like figs.") < said.index("[2/2] It rains.")
    assert "left in all" in said or "about" in said.splitlines()[1]
    assert facts(server) == [FIGS]
    assert FIGS in said.partition("1 facts")[2]
    assert "You like figs, I recall." in said.partition("[?] What do I like?")[2]
    for command in re.findall(r"^  (curl .*)$", said, re.M):
        subprocess.run(["sh", "-c", command], check=True, capture_output=True, timeout=60)
    assert facts(server) == []


def test_nobody_answers(demo: Demo) -> None:
    demo.url = f"http://127.0.0.1:{free_port()}"
    assert fails(demo.run(), "no server answers .*make dev")


def test_a_model_that_hangs_is_given_up_and_its_run_is_ended(model: StubModel, demo: Demo) -> None:
    gate = threading.Event()
    model.respond = lambda _: Reply(text="too late", gate=gate)
    try:
        done = demo.run("--patience", "6")
        assert fails(done, "sent nothing for 6 s")
        assert "[1/2] I like figs." in done.stdout
    finally:
        gate.set()


def test_a_model_that_fails_ends_it_with_its_sentence(model: StubModel, demo: Demo) -> None:
    model.respond = lambda _: Reply(text="no", status=401)
    assert fails(demo.run(), "the run failed: .*key")


def test_an_update_that_hangs_ends_it_after_its_patience(model: StubModel, demo: Demo) -> None:
    gate = threading.Event()
    model.respond = Scripted(chat=answer, extraction_gate=gate)
    try:
        done = demo.run("--patience", "12")
        assert fails(done, "memory was not updated after .* the update is (pending|running)")
        assert "curl" in done.stdout
    finally:
        gate.set()


def test_an_update_that_failed_for_good_ends_it_at_once(model: StubModel, demo: Demo) -> None:
    scripted = Scripted(chat=answer)
    model.respond = lambda request: Reply(text="no", status=401) if is_extraction(request) else scripted(request)
    assert fails(demo.run(), "memory was not updated .* is dead")


@pytest.mark.parametrize("options", [["--turns", "0"], ["--turns", "many"], ["--patience", "0"]])
def test_numbers_that_cannot_be_meant_are_refused(demo: Demo, options: list[str]) -> None:
    assert demo.run(*options).returncode == 2


def test_a_conversation_without_turns_is_refused(demo: Demo) -> None:
    demo.turns = []
    assert fails(demo.run(), "has no turns")
