"""What a person can make their memory do, through the SDK and the memory API of a running server."""

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from langgraph_sdk.client import SyncLangGraphClient

from tests.e2e.dev_server import DevServer
from tests.e2e.guarded_server import api, guarded_server, sdk
from tests.e2e.scripted import Scripted, is_chat, is_extraction
from tests.e2e.speaking import say
from tests.e2e.waiting import eventually
from tests.stub_model import ChatRequest, Reply, StubModel

SMALL = {"max_tokens": 900, "max_summary_tokens": 120, "memory_tokens": 200, "reply_tokens": 100}


class Corrects(Scripted):
    """Answers as `Scripted`, but what it learns corrects the one fact that is known."""

    def _facts(self, request: ChatRequest) -> list[dict[str, object]]:
        return [{**fact, "action": "corrects", "known": 1} for fact in super()._facts(request)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, stub: StubModel) -> Iterator[DevServer]:
    folder = tmp_path_factory.mktemp("control")
    with guarded_server(folder, stub.url, PALIMPSEST_DEBOUNCE_SECONDS="0.2") as server:
        yield server


class Person:
    """One user who talks, and controls what is remembered."""

    def __init__(self, server: DevServer, stub: StubModel, name: str) -> None:
        self.server, self.stub = server, stub
        self.client: SyncLangGraphClient = sdk(server, name)
        self.memory: httpx.Client = api(server, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.client.close()
        self.memory.close()

    def thread(self, **metadata: Any) -> str:
        return str(self.client.threads.create(metadata=metadata)["thread_id"])

    def says(self, text: str, thread_id: str | None = None, assistant: str = "chat", **options: Any) -> str:
        """Say something and return the prompt that the model was sent for it."""
        thread_id = thread_id or self.thread()
        self.stub.clear()
        state: Any = self.client.runs.wait(thread_id, assistant, input=say(text), **options)
        assert state["messages"][-1]["type"] == "ai", state
        return next(request.text for request in reversed(self.stub.requests) if is_chat(request))

    def facts(self) -> list[str]:
        return [fact["content"] for fact in self.memory.get("/facts").json()["facts"]]

    def knows(self, *contents: str) -> None:
        """Wait until exactly this is known and nothing is pending."""
        eventually(lambda: self.memory.get("/overview").json()["pending"] == 0 and self.facts() == list(contents))

    def stored(self, text: str, *, also: str = "") -> list[str]:
        """Names of the server's files that hold a text; the log is one of them."""
        return sorted(name for name, kept in self.server.stored().items() if text.encode() in kept and name != also)


@pytest.fixture
def person(server: DevServer, model: StubModel, request: pytest.FixtureRequest) -> Iterator[Person]:
    model.respond = Scripted()
    with Person(server, model, request.node.name) as person:
        yield person


def learns(**contents: str) -> Mapping[str, str]:
    return {phrase.replace("_", " "): content for phrase, content in contents.items()}


def test_told_known_corrected_undone_erased_and_not_coming_back(person: Person) -> None:
    told, asked = person.thread(), person.thread()
    person.stub.respond = Scripted(learns=learns(live_in_Oslo="Lives in Oslo"))
    person.says("I live in Oslo.", told)
    person.knows("Lives in Oslo")
    assert "Lives in Oslo" in person.says("Where do I live?", asked)

    person.stub.respond = Corrects(learns=learns(moved_to_Bergen="Lives in Bergen"))
    person.says("I moved to Bergen.", told)
    person.knows("Lives in Bergen")
    prompt = person.says("And now?", asked)
    assert "Lives in Bergen" in prompt
    assert "Lives in Oslo" not in prompt

    undone = person.memory.post("/undo", json={}).json()
    assert [fact["content"] for fact in undone["restored"]] == ["Lives in Oslo"]
    prompt = person.says("And now?", asked)
    assert "- [knowledge | 0.90] Lives in Oslo" in prompt
    assert "Lives in Bergen" not in prompt

    (fact,) = person.memory.get("/facts").json()["facts"]
    erased = person.memory.post("/erase/fact", json={"fact_id": fact["id"]}).json()
    assert erased["still_in_threads"] == [told]
    assert "Lives in Oslo" not in person.says("And now?", asked)

    person.stub.respond = Scripted(learns=learns(live_in_Oslo="Lives in Oslo", moved_to_Bergen="Lives in Bergen"))
    person.says("Good day.", told)
    person.knows()
    assert "Lives in" not in person.says("And now?", person.thread())


def test_what_was_shown_in_a_turn_is_told_with_the_tokens_of_each_part(person: Person) -> None:
    person.memory.post("/facts", json={"content": "Lives in Oslo", "category": "knowledge"})
    thread = person.thread()
    person.says("Where do I live?", thread)
    turn = person.memory.get(f"/threads/{thread}/turn").json()
    assert [fact["content"] for fact in turn["facts"]] == ["Lives in Oslo"]
    assert {"system", "memory", "recalled", "summary", "messages", "budget"} <= set(turn["tokens"])
    assert turn["tokens"]["memory"] > 0
    # What is no message cannot be added to the state, which the server then fails to read.
    no_message: Any = {"messages": [{"role": "nobody", "content": "x"}]}
    person.client.runs.wait(thread, "chat", input=no_message, raise_error=False)
    assert person.memory.get(f"/threads/{thread}/turn").json() == turn


def test_incognito_leaves_no_trace_outside_the_checkpoint(person: Person) -> None:
    person.memory.post("/facts", json={"content": "Likes pears", "category": "preference"})
    person.stub.respond = Scripted(learns=learns(pangolin="Keeps a pangolin"))
    thread = person.thread()
    person.memory.put(f"/threads/{thread}/mode", json={"mode": "incognito"}).raise_for_status()
    for n in range(8):
        prompt = person.says(
            f"{n}: My pangolin is ill. " + "It eats ants and sleeps all day. " * 8, thread, context=SMALL
        )
        assert "Likes pears" not in prompt
    # Of this person: memory may still ask about what another said in the test before.
    assert not [one for one in person.stub.requests if is_extraction(one) and "pangolin" in one.text]
    person.memory.put(f"/threads/{thread}/mode", json={"mode": "normal"}).raise_for_status()
    for n in range(8):
        person.says(f"{n}: The weather is fine. " + "The sun shines and it is warm today. " * 8, thread, context=SMALL)
    person.knows("Likes pears")
    assert person.memory.get("/journal").json()["total"] > 0
    assert "pangolin" not in person.memory.get("/export").text
    assert "pangolin" in str(person.client.threads.get_state(thread)["values"])
    outside = [name for name in person.stored("pangolin") if not name.startswith(("checkpoints.sqlite", ".langgraph"))]
    assert outside == []


def test_read_only_uses_memory_and_learns_nothing(person: Person) -> None:
    person.memory.post("/facts", json={"content": "Likes pears", "category": "preference"})
    person.stub.respond = Scripted(learns=learns(plums="Likes plums"))
    thread = person.thread(memory_mode="read_only")
    assert "Likes pears" in person.says("I like plums.", thread)
    person.client.threads.update(thread, metadata={"memory_mode": "normal"})
    person.says("I like figs.", thread)
    person.knows("Likes pears")


@pytest.mark.parametrize(
    "loosened",
    [
        {"context": {"memory_mode": "normal"}},
        {"config": {"configurable": {"memory_mode": "normal"}}},
        {"metadata": {"memory_mode": "normal"}},
    ],
    ids=["context", "configurable", "metadata"],
)
def test_no_client_loosens_the_mode_of_an_assistant_or_a_thread(person: Person, loosened: dict[str, Any]) -> None:
    person.memory.post("/facts", json={"content": "Likes pears", "category": "preference"})
    with sdk(person.server, "olga", permissions=["palimpsest:operator"]) as operator:
        strict = operator.assistants.create(
            "chat", context={"memory_mode": "incognito"}, metadata={"published": "true"}
        )["assistant_id"]
    assert "Likes pears" not in person.says("What do I like?", person.thread(), strict, **loosened)
    assert "Likes pears" not in person.says("What do I like?", person.thread(memory_mode="incognito"), **loosened)
    assert "Likes pears" in person.says("What do I like?", person.thread(), **loosened)


def test_a_run_may_be_stricter_than_its_thread(person: Person) -> None:
    person.memory.post("/facts", json={"content": "Likes pears", "category": "preference"})
    assert "Likes pears" not in person.says("Hello", context={"memory_mode": "incognito"})


def test_paused_learning_learns_nothing_and_goes_on_when_resumed(person: Person) -> None:
    person.stub.respond = Scripted(learns=learns(plums="Likes plums", figs="Likes figs"))
    thread = person.thread()
    person.memory.put("/learning", json={"learning": False})
    person.says("I like plums.", thread)
    person.memory.put("/learning", json={"learning": True})
    person.says("I like figs.", thread)
    person.knows("Likes figs")


def test_an_erased_thread_is_in_no_file(person: Person) -> None:
    person.stub.respond = Scripted(learns=learns(axolotl="Keeps an axolotl", heron="Feeds a heron"))
    thread, other = person.thread(), person.thread()
    for n in range(8):
        person.says(f"{n}: My axolotl is ill. " + "It swims and it sleeps all day. " * 8, thread, context=SMALL)
    person.says("I feed a heron.", other)
    person.knows("Feeds a heron", "Keeps an axolotl")
    assert {"checkpoints.sqlite", "store.sqlite"} <= {name.removesuffix("-wal") for name in person.stored("axolotl")}

    erased = person.memory.post("/erase/thread", json={"thread_id": thread}).json()

    assert erased["threads"] == 1
    assert [name for name in person.stored("axolotl") if "sqlite" in name] == []
    eventually(lambda: person.stored("axolotl") == [])
    person.knows("Feeds a heron")


def test_everything_erased_is_in_no_file_and_nobody_else_loses_anything(server: DevServer, person: Person) -> None:
    person.stub.respond = Scripted(learns=learns(capybara="Keeps a capybara"))
    with Person(server, person.stub, "neighbour") as neighbour:
        neighbour.says("I keep a capybara of my own.")
        neighbour.knows("Keeps a capybara")
    person.says("My capybara's name is Wombert.")
    person.memory.post("/facts", json={"content": "Wombert is old", "category": "context"})
    person.knows("Wombert is old", "Keeps a capybara")

    erased = person.memory.post("/erase/everything", json={"erase": "everything"}).json()

    assert erased["threads"] == 1
    assert person.client.threads.search(limit=100) == []
    assert person.facts() == []
    assert [name for name in person.stored("Wombert") if "sqlite" in name] == []
    eventually(lambda: person.stored("Wombert") == [])
    with Person(server, person.stub, "neighbour") as neighbour:
        assert neighbour.facts() == ["Keeps a capybara"]
    person.says("Hello again")
    person.knows()


def test_what_is_erased_while_its_extraction_is_in_flight_does_not_come_back(person: Person) -> None:
    gate = threading.Event()

    def is_of_numbat(request: ChatRequest) -> bool:
        return is_extraction(request) and "numbat" in request.text

    def respond(request: ChatRequest) -> Reply | str:
        return Reply(text=found, gate=gate) if is_of_numbat(request) else learns_emu(request)

    found = json.dumps({"facts": [{**FACT, "content": "Keeps a numbat"}], "profile": []})
    learns_emu = Scripted(learns=learns(emu="Keeps an emu"))
    person.stub.respond = respond
    thread = person.thread()
    person.says("I keep a numbat.", thread)
    person.stub.wait_for(is_of_numbat)
    person.memory.post("/erase/thread", json={"thread_id": thread}).raise_for_status()
    gate.set()
    # Its pending update went with the thread, so nobody sees it end. Updates of one user follow each other: once the
    # next one is done, so is that one.
    person.says("I keep an emu.")
    person.knows("Keeps an emu")
    eventually(lambda: [name for name in person.stored("numbat") if "sqlite" in name] == [])


FACT = {"message": 1, "action": "new", "known": 0, "category": "knowledge", "confidence": 0.9}


def test_delayed_runs_of_the_memory_graph_work_though_clients_may_not_start_them(
    tmp_path: Path, model: StubModel
) -> None:
    model.respond = Scripted(learns=learns(plums="Likes plums"))
    delayed = guarded_server(tmp_path, model.url, PALIMPSEST_TRIGGER="run", PALIMPSEST_DEBOUNCE_SECONDS="0.2")
    with delayed as server, Person(server, model, "ada") as ada:
        ada.says("I like plums.")
        ada.knows("Likes plums")
        assert "no run could be scheduled" not in server.log


def test_no_log_line_holds_what_anybody_said(server: DevServer, person: Person) -> None:
    person.stub.respond = Scripted(learns=learns(okapi="Keeps an okapi"))
    person.says("I keep an okapi.")
    person.knows("Keeps an okapi")
    person.memory.post("/facts/search", json={"text": "okapi"})
    for text in ("okapi", "axolotl", "Wombert", "pangolin"):
        assert text not in server.log
