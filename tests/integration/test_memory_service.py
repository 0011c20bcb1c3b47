"""The service of one process on SQLite and on Postgres: turns written down, triggers, sweeps, and an end in time."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.store.base import BaseStore
from langgraph_sdk.client import LangGraphClient

from graphs.background import build_memory_graph, parse
from graphs.delayed_runs import memory_thread_id
from graphs.persistence.sqlite_store import open_store
from graphs.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.effects import arun
from memory.facts.store import FactStore
from memory.namespaces import Owner
from memory.outbox.outbox import due_owners, read_entries, retry_dead, write
from memory.turn import Closing
from tests.fakes import Clock, RecordingModel, learns
from tests.memory_bench import ADA
from tests.postgres import open_async

BOB = Owner.of("bob")
PATIENCE = 60.0
NEVER = MemoryConfig(debounce_seconds=3600, max_wait_seconds=3600, update_spacing_seconds=0)
AT_ONCE = MemoryConfig(debounce_seconds=0, update_spacing_seconds=0)


def turn(text: str, number: int = 1) -> list[BaseMessage]:
    return [HumanMessage(text, id=f"u{number}"), AIMessage("Noted.", id=f"a{number}")]


def said(messages: list[BaseMessage], owner: Owner = ADA, thread_id: str = "T") -> Closing:
    return Closing(owner=owner, thread_id=thread_id, kind="turn", messages=messages)


@dataclass
class Server:
    """What the service asks of the server's client, recorded."""

    running: bool = False
    fails: bool = False
    created: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    opened: list[tuple[str, dict[str, str] | None]] = field(default_factory=list)
    squatted: dict[str, str] = field(default_factory=dict)

    @property
    def threads(self) -> "Threads":
        return Threads(self)

    @property
    def runs(self) -> "Runs":
        return Runs(self)


@dataclass
class Threads:
    server: Server

    async def create(self, *, thread_id: str, metadata: dict[str, str] | None, if_exists: str) -> dict[str, Any]:
        assert if_exists == "do_nothing"
        self.server.opened.append((thread_id, metadata))
        return {"thread_id": thread_id, "metadata": self.server.squatted or metadata}


@dataclass
class Runs:
    server: Server

    async def list(self, thread_id: str, *, status: str, limit: int) -> list[str]:
        assert (status, limit) == ("running", 1)
        return ["run"] if self.server.running else []

    async def create(self, thread_id: str, graph: str, **options: Any) -> None:
        if self.server.fails:
            raise ConnectionError("no server")
        self.server.created.append((thread_id, graph, options))


@dataclass
class Process:
    """One process's service with a model that learns."""

    memory: MemoryConfig = NEVER
    trigger: str = "thread"
    clock: Clock = field(default_factory=Clock)
    server: Server = field(default_factory=Server)
    model: RecordingModel = field(default_factory=lambda: RecordingModel(respond=learns))

    def __post_init__(self) -> None:
        self.service = self.begin()

    def begin(self) -> MemoryService:
        return MemoryService(
            Settings(memory=self.memory, trigger=self.trigger),
            lambda *_: self.model,
            clock=self.clock,
            client=lambda: cast("LangGraphClient", self.server),
        )

    async def say(self, store: BaseStore, text: str, number: int = 1, owner: Owner = ADA, thread: str = "T") -> Any:
        return await self.service.aremember(store, said(turn(text, number), owner=owner, thread_id=thread))

    async def close(self) -> bool:
        return await asyncio.to_thread(self.service.close, PATIENCE)


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BaseStore]:
    if request.param == "sqlite":
        async with open_store(tmp_path / "store.sqlite") as opened:
            yield opened
    else:
        async with open_async(request.getfixturevalue("postgres").database()) as opened:
            yield opened


async def learnt(store: BaseStore, owner: Owner = ADA) -> list[str]:
    return sorted(fact.content for fact in await FactStore.of_owner(store, owner).alist())


async def test_a_turn_whose_ids_and_text_no_database_takes_is_learnt_too(store: BaseStore) -> None:
    process = Process(memory=AT_ONCE)
    messages = [HumanMessage("I like \x00figs\ud800", id="u\x001"), AIMessage("Noted.", id="a\ud800")]
    await process.service.aremember(store, said(messages))
    assert await process.close()
    assert await learnt(store) == ["Likes figs"]


async def test_what_an_earlier_process_left_is_taken_over_with_the_first_turn(store: BaseStore) -> None:
    earlier = Process(trigger="run")
    await earlier.say(store, "I like figs")
    await earlier.say(store, "I like plums", owner=BOB, thread="B")
    asked, both = list[str](), threading.Event()

    def respond(messages: list[BaseMessage]) -> str:
        asked.append(messages[-1].text)
        if len(asked) == 2:
            both.set()
        return learns(messages)

    later = Process(model=RecordingModel(respond=respond))
    later.clock.advance(1)
    later.service = later.begin()
    await later.say(store, "I like kiwis", 2, thread="U")
    assert await asyncio.to_thread(both.wait, PATIENCE)
    assert "kiwis" not in "".join(asked)
    assert await later.close()
    assert await learnt(store) == ["Likes figs", "Likes kiwis"]
    assert await learnt(store, BOB) == ["Likes plums"]


async def test_once_a_day_a_sweep_finds_what_has_no_marker(store: BaseStore) -> None:
    process = Process(trigger="run")
    await process.service.asweep(store)
    await process.say(store, "I like figs")
    await store.adelete(ADA.due_namespace, ADA.due_key)
    process.clock.advance(23 * 3600)
    assert await process.service.asweep(store) == []
    process.clock.advance(3600)
    await process.service.asweep(store)
    assert await learnt(store) == ["Likes figs"]
    assert await arun(store, due_owners(None)) == []


async def test_the_trigger_run_schedules_one_run_on_a_thread_of_its_own(store: BaseStore) -> None:
    process = Process(trigger="run", memory=MemoryConfig(debounce_seconds=30, max_wait_seconds=120))
    queued = await process.say(store, "I like figs")
    ((thread_id, graph, options),) = process.server.created
    assert thread_id == queued.thread_id == memory_thread_id(ADA) != "T"
    assert process.server.opened == [(thread_id, None)]
    assert graph == "memory"
    assert options == {
        "input": {"drain": ADA.due_key},
        "after_seconds": 30,
        "multitask_strategy": "rollback",
        "stream_mode": ["values", "custom"],
    }


async def test_the_run_of_an_authenticated_user_may_be_followed_by_them(store: BaseStore) -> None:
    process = Process(trigger="run")
    await process.service.aremember(store, said(turn("I like figs")), reader="ada")
    assert process.server.opened == [(memory_thread_id(ADA), {"reader": "ada"})]


async def test_no_run_goes_to_a_thread_that_a_client_made_under_its_id(store: BaseStore) -> None:
    process = Process(trigger="run", server=Server(squatted={"owner": "mallory"}))
    assert await process.say(store, "I like figs") is not None
    assert process.server.created == []


async def test_the_trigger_run_waits_no_longer_than_the_maximum(store: BaseStore) -> None:
    process = Process(trigger="run", memory=MemoryConfig(debounce_seconds=30, max_wait_seconds=120))
    for number in range(1, 8):
        await process.say(store, f"I like figs{number}", number)
        process.clock.advance(20)
    assert [options["after_seconds"] for _, _, options in process.server.created] == [30, 30, 30, 30, 30, 20, 0]


async def test_the_trigger_run_never_replaces_a_drain_that_runs(store: BaseStore) -> None:
    process = Process(trigger="run", server=Server(running=True))
    await process.say(store, "I like figs")
    assert process.server.created[0][2]["multitask_strategy"] == "enqueue"


async def test_a_trigger_that_fails_fails_no_turn(store: BaseStore, caplog: pytest.LogCaptureFixture) -> None:
    process = Process(trigger="run", server=Server(fails=True))
    assert await process.say(store, "I like figs") is not None
    assert "ConnectionError" in caplog.text
    assert "figs" not in caplog.text


# The thread that is given up outlives the test, and with it the loop that a Postgres store would answer on.
@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_closing_gives_up_on_a_hung_model_in_time(store: BaseStore) -> None:
    hung = threading.Event()

    def respond(messages: list[BaseMessage]) -> str:
        hung.wait(PATIENCE)
        return learns(messages)

    process = Process(model=RecordingModel(respond=respond))
    await process.say(store, "I like figs")
    assert not await asyncio.to_thread(process.service.close, 0.05)
    assert len(await arun(store, read_entries(ADA))) == 1
    given_up = [thread for thread in threading.enumerate() if thread.name == "palimpsest-update"]
    hung.set()
    # What it still asks of the store must not come after the store is closed.
    for thread in given_up:
        await asyncio.to_thread(thread.join, PATIENCE)


async def test_the_memory_graph_applies_what_waits_of_an_owner(store: BaseStore) -> None:
    process = Process(trigger="run")
    graph = build_memory_graph(process.service)
    graph.store = store
    await process.say(store, "I like figs")
    await process.say(store, "I like plums", 2, owner=BOB)
    assert await graph.ainvoke({"drain": ADA.due_key}) == {"updates": 1, "cancelled": 0, "failed": 0}
    assert await graph.ainvoke({"drain": BOB.due_key}) == {"updates": 1, "cancelled": 0, "failed": 0}


@pytest.mark.parametrize("command", [{}, {"drain": 3}, {"drain": "due"}, {"messages": []}, {"drain": "../x.default"}])
def test_the_memory_graph_refuses_what_is_no_command(command: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="drain"):
        parse(command)


async def test_all_triggers_of_several_processes_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    async with open_store(path) as one, open_store(path) as two:
        processes = [Process(trigger="run"), Process(trigger="run"), Process(trigger="run")]
        for number in range(12):
            await processes[0].say(one, f"I like thing{number}", number, thread=f"T{number % 3}")
        works = [
            processes[0].service.asweep(one),
            processes[0].service.adrain(one, ADA),
            processes[1].service.asweep(two),
            processes[1].service.adrain(two, ADA),
            processes[2].service.adrain(two, ADA),
        ]
        await asyncio.gather(*works)
        for process in processes:
            process.clock.advance(NEVER.lease_seconds)
        await processes[0].service.adrain(one, ADA)
        assert await learnt(one) == sorted(f"Likes thing{number}" for number in range(12))
        assert await arun(one, read_entries(ADA)) == []


async def test_what_is_woken_is_applied_at_once(store: BaseStore) -> None:
    process = Process()
    await process.say(store, "I like figs")
    (entry,) = await arun(store, read_entries(ADA))
    await arun(store, write([replace(entry, state="dead", attempts=8)]))
    again = Process()  # no turn has told it of the store, only its first sweep
    await again.service.asweep(store)
    assert await learnt(store) == []
    await arun(store, retry_dead(ADA, again.clock()))
    assert again.service._queue.pending() == ()
    again.service.wake(ADA, "T")
    assert await asyncio.to_thread(again.service._queue.flush, PATIENCE)
    assert await learnt(store) == ["Likes figs"]
    await again.close()
    await process.close()
