"""Facts that repeat each other become one: nothing of what said them is lost, and one undo parts them again."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memory.config import MemoryConfig
from memory.effects import run
from memory.erase import erase_user
from memory.facts.changes import Change, Extraction
from memory.facts.confirmations import Confirmations
from memory.facts.fact import FactNotFound, timestamp
from memory.facts.merging import merge
from memory.facts.store import FactStore
from memory.namespaces import Owner
from tests.fakes import Clock

ADA = Owner.of("ada")
ONE, OTHER = "User plays the cello.", "User plays cello in a choir."


class Person:
    def __init__(self) -> None:
        self.store, self.clock = InMemoryStore(), Clock()
        self.facts = FactStore(self.store, "ada", clock=self.clock)

    def says(self, content: str, message: str, thread: str = "t", *, at: str = "", confidence: float = 0.9) -> None:
        self.clock.advance(60)
        change = Change(
            action="new", content=content, confidence=confidence, sources=(message,), said_at=at or self.now()
        )
        self.facts.apply(Extraction(changes=(change,)), thread_id=thread, epoch="initial", now=self.now())

    def now(self) -> str:
        return timestamp(self.clock())

    def id_of(self, content: str) -> str:
        (fact,) = [fact for fact in self.facts.list() if fact.content == content]
        return fact.id

    def merges(self, kept: str, *others: str) -> str:
        self.clock.advance(60)
        return run(self.store, merge(ADA, MemoryConfig(), kept, others, self.now()))

    def said(self, fact_id: str) -> Confirmations:
        return self.facts.confirmations(fact_id)


@pytest.fixture
def person() -> Person:
    person = Person()
    person.says(ONE, "m1")
    person.says(OTHER, "m2", "other", confidence=0.95)
    person.says(OTHER, "m3", "third")
    return person


def test_the_one_that_is_kept_has_all_that_said_them(person: Person) -> None:
    one, other = person.id_of(ONE), person.id_of(OTHER)
    person.facts.update(other, pinned=True)
    person.merges(one, other)
    (kept,) = person.facts.list()
    assert (kept.id, kept.content, kept.pinned, kept.confidence) == (one, ONE, True, 0.95)
    said = person.said(one)
    assert said.count == 2
    assert [(each.thread_id, each.message_ids) for each in said.said] == [("other", ("m2",)), ("third", ("m3",))]
    assert list(said.times) == sorted(said.times)


def test_one_undo_parts_them_with_what_each_of_them_had(person: Person) -> None:
    person.says(ONE, "m4", "fourth")
    one, other = person.id_of(ONE), person.id_of(OTHER)
    before = [(fact.id, fact.content, fact.pinned, fact.confidence) for fact in person.facts.list()]
    had = (person.said(one), person.said(other))
    at = person.merges(one, other)
    assert person.said(one).count == 3
    assert person.facts.undo(at) is not None
    after = [(fact.id, fact.content, fact.pinned, fact.confidence) for fact in person.facts.list()]
    assert sorted(after) == sorted(before)
    assert (person.said(one), person.said(other)) == had


def test_undoing_the_undo_merges_them_again_with_all_that_said_them(person: Person) -> None:
    one, other = person.id_of(ONE), person.id_of(OTHER)
    at = person.merges(one, other)
    merged = person.said(one)
    for _ in range(2):
        person.clock.advance(60)
        assert person.facts.undo(at) is not None
        assert (person.said(one).count, person.said(other).count) == (0, 1)
        assert person.said(one) == Confirmations()
        person.says(OTHER, "m2", "other")  # the same evidence counts once, whatever was undone meanwhile
        person.clock.advance(60)
        assert person.facts.undo() is not None
        assert [fact.content for fact in person.facts.list()] == [ONE]
        assert person.said(one) == merged
        (at,) = [fact.updated_at for fact in person.facts.list()]


def test_what_a_conversation_corrected_is_not_counted_by_undoing_an_undo(person: Person) -> None:
    wrong = person.id_of(OTHER)
    person.clock.advance(60)
    change = Change(action="corrects", target=wrong, content="User plays the violin.", confidence=0.9, sources=("m9",))
    person.facts.apply(Extraction(changes=(change,)), thread_id="t", epoch="initial", now=person.now())
    right = person.id_of("User plays the violin.")
    for _ in range(2):
        person.clock.advance(60)
        assert person.facts.undo() is not None
    assert person.said(right).count == 0


def test_a_message_that_said_both_counts_once(person: Person) -> None:
    person.says(ONE, "m3", "third")
    one, other = person.id_of(ONE), person.id_of(OTHER)
    person.merges(one, other)
    assert [each.message_ids for each in person.said(one).said] == [("m3",), ("m2",)]


def test_what_was_said_before_does_not_part_them_and_what_is_said_later_may(person: Person) -> None:
    said_at = person.now()
    person.merges(person.id_of(ONE), person.id_of(OTHER))
    person.says(OTHER, "m5", at=said_at)
    assert [fact.content for fact in person.facts.list()] == [ONE]
    person.clock.advance(60)
    person.says(OTHER, "m6")
    assert {fact.content for fact in person.facts.list()} == {ONE, OTHER}


def test_erasing_the_kept_one_erases_the_others_and_their_messages(person: Person) -> None:
    one = person.id_of(ONE)
    person.merges(one, person.id_of(OTHER))
    person.facts.delete(one)
    assert person.facts.list(None) == []
    assert person.facts.undo() is None
    assert "choir" not in repr([item.value for item in person.store.search((), limit=1000)])


def test_an_erase_of_everything_meanwhile_wins(person: Person) -> None:
    one, other = person.id_of(ONE), person.id_of(OTHER)
    effects = merge(ADA, MemoryConfig(), one, [other], person.now())
    reads = next(effects)  # its first look at the epoch
    answers = person.store.batch(reads)
    erase_user(person.store, "ada")

    def go_on(answers: list[Any]) -> None:
        while True:
            answers = person.store.batch(effects.send(answers))

    with pytest.raises(FactNotFound):
        go_on(answers)
    assert "cello" not in repr([item.value for item in person.store.search((), limit=1000)])


@pytest.mark.parametrize("wrong", ["nobody", "itself"])
def test_there_must_be_two(person: Person, wrong: str) -> None:
    one = person.id_of(ONE)
    with pytest.raises(FactNotFound):
        person.merges(*(("fact_00000000", one) if wrong == "nobody" else (one, one)))
    assert len(person.facts.list()) == 2
