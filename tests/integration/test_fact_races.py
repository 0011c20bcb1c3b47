"""Facts that several write at once, or that an erase meets half-way."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore

from memory.control import write_epoch
from memory.effects import run
from memory.facts.changes import Extraction, Section, reasons
from memory.facts.fact import Fact, FactNotFound
from memory.namespaces import Owner
from tests.fact_sets import NOW, apply, change, facts_of


def test_nothing_is_written_under_another_epoch(store: BaseStore) -> None:
    facts = facts_of(store)
    run(store, write_epoch(facts.owner, "second"))

    applied = apply(facts, change("Lives in Oslo"), epoch="initial")

    assert reasons(applied.refused) == {"stale": 1}
    assert facts.list() == []
    assert store.search(("palimpsest", facts.owner.segment, "default"), limit=100) == []


class CountingStore(InMemoryStore):
    """A store that counts what is written."""

    puts: int = 0

    def batch(self, ops: Any) -> list[Any]:
        operations = list(ops)
        self.puts += sum(isinstance(operation, PutOp) for operation in operations)
        return super().batch(operations)


def test_an_update_of_another_epoch_writes_not_even_for_a_moment() -> None:
    store = CountingStore()

    apply(facts_of(store), change("Lives in Oslo"), epoch="an earlier one")

    assert store.puts == 0


def test_readers_ignore_what_was_written_before_an_erase(store: BaseStore) -> None:
    facts = facts_of(store)
    facts.create("Lives in Oslo", "knowledge", 0.9)
    run(store, write_epoch(facts.owner, "second"))

    assert facts.list() == []
    assert facts.create("Lives in Oslo", "knowledge", 0.5).confidence == 0.5


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


@pytest.mark.parametrize("moment", range(1, 5))
def test_F5_an_edit_does_not_bring_back_what_is_deleted_meanwhile(moment: int) -> None:
    store = DeletingStore()
    facts = facts_of(store)
    fact = facts.create("Lives in Oslo", "knowledge", 0.9)
    store.left = moment

    with pytest.raises(FactNotFound):
        facts.update(fact.id, content="Lives in Bergen")
    store.left = 10**9

    assert facts.list() == facts.list("superseded") == []


class ErasingStore(InMemoryStore):
    """A store in which the user erases their memory after so many batches: the epoch first, then every row."""

    left: int = 10**9

    def batch(self, ops: Any) -> list[Any]:
        results = super().batch(ops)
        self.left -= 1
        if self.left == 0:
            run(self, write_epoch(Owner.of("ada"), "second"))
            for item in self.search(("palimpsest", Owner.of("ada").segment, "default"), limit=1000):
                self.delete(item.namespace, item.key)
        return results


@pytest.mark.parametrize("moment", range(1, 20))
def test_an_update_that_meets_an_erase_takes_its_rows_back(moment: int) -> None:
    store = ErasingStore()
    facts = facts_of(store)
    old = facts.create("Lives in Oslo", "knowledge", 0.9)
    changes = (change("Lives in Bergen", "corrects", old.id), change("Likes tea"))
    sections = (Section(name="user.work", text="Nurse"),)
    store.left = moment

    facts.apply(Extraction(changes=changes, profile=sections), thread_id="t", epoch="initial", now=NOW)

    erased, store.left = store.left <= 0, 10**9
    if erased:
        assert store.search(("palimpsest", facts.owner.segment, "default"), limit=100) == []
    else:
        assert len(facts.list()) == 2


@pytest.mark.parametrize("moment", range(1, 4))  # the fourth batch is its last: what comes after meets no create
def test_a_create_that_meets_an_erase_is_written_after_it(moment: int) -> None:
    store = ErasingStore()
    facts = facts_of(store)
    facts.create("Lives in Oslo", "knowledge", 0.9)
    store.left = moment

    fact = facts.create("Likes tea", "preference", 0.9)
    store.left = 10**9

    assert fact.epoch == "second"
    assert facts.list() == [fact]


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
