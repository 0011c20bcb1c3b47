"""The service of one process on SQLite and on Postgres: turns written down, triggers, sweeps, and an end in time."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.store.base import BaseStore

from graphs.persistence.sqlite_store import open_store
from graphs.process.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.door import arun
from memory.facts.store import FactStore
from memory.namespaces import DUE, Owner
from memory.turn import Closing
from memory.updates.outbox import change, due_owners, read_entries, settle_dead
from tests.fakes import Clock, RecordingModel, learns
from tests.memory_bench import ADA
from tests.postgres import open_async
from tests.untriggered import Untriggered

BOB = Owner.of("bob")
PATIENCE = 60.0
NEVER = MemoryConfig(debounce_seconds=3600, max_wait_seconds=3600, update_spacing_seconds=0)
AT_ONCE = MemoryConfig(debounce_seconds=0, update_spacing_seconds=0)


def turn(text: str, number: int = 1) -> list[BaseMessage]:
    return [HumanMessage(text, id=f"u{number}"), AIMessage("Noted.", id=f"a{number}")]


def said(messages: list[BaseMessage], owner: Owner = ADA, thread_id: str = "T") -> Closing:
    return Closing(owner=owner, thread_id=thread_id, kind="turn", messages=messages)


@dataclass
class Process:
    """One process's service with a model that learns."""

    memory: MemoryConfig = NEVER
    kind: type[MemoryService] = MemoryService
    clock: Clock = field(default_factory=Clock)
    model: RecordingModel = field(default_factory=lambda: RecordingModel(respond=learns))

    def __post_init__(self) -> None:
        self.service = self.begin()

    def begin(self) -> MemoryService:
        return self.kind(Settings(memory=self.memory), lambda *_: self.model, clock=self.clock)

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
    return sorted(fact.content for fact in await FactStore(store, owner).alist())


async def test_a_turn_whose_ids_and_text_no_database_takes_is_learnt_too(store: BaseStore) -> None:
    process = Process(memory=AT_ONCE)
    messages = [HumanMessage("I like \x00figs\ud800", id="u\x001"), AIMessage("Noted.", id="a\ud800")]
    await process.service.aremember(store, said(messages))
    assert await process.close()
    assert await learnt(store) == ["Likes figs"]


async def test_what_an_earlier_process_left_is_taken_over_with_the_first_turn(store: BaseStore) -> None:
    earlier = Process(kind=Untriggered)
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
    process = Process(kind=Untriggered)
    await process.service.asweep(store)
    await process.say(store, "I like figs")
    await store.adelete(DUE, ADA.due_key)
    process.clock.advance(23 * 3600)
    assert await process.service.asweep(store) == []
    process.clock.advance(3600)
    await process.service.asweep(store)
    assert await learnt(store) == ["Likes figs"]
    assert await arun(store, due_owners(inf)) == []


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


async def test_all_triggers_of_several_processes_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    async with open_store(path) as one, open_store(path) as two:
        processes = [Process(kind=Untriggered), Process(kind=Untriggered), Process(kind=Untriggered)]
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
    await arun(store, change(entry.owner, [], [replace(entry, state="dead", attempts=8)]))
    again = Process()  # no turn has told it of the store, only its first sweep
    await again.service.asweep(store)
    assert await learnt(store) == []
    await arun(store, settle_dead(ADA, entry.key, again.clock()))
    assert again.service._queue.pending() == ()
    again.service.wake(ADA, "T")
    assert await asyncio.to_thread(again.service._queue.flush, PATIENCE)
    assert await learnt(store) == ["Likes figs"]
    await again.close()
    await process.close()
