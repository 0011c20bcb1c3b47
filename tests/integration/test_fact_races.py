"""Facts that several write at once, or that an erase meets half-way."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from memory.facts.fact import Fact
from memory.namespaces import Owner
from tests.fact_sets import facts_of


class DeletingStore(InMemoryStore):
    """A store in which somebody deletes every fact after so many batches."""

    left: int = 10**9

    def batch(self, ops: Any) -> list[Any]:
        results = super().batch(ops)
        self.left -= 1
        if self.left == 0:
            facts = facts_of(self)
            for fact in facts.list():
                facts.delete(fact.id)
        return results


async def test_one_user_s_unstorable_value_fails_no_other_user_s_write_of_the_same_tick(durable: BaseStore) -> None:
    bad = durable.aput(Owner.of("eve").namespace("facts"), "bad", {"content": "\ud800"}, index=False)
    good = facts_of(durable).acreate("Lives in Oslo", "knowledge", 0.9)

    failed, made = await asyncio.gather(bad, good, return_exceptions=True)

    assert isinstance(failed, Exception)
    assert isinstance(made, Fact)
    assert await facts_of(durable).alist() == [made]


def test_eight_threads_writing_the_same_and_different_facts_lose_and_double_none(store: BaseStore) -> None:
    def write(thread: int) -> None:
        facts = facts_of(store)
        for n in range(10):
            facts.create(f"shared {n}", "context", 0.5)
            facts.create(f"own {thread}-{n}", "context", 0.5)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))

    contents = [fact.content for fact in facts_of(store).list()]
    expected = {f"shared {n}" for n in range(10)} | {f"own {thread}-{n}" for thread in range(8) for n in range(10)}
    assert sorted(contents) == sorted(expected)


def test_F8_eight_threads_never_pass_the_limit_for_good(store: BaseStore) -> None:
    def write(thread: int) -> None:
        facts = facts_of(store, max_facts=20)
        for n in range(10):
            facts.create(f"own {thread}-{n}", "context", n / 10)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))

    facts = facts_of(store, max_facts=20)
    facts.create("the last", "context", 1.0)
    assert len(facts.list()) <= 20
