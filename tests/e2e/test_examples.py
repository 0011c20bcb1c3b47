"""The example clients, run as a user runs them, against the shipped server."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.javascript import FOLDER
from tests.e2e.scripted import Scripted, is_chat
from tests.stories.serving import PROJECT
from tests.stub_model import StubModel, always

EXAMPLES = PROJECT / "examples"
CHECKPOINT = re.compile(r"^  checkpoint (\S+) step (-?\d+) (\w+)$", re.M)


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="60")


@pytest.fixture(params=["python", "javascript"])
def example(request: pytest.FixtureRequest, tmp_path: Path, model: StubModel) -> list[str]:
    """The command that starts an example; the JavaScript one finds its client where the tests have it installed."""
    model.respond = Scripted(chat=always("Noted, thank you."))
    if request.param == "python":
        return [sys.executable, str(EXAMPLES / "stream.py")]
    node = shutil.which("node")
    if not node or not (FOLDER / "node_modules").is_dir():
        pytest.skip("the JavaScript client needs Node and `make test`, which installs it once")
    for script in EXAMPLES.glob("*.mjs"):
        shutil.copy(script, tmp_path)
    (tmp_path / "node_modules").symlink_to(FOLDER / "node_modules")
    return [node, str(tmp_path / "stream.mjs")]


def run(command: list[str], server: DevServer, *options: str, typed: str = "") -> str:
    done = subprocess.run(
        [*command, "--url", server.url, *options],
        cwd=PROJECT, input=typed, capture_output=True, encoding="utf-8", timeout=240, check=False,
        env={"PYTHONPATH": str(PROJECT), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def thread_of(output: str) -> str:
    return output.splitlines()[0].removeprefix("thread ")


def test_S6_what_is_piped_is_said_and_a_fork_leaves_it_out(
    example: list[str], server: DevServer, model: StubModel
) -> None:
    output = run(example, server, typed="I moved to Bergen.\n\nI like jazz.\n")
    assert output.count("\n> ") == 2
    first_turn = output.partition("> I like jazz.")[0]
    checkpoint_id = CHECKPOINT.findall(first_turn)[-1][0]
    model.clear()
    run(example, server, "--thread", thread_of(output), "--from", checkpoint_id, "--say", "What do you know?")
    # Beside it, memory may ask what it learns of the turns before.
    asked = [request for request in model.requests if is_chat(request)][-1].text
    assert "I moved to Bergen." in asked
    assert "I like jazz." not in asked


def test_both_clients_are_pinned_to_the_version_that_is_tested() -> None:
    packages = [json.loads((PROJECT / folder / "package.json").read_text("utf-8")) for folder in ("examples", "page")]
    (version,) = {each["dependencies"]["@langchain/langgraph-sdk"] for each in packages}
    assert version.startswith("1.15.")
