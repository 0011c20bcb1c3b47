"""Every recipe of docs/build/extend.md is run as it is printed, with a model that answers on loopback."""

import asyncio
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

import palimpsest
from graphs.process.deployment import load_deployment
from tests.e2e.scripted import Scripted
from tests.fakes import RecordingModel
from tests.stub_model import ChatRequest, Reply, StubModel

PAGE = Path(__file__).parents[2] / "docs" / "build" / "extend.md"
PROGRAM = re.compile(r"<!-- test: (\w+) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RECIPES: dict[str, str] = dict(PROGRAM.findall(PAGE.read_text()))
PACKAGES = Path(palimpsest.__file__).parents[1]

Run = Callable[[str], dict[str, Any]]


@pytest.fixture
def model() -> Iterator[StubModel]:
    script = Scripted(learns={"figs": "User likes figs."}, chat=lambda request: f"re: {request.last}")
    with StubModel(script) as stub:
        yield stub


@pytest.fixture
def run(model: StubModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a recipe in its own folder, whose provider is the stub, and returns its names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    monkeypatch.setenv("OPENAI_API_KEY", "stub")

    def start(name: str) -> dict[str, Any]:
        program = tmp_path / f"{name}.py"
        program.write_text(RECIPES[name])
        return runpy.run_path(str(program), run_name="__main__")

    return start


def output(name: str, model: StubModel, folder: Path) -> str:
    """Run a recipe in a process of its own, as it uses the one service that a process has; return what it prints."""
    provider = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "stub", "PYTHONPATH": str(PACKAGES)}
    done = subprocess.run(
        [sys.executable, "-c", RECIPES[name]],
        cwd=folder, env=provider, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_program_of_the_page_is_run_here() -> None:
    assert len(RECIPES) == PAGE.read_text().count("```python") + 1  # and the category's diff
    source = Path(__file__).read_text()
    assert [name for name in RECIPES if f'"{name}"' not in source] == []


def test_a_deployment_brings_a_tool_beside_the_shipped_ones(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("tool")
    monkeypatch.syspath_prepend(tmp_path)
    deployment = load_deployment("tool:deployment")
    call = AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Bergen"}, "id": "1"}])
    chat = RecordingModel(replies=[call, "Take an umbrella."])
    service = palimpsest.MemoryService(palimpsest.Settings(), lambda *_: chat)
    graph = palimpsest.build_graph(service=service, tools=deployment.tools).compile()
    asyncio.run(graph.ainvoke({"messages": [HumanMessage("What is the weather in Bergen?")]}))
    assert set(chat.bound) == {"current_time", "weather"}
    assert chat.prompts[-1][-1].text == "Rain in Bergen."


def test_an_agent_of_any_making_has_the_tools_of_memory(model: StubModel, tmp_path: Path) -> None:
    def search(request: ChatRequest) -> Reply | str:
        if request.last == "What must I not eat?":
            return Reply(tool_calls=(("search_memory", {"query": "allergic"}),))
        return "Peanuts." if "Is allergic to peanuts" in request.last else request.last

    model.respond = search
    assert output("memory_tools", model, tmp_path) == "Peanuts.\n"


def test_a_deployment_changes_what_the_memory_model_is_told_and_its_limits(run: Run, model: StubModel) -> None:
    names = run("extraction")
    settings = palimpsest.Settings.from_environment()
    config = names["make_service"](settings).settings.memory
    chat = RecordingModel(replies=['{"facts": []}'])
    palimpsest.extract_facts(chat, [HumanMessage("I take aspirin.", id="1")], config=config)
    assert chat.prompts[0][0].text.endswith("with its dose.")
    assert config.history_days == 365


def test_a_category_is_two_lines_in_one_file(tmp_path: Path) -> None:
    for package in ("graphs", "memory", "palimpsest"):
        shutil.copytree(PACKAGES / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    lines = RECIPES["category"].splitlines()[2:]
    file = tmp_path / "memory" / "config.py"
    source = file.read_text()
    taken, added = [line[1:] for line in lines if line[0] == "-"], [line[1:] for line in lines if line[0] == "+"]
    for old in taken:
        assert source.count(f"{old}\n") == 1
    source = source.replace(taken[0], added[0]).replace(taken[1], "\n".join(added[1:]))
    file.write_text(source)
    program = """
from palimpsest import FactStore, MemoryConfig
from langgraph.store.memory import InMemoryStore
from memory.extraction.form import FIELDS, answer_schema
facts = FactStore(InMemoryStore(), "ada", config=MemoryConfig(protected_categories=frozenset({"health"})))
facts.create("User takes aspirin.", "health", 0.9)
print([fact.category for fact in facts.list()])
assert '"health" (allergies, medicines, illnesses)' in FIELDS
assert "health" in str(answer_schema([], MemoryConfig()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={}, capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.stdout, done.stderr) == ("['health']\n", "")


def test_the_queue_learns_facts(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("updater")
    assert capsys.readouterr().out == "['User likes figs.']\n"
