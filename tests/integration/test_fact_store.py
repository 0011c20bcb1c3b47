"""Facts in every store: created, read, edited, deleted, and never more than the limit."""

from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from memory.facts.changes import Extraction
from memory.facts.confirmations import KEPT_CONFIRMATIONS
from memory.facts.fact import FactNotFound, MemoryFull
from memory.facts.store import FactStore
from memory.namespaces import Owner
from tests.fact_sets import NOW, apply, change, facts_of, item_of
from tests.fakes import Clock


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
    assert facts.snapshot().facts == (good,)
    assert facts.snapshot().broken == 1
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


async def test_every_operation_has_an_asynchronous_twin_that_does_the_same(durable: BaseStore) -> None:
    facts = facts_of(durable)
    fact = await facts.acreate("Lives in Oslo", "knowledge", 0.9)
    await facts.acreate("lives in oslo", "knowledge", 0.9)
    changed = await facts.aupdate(fact.id, content="Lives in Bergen", pinned=True)
    extraction = Extraction(changes=(change("Likes tea"),))
    applied = await facts.aapply(extraction, thread_id="t", epoch="initial", now=NOW)

    assert await facts.aget(fact.id) == changed
    assert await facts.asearch("Bergen") == [changed]
    assert [each.content for each in await facts.alist()] == ["Lives in Bergen", "Likes tea"]
    assert [each.content for each in await facts.alist("superseded")] == ["Lives in Oslo"]
    assert (await facts.aconfirmations(fact.id)).count == 1
    assert set((await facts.asnapshot()).facts) == set(await facts.alist())
    await facts.adelete(applied.created[0])
    with pytest.raises(FactNotFound):
        await facts.arelease(fact.id)
    assert await facts.alist() == [changed]
