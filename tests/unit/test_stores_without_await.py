"""What a process knows of the stores of agents that are called without `await`."""

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.store.memory import InMemoryStore

from graphs.persistence.connection import SqliteFile, open_file
from graphs.persistence.sqlite_store import DurableSqliteStore
from graphs.process.synchronous import asked_here
from memory.door import Batching
from memory.namespaces import Owner
from palimpsest import FactStore, MemoryConfig
from tests.laws.talk import Talk

ADA = Owner.of("ada", "default")


class Equal(InMemoryStore):
    """Says that it is any other, and so has no hash."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    __hash__ = None  # type: ignore[assignment]


class Slow(DurableSqliteStore):
    """Commits late, once that is wanted."""

    late = 0.0

    def __init__(self, file: SqliteFile) -> None:
        super().__init__(file)
        self.begun = threading.Event()

    @asynccontextmanager
    async def writing(self, *names: str) -> AsyncIterator[Batching]:
        async with super().writing(*names) as batch:
            yield batch
            late, self.late = self.late, 0.0
            self.begun.set()
            await asyncio.sleep(late)


def asked(store: Any) -> Any:
    """Return the store as a run asks it that nobody awaits."""
    return asked_here(store)


def test_an_index_is_kept_from_turn_to_turn_however_many_stores_take_turns() -> None:
    recalling, stores = Talk().service.recalling, [InMemoryStore() for _ in range(6)]
    first = [recalling.index(asked(store), ADA) for store in stores]
    again = [recalling.index(asked(store), ADA) for store in stores]
    assert [*map(id, first)] == [*map(id, again)]
    assert len({*map(id, first)}) == len(stores)


def test_nothing_keeps_a_store_alive_that_nobody_uses_any_more() -> None:
    service, store = Talk().service, InMemoryStore()
    gone = weakref.ref(store)
    service.recalling.index(asked(store), ADA)
    assert service.recalling._stores.values()
    del store
    gc.collect()
    assert gone() is None
    assert not service.recalling._stores.values()


async def test_stores_that_say_they_are_equal_and_have_no_hash_are_told_apart() -> None:
    one, two = Equal(), Equal()
    talk, other = Talk("agent sync", user="ada", store=one), Talk("agent sync", user="ada", store=two)
    await talk.say("I like figs.")
    assert "I like figs." in talk.stored()
    assert "figs" not in other.stored()


async def test_what_an_agent_that_nobody_awaits_remembers_waits_for_who_writes_on_the_loop(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    call = {"name": "remember", "args": {"content": "Likes figs", "category": "preference"}}
    async with open_file(tmp_path / "store.sqlite") as file:
        store = Slow(file)
        await store.setup()
        facts = FactStore(store, "ada", config=MemoryConfig(max_facts=1))
        await facts.acreate("Likes limes", "preference", 0.5)
        by_hand = list[Future[object]]()

        def answer(_: object) -> AIMessage:
            if by_hand:
                return AIMessage("Noted.")
            store.late = 0.5  # time enough to read what is there
            store.begun.clear()
            by_hand.append(asyncio.run_coroutine_threadsafe(facts.acreate("Likes plums", "preference", 0.5), loop))
            store.begun.wait()
            return AIMessage("", tool_calls=[{**call, "id": "1"}])

        talk = Talk("agent sync", user="ada", store=store, memory={"max_facts": 1})
        talk.chat.respond = answer
        await talk.say("I like figs.")
        await asyncio.wrap_future(by_hand[0])
        assert [fact.content for fact in await facts.alist()] == ["Likes figs"]
