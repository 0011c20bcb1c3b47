"""Child processes of `palimpsest dev`: waited for, ended in time, and never left behind. Real processes, no server."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from graphs.cli.dev import serve, supervise
from graphs.cli.local import LocalModel, is_answering, start_local_model, wait_until_answering
from graphs.cli.main import main
from graphs.cli.processes import Child, settle_child, start, stop
from graphs.cli.shell import Refused
from tests.e2e.waiting import eventually
from tests.ports import free_port

HOUSE = Path(__file__).parents[2]

PATIENT = "import threading; threading.Event().wait()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + PATIENT
TETHERED = "import sys; from graphs.cli.processes import tether; tether(sys.stdin.fileno()); " + PATIENT
PARENT = (
    "import os, sys; from graphs.cli.processes import start; "
    f"child = start([sys.executable, '-c', {TETHERED!r}], os.environ); " + PATIENT
)
WITH_WORKERS = (
    "import sys, time, uvicorn; from multiprocessing import get_context; "
    "from graphs.cli.processes import end_with_worker, tether; "
    "Worker = get_context('spawn').Process; settled = tether(sys.stdin.fileno()); end_with_worker(settled); "
)


@dataclass
class Children:
    """Starts Python snippets and sees to it that none is left."""

    ending: ExitStack
    folder: Path

    def run(self, code: str, *arguments: str, environ: Mapping[str, str] | None = None) -> Child:
        child = start([sys.executable, "-c", code, *arguments], {"PYTHONPATH": str(HOUSE), **(environ or {})})
        self.ending.callback(stop, child, 0.0)
        return child

    def local_model(self, code: str) -> LocalModel:
        return LocalModel("tiny", "http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1", self.run(code))

    def sign(self, name: str, code: str) -> tuple[Path, str]:
        """Return a pipe and a snippet that opens it once it has come so far; it stays open while the snippet runs."""
        pipe = self.folder / name
        os.mkfifo(pipe)
        waiting = code.removesuffix(PATIENT)
        assert waiting != code
        return pipe, f"{waiting}sign = open({str(pipe)!r}, 'wb', 0); sign.write(b'here'); {PATIENT}"


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    with ExitStack() as ending:
        yield Children(ending, tmp_path)


def test_a_server_that_does_not_end_is_killed_after_its_grace(children: Children) -> None:
    pipe, code = children.sign("deaf", STUBBORN)
    server = children.run(code)
    with pipe.open("rb") as deaf:
        assert deaf.read(4) == b"here"
        assert stop(server, grace_seconds=0.1) == -signal.SIGKILL


@pytest.mark.parametrize(("ends_by", "code"), [(Refused("it did not start"), None), (KeyboardInterrupt(), 0)])
def test_a_server_that_never_starts_is_not_left_behind_and_ctrl_c_is_no_failure(
    children: Children, monkeypatch: pytest.MonkeyPatch, ends_by: BaseException, code: int | None
) -> None:
    """It may also be interrupted while it starts; with its `serve`, a real child, and no other server."""
    server = children.run(PATIENT)

    def never(*_: object, **__: object) -> None:
        raise ends_by

    monkeypatch.chdir(children.folder)
    monkeypatch.setenv("PALIMPSEST_MODEL", "openai:tiny")
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # how the tests themselves are stopped stays as it is
    monkeypatch.setattr("graphs.cli.dev.start", lambda *_: server)
    monkeypatch.setattr("graphs.cli.dev.wait_until_answering", never)
    if code is None:
        with pytest.raises(Refused, match="it did not start"):
            serve("127.0.0.1", free_port(), None, ())
    else:
        assert serve("127.0.0.1", free_port(), None, ()) == code
    assert server.returncode == -signal.SIGTERM


def test_the_end_of_the_local_model_is_said_and_the_server_goes_on(
    children: Children, capsys: pytest.CaptureFixture[str]
) -> None:
    local = children.local_model("raise SystemExit(7)")
    local.process.wait()
    assert supervise(children.run("raise SystemExit(5)"), local) == 5
    assert "ended with exit code 7" in capsys.readouterr().err


def test_a_child_outlives_neither_its_parent_nor_a_kill_of_it(children: Children) -> None:
    pipe, tethered = children.sign("tethered", TETHERED)
    parent = children.run(PARENT.replace(repr(TETHERED), repr(tethered)))
    with pipe.open("rb") as sign:
        assert sign.read(4) == b"here"
        parent.kill()
        assert sign.read() == b""  # the pipe is closed: its only writer is gone


def test_a_child_does_not_get_the_terminals_interrupt(children: Children) -> None:
    child = children.run(PATIENT)
    assert os.getsid(child.pid) == child.pid


def test_what_a_child_writes_only_its_owner_reads(children: Children) -> None:
    """`langgraph dev` keeps what is said in pickles of its own."""
    places = [children.folder / "there", children.folder / "there" / "words"]
    assert children.run(f"import os; os.mkdir({str(places[0])!r}); open({str(places[1])!r}, 'w').close()").wait(30) == 0
    assert [each.stat().st_mode & 0o077 for each in places] == [0, 0]


def test_a_server_whose_app_does_not_load_ends_though_its_reloader_would_wait_for_an_edit(children: Children) -> None:
    port = free_port()
    reloader = f"uvicorn.run('nowhere:app', port={port}, reload=True, reload_dirs={[str(children.folder)]!r})"
    failed = children.run(WITH_WORKERS + reloader)
    with pytest.raises(Refused, match=r"the server ended with exit code \d while starting"):
        wait_until_answering(failed, f"http://127.0.0.1:{port}/ok", name="the server", timeout=60.0)


def test_a_worker_that_the_reloader_replaces_while_starting_ends_nothing(children: Children) -> None:
    replaced = "one = Worker(target=time.sleep, args=(600,)); one.start(); one.terminate(); one.join(); "
    failed = children.run(f"{WITH_WORKERS}{replaced}Worker(target=time.sleep, args=(2,)).start(); {PATIENT}")
    assert failed.wait(60.0) == 1


def test_once_it_has_started_a_server_outlives_its_worker(children: Children) -> None:
    edited = "settled.wait(); one = Worker(target=sys.exit, args=(7,)); one.start(); one.join(); "
    pipe, code = children.sign("edited", f"{WITH_WORKERS}{edited}{PATIENT}")
    server = children.run(code)
    settle_child(server)
    with pipe.open("rb") as sign:
        assert sign.read(4) == b"here"
        assert server.poll() is None


def test_a_worker_that_is_killed_ends_its_server_and_that_is_said(
    children: Children, capfd: pytest.CaptureFixture[str]
) -> None:
    killed = "settled.wait(); one = Worker(target=time.sleep, args=(600,)); one.start(); one.join(1); one.kill(); "
    server = children.run(f"{WITH_WORKERS}{killed}{PATIENT}")
    settle_child(server)
    assert supervise(server, None) == 128 + signal.SIGKILL
    assert "The server was killed" in capfd.readouterr().err


def test_a_file_that_is_no_model_is_refused_in_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    no_model = tmp_path / "no.gguf"
    no_model.write_bytes(b"GGUF, it says")
    with pytest.raises(Refused, match="exit code 1 while starting"):
        start_local_model(str(no_model), {"PYTHONPATH": str(HOUSE)})
    assert f"Error: The local model cannot be served: {no_model} is no model" in capfd.readouterr().err


def test_a_missing_library_is_named_before_weights_are_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "xllamacpp.py").write_text(
        "raise ImportError('libodd.so.2: cannot open shared object file: No such file')"
    )
    with pytest.raises(Refused, match=re.escape("lacks the library libodd.so.2: install it (Debian: apt")):
        start_local_model("qwen2.5-coder-1.5b", {"PYTHONPATH": f"{tmp_path}:{HOUSE}"})
    assert not (tmp_path / "cache").exists()


def test_a_start_without_any_model_says_so_first(tmp_path: Path) -> None:
    (no_model := tmp_path / "no.gguf").write_bytes(b"GGUF, it says")
    (tmp_path / "langgraph.json").write_text("{}")  # so the server ends at once
    variables = {"PYTHONPATH": str(HOUSE), "PALIMPSEST_LOCAL_MODEL": str(no_model), "PALIMPSEST_EMBEDDER": "none"}
    command = [sys.executable, "-m", "palimpsest", "dev"]
    done = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300, check=False
    )
    said, _, later = done.stderr.partition("Starting the server ...")
    assert "Model    NONE, every run fails: set OPENAI_API_KEY" in said
    assert later


STAND_IN_FOR_LLAMA = """
import json, os, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

class CommonParams(SimpleNamespace):
    model = SimpleNamespace()

class Server:
    def __init__(self, parameters):
        class Answer(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps([os.getpid(), os.getpriority(os.PRIO_PROCESS, 0), os.getsid(0)]).encode())
            def log_message(self, *_): pass
        self.listening_address = f"http://127.0.0.1:{parameters.port}"
        threading.Thread(target=ThreadingHTTPServer(("127.0.0.1", parameters.port), Answer).serve_forever).start()
"""


def test_what_works_in_the_background_is_served_with_a_lower_priority_and_ends_with_its_parent(
    tmp_path: Path,
) -> None:
    (tmp_path / "xllamacpp.py").write_text(STAND_IN_FOR_LLAMA)
    (weights := tmp_path / "some.gguf").touch()
    local = start_local_model(str(weights), {"PYTHONPATH": f"{tmp_path}:{HOUSE}"})
    try:
        chat, background = (
            json.load(urlopen(url.removesuffix("/v1"), timeout=60)) for url in (local.base_url, local.background_url)
        )
    finally:
        stop(local.process, grace_seconds=60.0)
    assert chat[0] == local.process.pid != background[0]
    assert chat[1] < background[1] or chat[1] == 19  # nothing is lower, where the tests themselves run so
    # Of two sessions, Linux gives each the same share, whatever their priorities.
    assert chat[2] == background[2]
    eventually(lambda: not is_answering(local.background_url.replace("/v1", "/health")))


def test_the_command_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "langgraph.json").write_text("{}")
    (tmp_path / ".env").write_text("PALIMPSEST_MAX_FACTS=many\n")
    refused = CliRunner().invoke(main, ["dev"])
    assert (refused.exit_code, "PALIMPSEST_MAX_FACTS" in refused.output) == (1, True)
    (tmp_path / ".env").unlink()
    nothing = CliRunner().invoke(main, ["dev", "--config", "other.json"])
    assert (nothing.exit_code, "other.json" in nothing.output) == (1, True)
