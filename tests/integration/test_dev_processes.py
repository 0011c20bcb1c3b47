"""`palimpsest dev` and the local model, its child: found, waited for, and never left behind. Real processes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from graphs.cli.local import start_local_model
from graphs.cli.main import main
from graphs.cli.shell import Refused
from tests.e2e.waiting import eventually
from tests.ports import free_port

HOUSE = Path(__file__).parents[2]


def answers(url: str) -> bool:
    with suppress(OSError):
        urlopen(url, timeout=60).close()
        return True
    return False


def heed_signals() -> None:
    """Have a child heed what its parent ignores: under `nohup` hangups, in a job in the background interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def test_a_file_that_is_no_model_is_refused_in_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    no_model = tmp_path / "no.gguf"
    no_model.write_bytes(b"GGUF, it says")
    with pytest.raises(Refused, match="exit code 1 while starting"):
        start_local_model(str(no_model))
    assert f"Error: The local model cannot be served: {no_model} is no model" in capfd.readouterr().err


def test_a_missing_library_is_named_before_weights_are_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "xllamacpp.py").write_text(
        "raise ImportError('libodd.so.2: cannot open shared object file: No such file')"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    with pytest.raises(Refused, match=re.escape("lacks the library libodd.so.2: install it (Debian: apt")):
        start_local_model("qwen2.5-coder-1.5b")
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


@pytest.fixture
def weights(tmp_path: Path) -> str:
    """Name weights that a stand-in serves, where the test's folder is on the path."""
    (tmp_path / "xllamacpp.py").write_text(STAND_IN_FOR_LLAMA)
    (weights := tmp_path / "some.gguf").touch()
    return str(weights)


@contextmanager
def dev(folder: Path, port: int, said: int | None = None, **model: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start `palimpsest dev` in a folder, with what it says and logs in the file `log` there; kill it in the end.

    Args:
        folder: Where it runs, and where it finds the stand-in.
        port: Where it listens.
        said: Where its standard output goes instead.
        model: The variables that name its model.
    """
    variables = {"PYTHONPATH": f"{folder}:{HOUSE}", "HOME": str(folder), "PALIMPSEST_EMBEDDER": "none", **model}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "palimpsest", "dev", "--port", str(port)],
            cwd=folder,
            env=variables,
            stdout=said or log,
            stderr=log,
            umask=0o022,
            preexec_fn=heed_signals,
        )
    try:
        yield server
    finally:
        server.kill()
        server.wait()


def local_model_of(server: subprocess.Popen[bytes]) -> int:
    """Return the id of its one child."""
    (child,) = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    return int(child)


def test_what_works_in_the_background_is_served_with_a_lower_priority_and_ends_with_its_parent(
    weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{HOUSE}")
    local = start_local_model(weights)
    try:
        chat, background = (
            json.load(urlopen(url.removesuffix("/v1"), timeout=60)) for url in (local.base_url, local.background_url)
        )
    finally:
        local.process.kill()
        local.process.communicate()
    assert chat[0] == local.process.pid != background[0]
    assert chat[1] < background[1] or chat[1] == 19  # nothing is lower, where the tests themselves run so
    # Of two sessions, Linux gives each the same share, whatever their priorities.
    assert chat[2] == background[2]
    eventually(lambda: not answers(local.background_url))


def test_the_command_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "langgraph.json").write_text("{}")
    (tmp_path / ".env").write_text("PALIMPSEST_MAX_FACTS=many\n")
    refused = CliRunner().invoke(main, ["dev"])
    assert (refused.exit_code, "PALIMPSEST_MAX_FACTS" in refused.output) == (1, True)
    (tmp_path / ".env").unlink()
    nothing = CliRunner().invoke(main, ["dev", "--config", "other.json"])
    assert (nothing.exit_code, "other.json" in nothing.output) == (1, True)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_is_one_process_that_ends_as_it_is_told_with_the_local_model_which_may_end_before(
    how: signal.Signals, weights: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with dev(tmp_path, port := free_port(), PALIMPSEST_LOCAL_MODEL=weights) as server:
        eventually(lambda: "Ctrl-C" in log.read_text(), timeout=240)
        assert f"Ready    http://127.0.0.1:{port}" in log.read_text()
        kept = [*tmp_path.glob(".palimpsest/*"), *tmp_path.glob(".langgraph_api/*")]
        assert {"store.sqlite", "checkpoints.sqlite", "store.pckl"} <= {path.name for path in kept}
        assert not [path.name for path in kept if path.stat().st_mode & 0o077]
        local = local_model_of(server)
        if how == signal.SIGINT:
            os.kill(local, signal.SIGKILL)
            eventually(lambda: "The local model ended with exit code -9: start again." in log.read_text())
        server.send_signal(how)
        assert server.wait(240) == 0  # behind imports of its first sweep, which a busy machine takes long for
        assert "Stopping ..." in log.read_text()
        assert "Traceback" not in log.read_text()
        eventually(lambda: not Path(f"/proc/{local}").exists())


def test_who_reads_no_more_what_it_says_ends_neither_it_nor_its_look_at_the_local_model(
    weights: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with dev(tmp_path, port := free_port(), subprocess.PIPE, PALIMPSEST_LOCAL_MODEL=weights) as server:
        assert server.stdout
        server.stdout.close()
        eventually(lambda: answers(f"http://127.0.0.1:{port}/ok"), timeout=240)
        os.kill(local_model_of(server), signal.SIGKILL)
        eventually(lambda: "The local model ended with exit code -9: start again." in log.read_text())
        assert "Exception in thread" not in log.read_text()


@pytest.mark.parametrize("after_seconds", [0.0, 0.3, 1.0, 2.0])
def test_an_interrupt_while_it_starts_ends_it_without_a_traceback(after_seconds: float, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with dev(tmp_path, free_port(), PALIMPSEST_LOCAL_BASE_URL="http://127.0.0.1:9/v1") as server:
        eventually(lambda: "Starting the server" in log.read_text(), timeout=60)
        time.sleep(after_seconds)
        server.send_signal(signal.SIGINT)
        assert server.wait(60) in (-signal.SIGINT, 0)  # 0 where it was a server by then, and ended as one
        assert "Traceback" not in log.read_text()
