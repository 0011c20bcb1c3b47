"""An update or a sweep whose store call never answers ends, is tried again later, and loses and doubles nothing."""

import asyncio
import threading
from collections.abc import Iterable
from contextlib import suppress

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore

from graphs.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.effects import arun
from memory.facts.store import FactStore
from memory.namespaces import Owner
from memory.outbox.outbox import read_entries
from memory.turn import Closing, TurnEpochs
from tests.fakes import RecordingModel, learns

ADA = Owner.of("ada")
PATIENCE = 120.0
LEASE = 180.0


class HangingStore(InMemoryStore):
    """Does not answer one batch, counted from the moment it is told to; it may carry it out all the same, late."""

    def __init__(self, *, is_late: bool = False) -> None:
        super().__init__()
        self.hangs_at: int | None = None
        self.late: list[list[Op]] = []
        self._is_late = is_late

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        listed = list(ops)
        if self.hangs_at is not None:
            self.hangs_at -= 1
            if self.hangs_at < 0:
                self.hangs_at = None
                self.late += [listed] if self._is_late else []
                await asyncio.Event().wait()
        return self.batch(listed)

    def catch_up(self) -> None:
        for listed in self.late:
            self.batch(listed)
        self.late.clear()


class House:
    def __init__(self, store: InMemoryStore) -> None:
        self.now, self.store = 1_800_000_000.0, store
        self.model = RecordingModel(respond=learns)
        config = MemoryConfig(
            store_timeout_seconds=0.2, lease_seconds=LEASE, retry_base_seconds=0, update_spacing_seconds=0
        )
        settings = Settings(trigger="run", memory=config)
        self.service = MemoryService(settings, lambda *_: self.model, clock=lambda: self.now)

    async def say(self, text: str) -> None:
        said = [HumanMessage(text, id="h1"), AIMessage("Fine.", id="a1")]
        await self.service.aremember(
            self.store, Closing(owner=ADA, thread_id="T", kind="turn", messages=said, epochs=TurnEpochs())
        )

    async def facts(self) -> list[str]:
        return [fact.content for fact in await FactStore.of_owner(self.store, ADA).alist()]


@pytest.mark.parametrize("is_late", [False, True], ids=["lost", "carried out late"])
@pytest.mark.parametrize("batch", range(16))
async def test_whichever_call_of_an_update_hangs_the_next_ones_learn_it_once(batch: int, is_late: bool) -> None:
    store = HangingStore(is_late=is_late)
    house = House(store)
    await house.say("I like figs.")
    store.hangs_at = batch
    async with asyncio.timeout(PATIENCE):
        with suppress(TimeoutError):  # as a whole, where it does not even learn who waits
            await house.service.asweep(store)
        for _ in range(3):
            house.now += LEASE + 86_400.0  # its own lease keeps the others away until then
            store.hangs_at = None
            await house.service.asweep(store)
            store.catch_up()
        await house.service.asweep(store)
    assert await house.facts() == ["Likes figs"]
    assert await arun(store, read_entries(ADA)) == []


async def test_a_sweep_of_a_store_that_answers_nothing_ends_and_asks_it_no_more_until_it_answers() -> None:
    store = HangingStore()
    house = House(store)
    store.hangs_at = 0
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(TimeoutError):
            await house.service.asweep(store)
        await house.service.stores.settled()  # it is asked in the background, and answers again
    assert not house.service.stores.any_away()
    await house.say("I like figs.")
    house.now += 86_400.0
    await house.service.asweep(store)
    assert await house.facts() == ["Likes figs"]


def test_an_update_on_a_thread_ends_though_its_store_never_answers() -> None:
    released = threading.Event()

    class Stuck(InMemoryStore):
        def batch(self, ops: Iterable[Op]) -> list[Result]:
            released.wait()
            return super().batch(ops)

    try:
        store = Stuck()
        with pytest.raises(TimeoutError):
            House(store).service._updater(store).drain(ADA)
    finally:
        released.set()
