"""A Postgres that breaks off while somebody uses it, and comes back: clear errors, nothing lost, nothing twice."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from math import inf
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from graphs.chat import build_graph
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.door import arun
from memory.facts.store import FactStore
from memory.journal.journal import read_journal
from memory.namespaces import Owner
from memory.updates.lease import read_lease
from memory.updates.outbox import due_owners, read_entries
from tests.fakes import RecordingModel, learns
from tests.patience import all_have_answered, let_turns_wait
from tests.postgres import Postgres, running_postgres
from tests.untriggered import Untriggered

ADA = Owner.of("ada")
THREAD: Any = {"configurable": {"thread_id": "T", "langgraph_auth_user_id": "ada"}}
TRIES = 10
LEASE = 200.0
IN_VAIN = 2.0
"""For turns whose database is away: a pool that waits for it takes longer to say so."""


@pytest.fixture(scope="module")
def breakable(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    """A server that no other test uses."""
    with running_postgres(required=bool(request.config.getoption("--postgres"))) as server:
        yield server


@pytest.fixture
async def house(breakable: Postgres) -> "AsyncIterator[House]":
    house = House(breakable)
    async with AsyncExitStack() as stack:
        await house.open(stack)
        yield house


class House:
    """A chat over a Postgres that breaks off when it is told to: while a model answers, or learns."""

    def __init__(self, postgres: Postgres) -> None:
        self.postgres, self.database = postgres, postgres.database()
        self.breaks: set[str] = set()
        self.comes_back = False
        self.chat = RecordingModel(respond=lambda _: self._after_a_break("chat", "Noted."))
        self.memory = RecordingModel(respond=self._learns)
        config = MemoryConfig(
            debounce_seconds=3600, max_wait_seconds=3600, update_spacing_seconds=0, retry_base_seconds=0
        )
        settings = Settings(memory=config, database_uri=self.database)  # the tests say when
        models = {"chat": self.chat, "memory": self.memory, "summary": self.memory}
        self.now = 1_800_000_000.0
        self.service = Untriggered(settings, lambda _, purpose: models[purpose], clock=lambda: self.now)

    async def open(self, stack: AsyncExitStack) -> None:
        from graphs.persistence.postgres_saver import open_postgres_checkpointer
        from graphs.persistence.postgres_store import open_postgres_store

        self.store = await stack.enter_async_context(open_postgres_store(self.database, 3))
        self.saver = await stack.enter_async_context(open_postgres_checkpointer(self.database, 3))

    def _after_a_break(self, where: str, answer: str) -> str:
        if where in self.breaks:
            self.breaks.remove(where)
            self.postgres.break_off()
            if self.comes_back:
                self.postgres.start()
        return answer

    def _learns(self, messages: list[BaseMessage]) -> str:
        return self._after_a_break("memory", learns(messages))

    async def say(self, text: str, saver: Any = None) -> dict[str, Any]:
        graph = build_graph(service=self.service, tools=()).compile(checkpointer=saver or self.saver, store=self.store)
        said: dict[str, Any] = await graph.ainvoke({"messages": [HumanMessage(text, id=text)]}, THREAD)
        return said

    async def back(self) -> None:
        """Start the database, and wait until nobody takes it for away."""
        let_turns_wait(self.service)
        self.postgres.start()
        await all_have_answered(self.service)
        assert not self.service.stores.any_away()

    async def learnt(self, wait: float = LEASE) -> list[str]:
        """Drain until nothing waits, `wait` seconds apart, and return the facts; the journal has each message once."""
        for _ in range(TRIES):
            if not await arun(self.store, read_entries(ADA)):
                break
            self.now += wait  # by default for the lease of an update that could not even note that it failed
            await self.service.adrain(self.store, ADA)
        assert await arun(self.store, due_owners(inf)) == []
        journal = await arun(self.store, read_journal(ADA, ""))
        ids = [message.id for entry in journal for message in entry.messages]
        assert len(ids) == len(set(ids))
        return sorted(fact.content for fact in await FactStore(self.store, ADA).alist())


async def test_a_turn_whose_database_breaks_off_says_so_and_can_be_said_again(house: House) -> None:
    from graphs.persistence.postgres import DatabaseAway

    await house.say("I like figs.")
    house.breaks.add("chat")
    let_turns_wait(house.service, write=IN_VAIN)
    with pytest.raises(DatabaseAway, match=r"^the database test_\d+ on /.* is away: "):
        await house.say("I like tea.")
    await house.back()

    said = await house.say("I like tea.")
    assert [message.text for message in said["messages"]] == ["I like figs.", "Noted.", "I like tea.", "Noted."]
    assert await house.learnt() == ["Likes figs", "Likes tea"]


async def test_turns_go_on_without_memory_while_its_database_is_away_and_are_written_down_later(house: House) -> None:
    saver = InMemorySaver()
    await house.say("I like figs.", saver)
    house.postgres.break_off()
    let_turns_wait(house.service, read=IN_VAIN, write=IN_VAIN)
    said = await house.say("I like tea.", saver)
    assert said["messages"][-1].text == "Noted."
    assert not said["memory"]["receipt"]["queued"]
    assert house.service.stores.any_away()
    await house.back()

    await house.say("I like plums.", saver)
    assert await house.learnt() == ["Likes figs", "Likes plums", "Likes tea"]


@pytest.mark.parametrize("comes_back", [True, False])
async def test_an_update_whose_database_breaks_off_learns_once(house: House, comes_back: bool) -> None:
    await house.say("I like figs.")
    house.breaks.add("memory")
    house.comes_back = comes_back
    try:
        await house.service.adrain(house.store, ADA)
    except ConnectionError:
        assert not comes_back
    if not comes_back:
        house.postgres.start()
    assert await house.learnt() == ["Likes figs"]


async def test_an_update_that_could_not_note_its_end_is_taken_up_by_its_process_before_its_lease_ends(
    house: House,
) -> None:
    await house.say("I like figs.")
    house.breaks.add("memory")
    with pytest.raises(ConnectionError):
        await house.service.adrain(house.store, ADA)
    house.postgres.start()
    lease = await arun(house.store, read_lease(ADA))
    assert lease.stands(house.now)
    assert await house.learnt(wait=1.0) == ["Likes figs"]
    assert house.now < lease.until - LEASE / 2


async def test_a_pool_that_lost_its_database_is_not_long_in_finding_it_again(house: House) -> None:
    # Tries in a row come at intervals that double; they end before a caller that waits for a connection gives up.
    assert house.store.pool.reconnect_timeout < house.store.pool.timeout
