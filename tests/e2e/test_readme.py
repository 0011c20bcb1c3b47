"""What the README and the first pages of `docs/` print is run as it is printed; only the port is another."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from langchain_openai import ChatOpenAI

from graphs.process.models import load_chat_model
from graphs.settings import Settings
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.javascript import FOLDER
from tests.e2e.scripted import Scripted
from tests.e2e.waiting import eventually
from tests.exports import FIGS, chatgpt, claude, zipped
from tests.stories.serving import PROJECT
from tests.stub_model import ChatRequest, StubModel

README = (PROJECT / "README.md").read_text()
READ = ("use/first-steps.md", "use/forget.md", "use/import.md", "build/extend.md")
PAGES = "".join((PROJECT / "docs" / page).read_text() for page in READ)
COMMANDS = (PROJECT / "docs" / "use" / "commands.md").read_text()
PROGRAMS = (PROJECT / "docs" / "build" / "programs.md").read_text()
EXAMPLES = PROJECT / "examples"
ALLERGY = "User is allergic to peanuts."


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.2")


def answer(request: ChatRequest) -> str:
    return "No peanuts." if ALLERGY in request.text else "Noted."


def snippets(language: str, server: DevServer, text: str = README) -> list[str]:
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [snippet.replace("http://127.0.0.1:2024", server.url) for snippet in found]


def run(folder: Path, *command: str, **environment: str) -> str:
    variables = {"PATH": os.defpath, "PYTHONPATH": str(PROJECT), **environment}
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, encoding="utf-8", timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def example(name: str, folder: Path) -> Path:
    """Write an example into a folder, beside what it imports, and return where."""
    for beside in EXAMPLES.glob("here.*"):
        shutil.copy(beside, folder)
    return Path(shutil.copy(EXAMPLES / name, folder))


def test_the_first_conversations_and_what_is_remembered(server: DevServer, model: StubModel, tmp_path: Path) -> None:
    model.respond = Scripted(learns={"allergic to peanuts": ALLERGY}, chat=answer)
    marks = ("Likes figs", "Answer in one sentence", "erase/everything")
    see, choose, erase = (next(one for one in snippets("sh", server, PAGES) if mark in one) for mark in marks)

    here = {"PALIMPSEST_DATA_DIR": str(server.data)}  # where the server leaves its address
    assert run(tmp_path, sys.executable, str(example("hello.py", tmp_path)), **here) == "Noted.\n"
    eventually(lambda: ALLERGY in run(tmp_path, "sh", "-c", see))
    (shown,) = [snippet for snippet in snippets("sh", server) if "curl" in snippet]
    assert ALLERGY in run(tmp_path, "sh", "-c", shown)
    assert "Likes figs" in run(tmp_path, "sh", "-c", see)
    if (node := shutil.which("node")) and (FOLDER / "node_modules").is_dir():
        (tmp_path / "node_modules").symlink_to(FOLDER / "node_modules")
        assert run(tmp_path, node, str(example("hello.mjs", tmp_path)), **here) == "No peanuts.\n"

    assert "No peanuts." in run(tmp_path, "sh", "-c", choose)
    assert any(request.messages[0]["content"].startswith("Answer in one sentence.") for request in model.requests)

    with httpx.Client(base_url=server.url, timeout=60) as client:
        figs = next(fact for fact in client.get("/memory/facts").json()["facts"] if fact["content"] == "Likes figs")
        thread = client.post("/threads/search", json={"metadata": {"graph_id": "chat"}}).json()[0]
        erase = erase.replace("the id that /memory/facts shows", figs["id"])
        erased = run(tmp_path, "sh", "-c", erase.replace("the id of the thread", thread["thread_id"]))
        assert erased.count('"threads"') == 3
        assert '"detail"' not in erased
        assert client.get("/memory/facts").json()["facts"] == []


def test_commands_are_carried_out_as_printed(server: DevServer, model: StubModel, tmp_path: Path) -> None:
    model.respond = Scripted(chat=answer)
    here = {"PALIMPSEST_URL": server.url, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}"}
    (talk,) = [one for one in snippets("sh", server, COMMANDS) if "palimpsest chat" in one]
    run(tmp_path, "sh", "-ec", talk.replace("palimpsest chat", 'palimpsest chat "Hello."'), **here)
    assert "Is allergic to peanuts" in (tmp_path / "backup.jsonl").read_text()

    (there_and_back,) = [one for one in snippets("sh", server, PAGES) if "memory.jsonl" in one]
    assert '"refused"' in run(tmp_path, "sh", "-ec", there_and_back)
    (tmp_path / "chatgpt-export.zip").write_bytes(zipped([chatgpt("a", "2024-05-08T14:00:00", FIGS)]))
    (tmp_path / "claude-export.zip").write_bytes(zipped([claude("b", "2024-05-09T14:00:00", FIGS)]))
    (elsewhere,) = [one for one in snippets("sh", server, PAGES) if "backfill" in one]
    assert "claude" in run(tmp_path, "sh", "-ec", elsewhere.replace("source chatgpt", "source chatgpt --yes"), **here)
    (line,) = [one for one in snippets("json", server, PAGES) if "conversation" in one]
    (tmp_path / "trip.jsonl").write_text(line)
    assert "messages\t1" in run(tmp_path, "palimpsest", "backfill", "trip.jsonl", "--dry-run", **here)
    (metrics,) = snippets("sh", server, (PROJECT / "docs" / "run" / "operations.md").read_text())
    assert "palimpsest_turns_total" in run(tmp_path, "sh", "-c", metrics)
    (erase,) = [one for one in snippets("sh", server) if "erase everything" in one]
    run(tmp_path, "sh", "-ec", erase.replace(".venv/bin/", "").replace("everything", "everything --yes"), **here)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        assert client.get("/memory/facts").json()["facts"] == []


def test_a_provider_of_the_readme_is_one_that_settings_take() -> None:
    (ollama,) = [
        snippet for snippet in re.findall(r"^```sh\n(.*?)^```$", PAGES, re.DOTALL | re.M) if "11434" in snippet
    ]
    environ = dict(line.split('"')[1].split("=", 1) for line in ollama.splitlines())
    settings = Settings.from_environment(environ)
    assert (settings.model, settings.openai_base_url) == ("openai:qwen3:8b", "http://127.0.0.1:11434/v1")
    model = load_chat_model(settings.model, settings, purpose="chat")
    assert isinstance(model, ChatOpenAI)
    assert model.model_name == "qwen3:8b"


def test_what_make_offers_is_listed_by_make() -> None:
    listed = run(PROJECT, "make")
    for target in re.findall(r"`make ([a-z0-9-]+)", README):
        assert f"make {target} " in listed


def test_a_program_of_ones_own(server: DevServer, model: StubModel, tmp_path: Path) -> None:
    model.respond = Scripted(chat=answer)
    (program,) = (one for one in snippets("python", server, PROGRAMS) if "build_graph" in one)
    (tmp_path / "program.py").write_text(program)
    provider = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "stub"}
    assert run(tmp_path, sys.executable, "program.py", **provider) == "Noted.\n"


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= 900


def test_an_agent_of_ones_own_prints_what_the_readme_says(server: DevServer, model: StubModel, tmp_path: Path) -> None:
    model.respond = Scripted(learns={"allergic to peanuts": ALLERGY})
    (program,) = snippets("python", server)
    (told,) = re.findall(r"^# (.*)$", program, re.MULTILINE)
    (tmp_path / "program.py").write_text(program)
    provider = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "stub"}
    assert run(tmp_path, sys.executable, "-W", "error", "program.py", **provider) == f"{told}\n"
