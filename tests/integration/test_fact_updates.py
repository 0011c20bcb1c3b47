"""What an update does to facts: corrections, what was deleted stays away, and once is enough."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from memory.facts.changes import Change, Extraction, Outcome, Section, reasons
from memory.facts.profile import texts_of
from memory.namespaces import Owner
from tests.fact_sets import NOW, apply, change, facts_of


def test_a_correction_supersedes_and_what_it_was_is_history(store: BaseStore) -> None:
    facts = facts_of(store)
    old = facts.create("Lives in Oslo", "knowledge", 0.9)

    applied = apply(facts, change("Lives in Bergen", "corrects", old.id))

    (new,) = facts.list()
    (was,) = facts.list("superseded")
    assert applied == Outcome(created=(new.id,), superseded=(old.id,))
    assert (was.id, was.content, was.replaced_by) == (old.id, "Lives in Oslo", new.id)
    assert facts.snapshot().facts == (new,)


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
    assert texts_of(facts.snapshot().profile) == {"user.work": item.value["text"]}


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

    assert set(facts.snapshot().profile) == {"user.work"}


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
