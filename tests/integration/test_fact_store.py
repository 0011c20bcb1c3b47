"""Facts in every store: created, read, edited, deleted, and never more than the limit."""

from typing import Any

import pytest
from langgraph.store.base import BaseStore

from memory.facts.fact import to_item
from memory.facts.records import KEPT_CONFIRMATIONS
from memory.namespaces import Owner
from tests.fact_sets import apply, change, facts_of, item_of


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
        "message_ids": [],
    }


def test_F7_confirmations_are_bounded_but_all_counted(store: BaseStore) -> None:
    facts = facts_of(store)
    for _ in range(KEPT_CONFIRMATIONS + 9):
        fact = facts.create("Lives in Oslo", "knowledge", 0.9)

    assert facts.confirmations(fact.id).count == KEPT_CONFIRMATIONS + 8
    assert len(facts.confirmations(fact.id).times) == KEPT_CONFIRMATIONS


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
    assert "skipped 1 unreadable facts: " in caplog.text
    assert "Rome" not in caplog.text


def test_a_row_added_by_hand_counts_at_once_and_is_changed_where_it_stands(store: BaseStore) -> None:
    facts = facts_of(store)
    namespace = Owner.of("ada").namespace("facts")
    store.put(namespace, "my note", {"content": "Has a dog", "category": "knowledge", "confidence": 1}, index=False)
    (by_hand,) = facts.list()

    apply(facts, change("Lives in Oslo"))
    own = next(fact for fact in facts.list() if fact.content == "Lives in Oslo")
    store.put(namespace, "copy", {**to_item(own), "content": "Has a cat"}, index=False)
    facts.update(by_hand.id, content="Has two dogs")

    items = {item.key: item.value for item in store.search(namespace, limit=100)}
    row = items["my note"]
    assert (row["id"], row["content"], row["epoch"]) == (by_hand.id, "Has two dogs", "initial")
    assert (by_hand.source, by_hand.content) == ("api", "Has a dog")
    assert sorted(fact.content for fact in facts.list()) == ["Has a cat", "Has two dogs", "Lives in Oslo"]
