"""What the README prints is run as it is printed; only the port is another."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import PROJECT, DevServer
from tests.e2e.javascript import FOLDER
from tests.e2e.scripted import Scripted
from tests.e2e.waiting import eventually
from tests.stub_model import ChatRequest, StubModel

README = (PROJECT / "README.md").read_text()
ALLERGY = "User is allergic to peanuts."


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.2")


def answer(request: ChatRequest) -> str:
    return "No peanuts." if ALLERGY in request.text else "Noted."


def snippets(language: str, server: DevServer) -> list[str]:
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [snippet.replace("http://127.0.0.1:2024", server.url) for snippet in found]


def run(folder: Path, *command: str, **environment: str) -> str:
    variables = {"PATH": os.defpath, "PYTHONPATH": str(PROJECT), **environment}
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_conversations_and_what_is_remembered(server: DevServer, model: StubModel, tmp_path: Path) -> None:
    model.respond = Scripted(learns={"allergic to peanuts": ALLERGY}, chat=answer)
    (talk, _), (question,) = snippets("python", server), snippets("js", server)
    (curls,) = [snippet for snippet in snippets("sh", server) if "curl" in snippet]
    (tmp_path / "hello.py").write_text(talk)
    (tmp_path / "hello.mjs").write_text(question)

    assert run(tmp_path, sys.executable, "hello.py") == "Noted.\n"
    eventually(lambda: ALLERGY in run(tmp_path, "sh", "-c", curls))
    assert "Likes figs" in run(tmp_path, "sh", "-c", curls)
    node = shutil.which("node")
    if not node or not (FOLDER / "node_modules").is_dir():
        pytest.skip("the JavaScript client needs Node and `make test`, which installs tests/e2e/js once")
    (tmp_path / "node_modules").symlink_to(FOLDER / "node_modules")
    assert run(tmp_path, node, "hello.mjs") == "No peanuts.\n"


def test_a_program_of_ones_own(server: DevServer, model: StubModel, tmp_path: Path) -> None:
    model.respond = Scripted(chat=answer)
    _, program = snippets("python", server)
    (tmp_path / "program.py").write_text(program)
    provider = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "stub"}
    assert run(tmp_path, sys.executable, "program.py", **provider) == "Noted.\n"


def test_every_file_that_is_linked_is_there() -> None:
    for page in [
        PROJECT / "README.md",
        PROJECT / "CONTRIBUTING.md",
        PROJECT / "ARCHITECTURE.md",
        *(PROJECT / "docs").glob("*.md"),
    ]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_test_that_a_promise_rests_on_is_there() -> None:
    promises = (PROJECT / "docs/what-can-be-lost.md").read_text()
    cited = re.findall(r"`([\w/.]+\.py|…)::(\w+)`", promises)
    assert len(cited) > 20
    file = ""
    for path, test in cited:
        file = path if path != "…" else file
        assert f"def {test}(" in (PROJECT / file).read_text(), f"{file}::{test}"
