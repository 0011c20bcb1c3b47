import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from graphs.persistence import open_store
from memory.config import MemoryConfig
from memory.control import write_epoch
from memory.core.changes import Applied, Change, Extraction, Section, reasons
from memory.core.facts import Fact, FactNotFound, MemoryFull
from memory.core.shelf import KEPT_CONFIRMATIONS
from memory.core.store import FactStore
from memory.namespaces import Owner
from memory.storage import run
from tests.fakes import Clock
from tests.postgres import INDEX, Postgres, open_async

SAID = "2025-10-09T08:00:00+00:00"  # before the clock's start
NOW = "2025-10-09T09:00:00+00:00"


@pytest.fixture(params=["memory", "index", "sqlite", "postgres", "postgres index", "async postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    with ExitStack() as stack:
        yield stack.enter_context(store_named(request.param, request, tmp_path))


def store_named(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> AbstractContextManager[BaseStore]:
    if name == "memory":
        return nullcontext(InMemoryStore())
    if name == "index":
        return nullcontext(InMemoryStore(index=INDEX))
    if name == "sqlite":
        return sqlite_store(tmp_path / "store.sqlite")
    postgres: Postgres = request.getfixturevalue("postgres")
    if name == "async postgres":
        return postgres.store_of_a_loop(INDEX)
    return postgres.store(INDEX if name == "postgres index" else None)


@contextmanager
def sqlite_store(path: Path) -> Iterator[BaseStore]:
    with SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
        yield store


@pytest.fixture(params=["sqlite", "postgres", "postgres index"])
async def durable(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BaseStore]:
    if request.param == "sqlite":
        async with open_store(tmp_path / "store.sqlite") as opened:
            yield opened
    else:
        database = request.getfixturevalue("postgres").database()
        async with open_async(database, INDEX if request.param == "postgres index" else None) as opened:
            yield opened


def facts_of(store: BaseStore, user: str = "ada", **config: Any) -> FactStore:
    return FactStore(store, user, config=MemoryConfig(**config), clock=Clock())


def change(content: str = "", action: Any = "new", target: str | None = None, message: str = "m1") -> Change:
    return Change(
        action=action,
        content=content,
        category="knowledge",
        confidence=0.9,
        target=target,
        sources=(message,),
        said_at=SAID,
    )


def apply(facts: FactStore, *changes: Change, thread_id: str = "t", epoch: str = "initial", now: str = NOW) -> Applied:
    return facts.apply(Extraction(changes=changes), thread_id=thread_id, epoch=epoch, now=now)


def item_of(store: BaseStore, fact: Fact, user: str = "ada") -> dict[str, Any]:
    items = store.search(Owner.of(user).namespace("facts"), limit=1000)
    (value,) = (item.value for item in items if item.value["id"] == fact.id)
    return value


def test_F4_create_stores_one_flat_item_with_readable_names(store: BaseStore) -> None:
    facts = facts_of(store)

    fact = facts.create("Lives in Oslo", "knowledge", 0.9)

    assert facts.get(fact.id) == fact
    assert item_of(store, fact) == {
        "id": fact.id,
        "content": "Lives in Oslo",
        "category": "knowledge",
        "confidence": 0.9,
        "createdAt": "2025-10-09T08:53:20+00:00",
        "updatedAt": "2025-10-09T08:53:20+00:00",
        "source": "library",
        "status": "active",
        "pinned": False,
        "revision": 1,
        "epoch": "initial",
        "schema": 1,
        "thread_id": "",
        "message_ids": [],
    }


def test_F5_delete_removes_it_from_the_store(store: BaseStore) -> None:
    facts = facts_of(store)
    fact = facts.create("Lives in Oslo", "knowledge", 0.9)

    facts.delete(fact.id)

    assert facts.list() == []
    assert "Oslo" not in repr([item.value for item in store.search(("palimpsest",), limit=100)])


def test_F5_F6_an_unknown_id_is_a_key_error_in_every_operation(store: BaseStore) -> None:
    facts = facts_of(store)

    for operation in (facts.get, facts.delete, facts.confirmations, facts.release, facts.update):
        with pytest.raises(KeyError) as error:
            operation("fact_00000000")
        assert isinstance(error.value, FactNotFound)


def test_F6_update_changes_only_the_fields_given(store: BaseStore) -> None:
    clock = Clock()
    facts = FactStore(store, "ada", clock=clock)
    fact = facts.create("Lives in Oslo", "knowledge", 0.9)
    clock.advance(60)

    changed = facts.update(fact.id, content="Lives in Bergen")

    assert (changed.content, changed.category, changed.confidence) == ("Lives in Bergen", "knowledge", 0.9)
    assert changed.created_at == fact.created_at < changed.updated_at
    assert facts.get(fact.id) == changed
    assert [(old.content, old.status) for old in facts.list("superseded")] == [("Lives in Oslo", "superseded")]


def test_F7_a_duplicate_returns_the_fact_that_is_there_and_counts_as_a_confirmation(store: BaseStore) -> None:
    facts = facts_of(store)
    fact = facts.create("Lives in Oslo", "knowledge", 0.9)
    before = item_of(store, fact)

    assert facts.create("lives in  OSLO.", "goal", 0.2) == fact
    assert facts.create("Lives in Oslo", "goal", 0.2) == fact

    assert item_of(store, fact) == before
    assert facts.list() == [fact]
    assert facts.confirmations(fact.id).count == 2
    assert facts.confirmations(fact.id).times == ("2025-10-09T08:53:20+00:00",) * 2


def test_F7_confirmations_are_bounded_but_all_counted(store: BaseStore) -> None:
    facts = facts_of(store)
    for _ in range(KEPT_CONFIRMATIONS + 9):
        fact = facts.create("Lives in Oslo", "knowledge", 0.9)

    assert facts.confirmations(fact.id).count == KEPT_CONFIRMATIONS + 8
    assert len(facts.confirmations(fact.id).times) == KEPT_CONFIRMATIONS


def test_F7_a_skipped_duplicate_is_logged_without_its_text(store: BaseStore, caplog: pytest.LogCaptureFixture) -> None:
    facts = facts_of(store)
    fact = facts.create("Lives in Oslo", "knowledge", 0.9)
    with caplog.at_level("INFO", "memory"):
        facts.create("Lives in Oslo", "knowledge", 0.9)

    assert f"skipped a duplicate of {fact.id}" in caplog.text
    assert "Oslo" not in caplog.text


def test_F8_the_limit_holds_when_create_returns(store: BaseStore) -> None:
    facts = facts_of(store, max_facts=12)
    for n in range(30):
        facts.create(f"number {n}", "context", 1 - n / 100)
        assert len(facts.list()) <= 12

    assert facts.list()[0].content == "number 0"
    assert facts.list()[-1].content == "number 29"


def test_F8_a_memory_full_of_protected_facts_refuses(store: BaseStore) -> None:
    facts = facts_of(store, max_facts=1)
    fact = facts.create("Lives in Oslo", "knowledge", 0.9, pinned=True)

    with pytest.raises(MemoryFull):
        facts.create("Likes tea", "preference", 1.0, source="page")

    assert facts.list() == [fact]


def test_reads_page_beyond_a_store_s_default_and_are_sorted_by_confidence(store: BaseStore) -> None:
    facts = facts_of(store)
    for n in range(25):
        facts.create(f"number {n}", "context", n / 25)

    assert [fact.confidence for fact in facts.list()] == [n / 25 for n in reversed(range(25))]


def test_search_finds_facts_by_their_words(store: BaseStore) -> None:
    facts = facts_of(store)
    for content in (
        "User's sister Anna lives in Rome",
        "User lives in Oslo",
        "User likes tea",
        "ユーザーは東京に住んでいる",
    ):
        facts.create(content, "knowledge", 0.9)

    assert [fact.content for fact in facts.search("Where does Anna live?", 1)] == ["User's sister Anna lives in Rome"]
    assert [fact.content for fact in facts.search("東京", 5)] == ["ユーザーは東京に住んでいる"]
    assert facts.search("quantum physics", 5) == []
    assert facts.search("tea", 0) == []


def test_one_user_never_sees_another_s_facts(store: BaseStore) -> None:
    for user in ("al", "alice", "AL", "al.ice", "%"):
        facts_of(store, user).create(f"I am {user!r} myself", "knowledge", 1.0)

    for user in ("al", "alice", "AL", "al.ice", "%"):
        assert [fact.content for fact in facts_of(store, user).list()] == [f"I am {user!r} myself"]


def test_agents_have_memories_of_their_own(store: BaseStore) -> None:
    FactStore(store, "ada", "work").create("Lives in Oslo", "knowledge", 1)

    assert FactStore(store, "ada").list() == []
    assert len(FactStore.of_owner(store, Owner.of("ada", "work")).list()) == 1


@pytest.mark.parametrize("user", ["", None, 7])
def test_no_identity_no_memory(user: Any) -> None:
    with pytest.raises(ValueError, match="user_id"):
        FactStore(InMemoryStore(), user)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"content": None},
        {"content": 7, "category": "goal", "confidence": 0.5},
        {"content": "Lives in Rome", "category": "hobby", "confidence": 0.5},
        {"content": "Lives in Rome", "category": "goal", "confidence": "sure"},
        {"content": "Lives in Rome", "category": "goal"},
        {"content": "Lives in Rome", "category": "goal", "confidence": 0.5, "status": "odd"},
        {"content": "Lives in Rome", "category": "goal", "confidence": 0.5, "source": ["page"]},
    ],
)
def test_a_row_broken_by_hand_is_skipped_and_logged(
    store: BaseStore, value: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    facts = facts_of(store)
    good = facts.create("Lives in Oslo", "knowledge", 0.9)
    store.put(Owner.of("ada").namespace("facts"), "broken", value, index=False)

    assert facts.list() == [good]
    assert facts.known().facts == (good,)
    assert facts.known().broken == 1
    assert "skipped an unreadable fact" in caplog.text
    assert "Rome" not in caplog.text


def test_a_row_edited_by_hand_says_what_the_hand_wrote(store: BaseStore) -> None:
    facts = facts_of(store)
    fact = facts.create("Lives in Oslo", "knowledge", 0.9)
    (item,) = store.search(Owner.of("ada").namespace("facts"))
    store.put(item.namespace, item.key, {**item.value, "content": "Lives in Bergen", "message_ids": "odd"}, index=False)

    assert facts.get(fact.id).content == "Lives in Bergen"
    assert facts.create("lives in bergen", "goal", 0.1).id == fact.id
    assert facts.create("Lives in Oslo", "goal", 0.1).id != fact.id


def test_a_row_added_by_hand_counts_at_once_and_gets_a_proper_key_and_id_with_the_next_update(store: BaseStore) -> None:
    facts = facts_of(store)
    namespace = Owner.of("ada").namespace("facts")
    store.put(namespace, "my note", {"content": "Has a dog", "category": "knowledge", "confidence": 1}, index=False)
    (by_hand,) = facts.list()

    apply(facts, change("Lives in Oslo"))

    items = {item.key: item.value for item in store.search(namespace, limit=100)}
    (row,) = (value for value in items.values() if value["content"] == "Has a dog")
    assert "my note" not in items
    assert row["id"] == by_hand.id
    assert row["epoch"] == "initial"
    assert (by_hand.source, by_hand.content) == ("api", "Has a dog")


def test_stored_text_is_accepted_by_every_store(store: BaseStore) -> None:
    facts = facts_of(store)

    fact = facts.create("nul \x00 surrogate \ud800 bidi \u202e end", "context", 0.5)

    assert fact.content == "nul  surrogate  bidi  end"
    assert facts.get(fact.id) == fact


def test_a_correction_supersedes_and_what_it_was_is_history(store: BaseStore) -> None:
    facts = facts_of(store)
    old = facts.create("Lives in Oslo", "knowledge", 0.9)

    applied = apply(facts, change("Lives in Bergen", "corrects", old.id))

    (new,) = facts.list()
    (was,) = facts.list("superseded")
    assert applied == Applied(created=(new.id,), superseded=(old.id,))
    assert (was.id, was.content, was.replaced_by) == (old.id, "Lives in Oslo", new.id)
    assert facts.known().data().facts == (new,)


def test_superseded_content_learned_again_is_a_new_fact_and_leaves_history_alone(store: BaseStore) -> None:
    facts = facts_of(store)
    old = facts.create("Lives in Oslo", "knowledge", 0.9)
    apply(facts, change("Lives in Bergen", "corrects", old.id))
    (bergen,) = facts.list()

    apply(facts, change("Lives in Oslo", "corrects", bergen.id, "m2"))

    (again,) = facts.list()
    assert again.content == "Lives in Oslo"
    assert again.id != old.id
    assert {fact.id for fact in facts.list("superseded")} == {old.id, bergen.id}


def test_what_was_deleted_does_not_come_back_from_what_was_said_before(store: BaseStore) -> None:
    facts = facts_of(store)
    apply(facts, change("Allergic to peanuts"))
    (fact,) = facts.list()
    facts.delete(fact.id)

    same = apply(facts, change("allergic to PEANUTS.", message="m0"))
    reworded = apply(facts, change("Has a peanut allergy", message="m1"))

    assert facts.list() == []
    assert reasons(same.refused) == reasons(reworded.refused) == {"forgotten": 1}


def test_what_was_deleted_can_be_said_again(store: BaseStore) -> None:
    facts = facts_of(store)
    fact = facts.create("Allergic to peanuts", "knowledge", 0.9)
    facts.delete(fact.id)
    later = Change(
        action="new", content="Allergic to peanuts", sources=("m9",), said_at="2026-10-09T08:53:21+00:00", confidence=1
    )

    apply(facts, later)

    assert [each.content for each in facts.list()] == ["Allergic to peanuts"]


def test_every_revision_of_a_deleted_fact_stays_away(store: BaseStore) -> None:
    facts = facts_of(store)
    fact = facts.create("Lives in Oslo", "knowledge", 0.9)
    facts.update(fact.id, content="Lives in Bergen")
    facts.delete(fact.id)

    applied = apply(facts, change("Lives in Oslo"), change("Lives in Bergen"))

    assert facts.list() == facts.list("superseded") == []
    assert reasons(applied.refused) == {"forgotten": 2}


def test_the_profile_is_stored_by_section_and_bounded(store: BaseStore) -> None:
    facts = facts_of(store)
    sections = (Section(name="user.work", text="Nurse\n" * 300), Section(name="user.shoes", text="43"))

    facts.apply(Extraction(profile=sections), thread_id="t", epoch="initial", now=NOW)

    (item,) = store.search(Owner.of("ada").namespace("profile"))
    assert item.key == "user.work"
    assert len(item.value["text"]) <= 600
    assert facts.known().data().user == {"work": item.value["text"]}


def test_a_deleted_fact_leaves_the_profile_too(store: BaseStore) -> None:
    facts = facts_of(store)
    sections = (
        Section(name="user.personal", text="Lives in Oslo and is allergic to peanuts."),
        Section(name="user.work", text="Works as a nurse."),
    )
    extraction = Extraction(changes=(change("User is allergic to peanuts"),), profile=sections)
    facts.apply(extraction, thread_id="t", epoch="initial", now=NOW)
    newer = Extraction(profile=(Section(name="user.personal", text="Lives in Oslo."),))
    facts.apply(newer, thread_id="t", epoch="initial", now=NOW)

    facts.delete(facts.list()[0].id)

    assert set(facts.known().profile) == {"user.work"}


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


@pytest.mark.parametrize("moment", range(1, 6))
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


@pytest.mark.parametrize("moment", range(1, 6))
def test_a_create_that_meets_an_erase_is_written_after_it(moment: int) -> None:
    store = ErasingStore()
    facts = facts_of(store)
    facts.create("Lives in Oslo", "knowledge", 0.9)
    store.left = moment

    fact = facts.create("Likes tea", "preference", 0.9)
    store.left = 10**9

    assert fact.epoch == "second"
    assert facts.list() == [fact]


@given(
    st.lists(
        st.builds(
            change,
            st.sampled_from([f"fact {n}" for n in range(8)]),
            st.sampled_from(["new", "corrects"]),
            st.just("fact_00000000"),
            st.sampled_from(["m1", "m2", "m3"]),
        ),
        max_size=8,
    ),
    st.integers(1, 5),
)
def test_applying_twice_is_the_same_as_once_also_at_the_limit(changes: list[Change], most: int) -> None:
    facts = facts_of(InMemoryStore(), max_facts=most)
    for n in range(3):
        facts.create(f"fact {n}", "context", n / 10)

    first = apply(facts, *changes)
    once = facts.list()
    second = apply(facts, *changes)

    assert facts.list() == once
    assert len(once) <= most
    assert (second.created, second.confirmed, second.superseded) == (first.created, first.confirmed, first.superseded)
    assert reasons(second.refused) == reasons(first.refused)


class FailingStore(InMemoryStore):
    """A store that fails after so many batches, as a crash between two writes would."""

    left: int = 10**9

    def batch(self, ops: Any) -> list[Any]:
        self.left -= 1
        if self.left < 0:
            raise ConnectionError("down")
        return super().batch(ops)


@pytest.mark.parametrize("batches", range(20))
def test_an_update_killed_between_any_two_writes_ends_in_the_same_place_when_repeated(batches: int) -> None:
    store = FailingStore()
    facts = facts_of(store)
    old = facts.create("Lives in Oslo", "knowledge", 0.9)
    changes = (change("Lives in Bergen", "corrects", old.id), change("Likes tea"))
    store.left = batches
    with suppress(ConnectionError):
        apply(facts, *changes)
    store.left = 10**9
    apply(facts, *changes)

    assert {fact.content for fact in facts.list()} == {"Lives in Bergen", "Likes tea"}
    assert [fact.content for fact in facts.list("superseded")] == ["Lives in Oslo"]


async def test_every_operation_has_an_asynchronous_twin_that_does_the_same(durable: BaseStore) -> None:
    facts = facts_of(durable)
    fact = await facts.acreate("Lives in Oslo", "knowledge", 0.9)
    await facts.acreate("lives in oslo", "knowledge", 0.9)
    changed = await facts.aupdate(fact.id, content="Lives in Bergen", pinned=True)
    extraction = Extraction(changes=(change("Likes tea"),))
    applied = await facts.aapply(extraction, thread_id="t", epoch="initial", now=NOW)

    assert await facts.aget(fact.id) == changed
    assert await facts.asearch("Bergen") == [changed]
    assert [each.content for each in await facts.alist()] == ["Likes tea", "Lives in Bergen"]
    assert [each.content for each in await facts.alist("superseded")] == ["Lives in Oslo"]
    assert (await facts.aconfirmations(fact.id)).count == 1
    assert (await facts.aknown()).facts == tuple(await facts.alist())
    await facts.adelete(applied.created[0])
    with pytest.raises(FactNotFound):
        await facts.arelease(fact.id)
    assert await facts.alist() == [changed]


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
