"""What those who run a server do: look in with Studio and metrics, use the commands, crash it and stop it."""

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.errors import UnprocessableEntityError

from tests.e2e.waiting import eventually
from tests.stories.conftest import Meet
from tests.stories.host import Place
from tests.stories.model import answer
from tests.stories.people import Person, message
from tests.stories.serving import SECRET, Server, variables
from tests.stub_model import ChatRequest, Reply, StubModel

STUDIO = "https://smith.langchain.com"


class Crashing:
    """A server of these stories' own, and its model, which reads nothing for memory until the gate is open."""

    def __init__(self, folder: Path, model: StubModel) -> None:
        self.gate = threading.Event()
        model.respond, self.model = self.respond, model
        # Shutting down waits for no model that hangs.
        self.server = Server(folder, model.url, environment={"PALIMPSEST_DRAIN_SECONDS": "1"})

    def respond(self, request: ChatRequest) -> Reply | str:
        said = answer(request)
        return replace(said, gate=self.gate) if isinstance(said, Reply) and request.schema else said

    def ends(self, how: signal.Signals, said: str) -> None:
        """End the server while the model reads what was said, and start it again with a model that answers."""
        self.model.wait_for(lambda request: bool(request.schema) and said in request.text)
        self.server.stop(how)
        self.gate.set()
        self.server.launch()
        self.server.wait()


@pytest.fixture(scope="module")
def crashing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crashing]:
    with StubModel() as model:
        crashing = Crashing(tmp_path_factory.mktemp("crashing"), model)
        with crashing.server:
            yield crashing


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_40_what_was_said_before_the_server_ended_is_learned_once_after_its_start(
    crashing: Crashing, how: signal.Signals
) -> None:
    crashing.gate.clear()
    server, said = crashing.server, f"I expect {how.name}."
    with Person(Place(server.url, server.folder, False), how.name) as ada:
        thread = ada.thread()
        ada.says(said, thread)
        just_begun = [ada.thread() for _ in range(4)]
        for each in just_begun:
            ada.says("Good day.", each)
        crashing.ends(how, said)
        assert all(map(ada.state, [thread, *just_begun]))  # at once, though the server saves rows every ten seconds
        ada.knows(f"User expects {how.name}.")
        assert said in ada.sees(thread=thread)
        assert f"0.90] User expects {how.name}." in ada.sees("signals")
        ada.knows(f"User expects {how.name}.")


def test_41_studio_finds_graphs_schemas_threads_and_the_store(opened: Place, meet: Meet) -> None:
    ada = meet(opened)
    asked = {
        "Origin": STUDIO,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Private-Network": "true",
    }
    for path in "/threads", "/memory/facts", "/runs/stream":
        assert ada.http.options(path, headers=asked).headers["access-control-allow-private-network"] == "true"
        assert ada.http.options(path, headers={**asked, "Origin": "https://evil.example"}).status_code == 403
    assert {each["graph_id"] for each in ada.sdk.assistants.search()} == {"chat"}
    (chat, *_) = ada.sdk.assistants.search(graph_id="chat")
    schemas: Any = ada.sdk.assistants.get_schemas(chat["assistant_id"])
    assert {"max_tokens", "system_prompt", "memory_mode"} <= set(schemas["context_schema"]["properties"])
    assert "messages" in schemas["input_schema"]["properties"]
    graph: Any = ada.sdk.assistants.get_graph(chat["assistant_id"])
    assert {"inject_memory", "summarize", "call_model", "flush_memory"} <= {node["id"] for node in graph["nodes"]}
    thread = ada.thread()
    ada.says("I live in Oslo.", thread)
    ada.knows("User lives in Oslo.")
    assert ada.sdk.threads.get(thread)["status"] == "idle"
    items = ada.sdk.store.search_items([], limit=1000)["items"]
    (fact,) = [each for each in items if each["value"].get("content") == "User lives in Oslo."]
    with pytest.raises(UnprocessableEntityError, match="TTL is not supported"):
        ada.sdk.store.put_item(fact["namespace"], fact["key"], fact["value"], ttl=5)


def test_42_metrics_count_what_happened_and_name_nobody(opened: Place, meet: Meet) -> None:
    ada = meet(opened)

    def turns() -> float:
        found = re.search(r'^palimpsest_turns_total\{.*written="queued".*\} (\S+)$', metrics(), re.M)
        return float(found[1]) if found else 0

    def metrics() -> str:
        return ada.http.get("/metrics").text

    before = turns()
    ada.says("I keep a lemur.")
    ada.knows("User keeps a lemur.")
    assert turns() >= before + 1
    for counted in "facts_total", "model_calls_total", "summaries_total":
        assert f"palimpsest_{counted}" in metrics()
    assert "lemur" not in metrics()
    assert "lemur" not in (opened.folder / "server.log").read_text("utf-8", "replace")


@pytest.mark.parametrize("is_pruned", [False, True])
def test_43_a_thread_that_its_user_deletes_takes_what_it_taught_along(ada: Person, is_pruned: bool) -> None:
    thread = ada.thread()
    ada.says("I keep a dugong.", thread)
    ada.says("I feed a heron.")
    ada.knows("User keeps a dugong.", "User feeds a heron.")
    if is_pruned:
        with pytest.raises(UnprocessableEntityError):  # not in `langgraph dev`: the thread lives, and what it taught
            ada.sdk.threads.prune([thread], strategy="keep_latest")
        assert len(ada.facts()) == 2
        ada.sdk.threads.prune([thread])
    else:
        ada.sdk.threads.delete(thread)
    eventually(lambda: ada.facts() == ["User feeds a heron."])
    eventually(lambda: ada.place.holding("dugong") == [])


def test_44_a_chat_page_that_is_reloaded_joins_the_run_and_finds_its_thread(ada: Person) -> None:
    thread = ada.thread()
    body = {"assistant_id": "chat", "input": message("Take your time."), "stream_resumable": True}
    with ada.http.stream("POST", f"/threads/{thread}/runs/stream", json=body) as response:
        events = list(response.iter_lines())
        location = response.headers["content-location"]
    with ada.http.stream("GET", f"{location}/stream", headers={"Last-Event-ID": "-1"}) as response:
        assert len(list(response.iter_lines())) == len(events)
    (found,) = ada.sdk.threads.search(metadata={"graph_id": "chat"})
    values: Any = found["values"]
    assert values["messages"][-1]["content"] == "One word after the other."
    assert ada.sdk.runs.list(thread)[0]["status"] == "success"


class Terminal:
    """Somebody's terminal, in a folder of its own."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder, self.settings = folder, settings

    def run(self, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [Path(sys.executable).parent / "palimpsest", *words], cwd=self.folder, env=variables(**self.settings),
            input=typed, capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    def does(self, *words: str) -> Any:
        """Return what a command answers to programs."""
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def test_45_a_terminal_talks_looks_takes_back_and_carries_away(guarded: Place, tmp_path: Path) -> None:
    server = Terminal(tmp_path, PALIMPSEST_AUTH_SECRET=SECRET)
    token = server.run("token", "ada of the terminal").stdout.strip()
    terminal = Terminal(tmp_path, PALIMPSEST_URL=guarded.url, PALIMPSEST_TOKEN=token)
    talked = terminal.run("chat", "--wait", "120", typed="I live in Oslo.\n")
    assert (talked.returncode, talked.stdout) == (0, "Noted.\n"), talked.stderr
    assert "learned: User lives in Oslo." in talked.stderr
    (fact,) = terminal.does("facts", "list")["facts"]
    assert terminal.does("pending", "list")["updates"] == []
    assert terminal.does("export", "memory.json")["bytes"] > 0
    terminal.does("facts", "delete", fact["id"])
    assert terminal.does("facts", "list")["facts"] == []
    imported = terminal.does("import", "memory.json")
    assert "User lives in Oslo." in terminal.run("facts", "list").stdout, imported
    assert terminal.run("facts", "show", "fact_00000000").returncode == 1


def test_46_the_doctor_says_what_works_and_what_does_not(opened: Place, tmp_path: Path) -> None:
    settings = {"PALIMPSEST_URL": opened.url, "PALIMPSEST_DATA_DIR": str(opened.folder / "data")}
    done = Terminal(tmp_path, **settings, PALIMPSEST_DEBOUNCE="1").run("doctor", "--no-ask", "--json")
    findings = json.loads(done.stdout)["findings"]
    assert "PALIMPSEST_DEBOUNCE" in json.dumps(findings)
    assert "server" in json.dumps(findings)
    away = Terminal(tmp_path, PALIMPSEST_URL="http://127.0.0.1:9").run("facts", "list")
    assert away.returncode == 1
    assert "Traceback" not in away.stderr
    assert httpx.get(f"{opened.url}/ok", timeout=60).is_success
