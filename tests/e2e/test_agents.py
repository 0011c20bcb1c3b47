"""Agents with the middleware, run as their authors run them: on a real server, and as a program."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client

from memory.namespaces import Owner
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted, is_chat
from tests.e2e.speaking import say
from tests.e2e.waiting import eventually
from tests.stories.serving import PROJECT
from tests.stub_model import ChatRequest, StubModel


@dataclass(frozen=True, slots=True)
class Served:
    """A running server, and the agent that it serves."""

    server: DevServer
    graph: str
    agent_name: str

    def say(self, text: str, thread_id: str | None = None, **choices: Any) -> str:
        """Say something and return the thread."""
        with get_sync_client(url=self.server.url) as client:
            thread = client.threads.create(thread_id=thread_id, graph_id=self.graph, if_exists="do_nothing")
            config: Any = {"configurable": {"user_id": "ada", **choices}}
            client.runs.wait(thread["thread_id"], self.graph, input=say(text), config=config)
        return thread["thread_id"]

    def facts(self, user: str = "ada") -> list[str]:
        with get_sync_client(url=self.server.url) as client:
            found = client.store.search_items(Owner.of(user, self.agent_name).namespace("facts"), limit=100)
        return [item["value"]["content"] for item in found["items"]]

    def restart(self) -> None:
        self.server.kill9()
        self.server.start()


@pytest.fixture(scope="module", params=["agent", "deep_agent"])
def served(request: pytest.FixtureRequest, serve: Serve) -> Iterator[Served]:
    """A server of each example, in the strictest mode of reading checkpoints."""
    options = {"PALIMPSEST_DEBOUNCE_SECONDS": "1", "LANGGRAPH_STRICT_MSGPACK": "true"}
    if request.param == "agent":
        yield Served(serve("examples/langgraph.json", **options), "agent", "support")
    else:
        pytest.importorskip("deepagents")
        yield Served(serve("examples/deep_agent.json", **options), "deep_agent", "assistant")


@pytest.fixture
def prompts(served: Served, model: StubModel) -> "Prompts":
    if not served.server.running:
        served.server.start()
    return Prompts(model)


@dataclass(frozen=True, slots=True)
class Prompts:
    """What the agent's model was sent."""

    model: StubModel

    def of(self, text: str) -> ChatRequest:
        """Return the newest prompt whose last message says this."""
        return [one for one in self.model.requests if is_chat(one) and text in one.last][-1]


def test_what_is_told_is_known_in_another_thread_after_kill_9(
    served: Served, model: StubModel, prompts: Prompts
) -> None:
    model.respond = Scripted(learns={"moved to Bergen": "User lives in Bergen."})
    served.say("I moved to Bergen.")
    eventually(lambda: served.facts() == ["User lives in Bergen."])
    served.restart()
    served.say("Will it rain?")
    assert "- [knowledge | 0.90] User lives in Bergen." in prompts.of("Will it rain?").text
    served.say("Is it warm?", user_id="bob")
    assert "Bergen" not in prompts.of("Is it warm?").text


def test_the_example_runs_as_a_program(model: StubModel) -> None:
    model.respond = Scripted(learns={"peanuts": "User is allergic to peanuts."})
    done = subprocess.run(
        [sys.executable, str(PROJECT / "examples" / "agent.py")],
        cwd=PROJECT, capture_output=True, encoding="utf-8", timeout=300, check=False,
        env={"PYTHONPATH": str(PROJECT), "PATH": "/usr/bin:/bin", "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "x"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Noted.") == 2
    assert "User is allergic to peanuts" in [one for one in model.requests if is_chat(one)][-1].text


def programs() -> list[str]:
    page = (PROJECT / "docs" / "build" / "agents.md").read_text()
    found: list[str] = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [program for program in found if "PalimpsestMemory" in program]


@pytest.mark.parametrize("program", programs())
def test_what_the_pages_print_runs(program: str, model: StubModel, tmp_path: Path) -> None:
    model.respond = Scripted()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=300, check=False,
        env={"PYTHONPATH": str(PROJECT), "PATH": "/usr/bin:/bin", "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "x"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert ("Noted." in done.stdout) == ("print" in program)
