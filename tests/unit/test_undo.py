from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from memory.config import MemoryConfig
from memory.facts.changes import Change, Extraction
from memory.facts.fact import FactNotFound
from memory.facts.store import FactStore
from memory.facts.undo import UndoneFacts
from memory.namespaces import Owner
from tests.fakes import Clock

OWNER = Owner.of("ada")
CONFIG = MemoryConfig(max_facts=5)


class FactSet:
    """One user's facts with a clock that moves on with every change."""

    def __init__(self) -> None:
        self.store, self.clock = InMemoryStore(), Clock()
        self.facts = FactStore(self.store, "ada", config=CONFIG, clock=self.clock)

    def add(self, content: str) -> str:
        self.clock.advance(1)
        return self.facts.create(content, "knowledge", 0.9).id

    def edit(self, fact_id: str, content: str) -> None:
        self.clock.advance(1)
        self.facts.update(fact_id, content=content)

    def retire(self, fact_id: str) -> None:
        self.clock.advance(1)
        self.facts.retire(fact_id)

    def learn(self, *changes: Change) -> None:
        self.clock.advance(1)
        now = FactStore(InMemoryStore(), "x", clock=self.clock).create("now", "goal", 1.0).created_at
        self.facts.apply(Extraction(changes=changes), thread_id="t", epoch="initial", now=now)

    def undo(self) -> UndoneFacts | None:
        self.clock.advance(1)
        return self.facts.undo()

    def says(self) -> dict[str, str]:
        return {fact.id: fact.content for fact in self.facts.list()}


@pytest.fixture
def fact_set() -> FactSet:
    return FactSet()


def change(content: str, action: str = "new", target: str | None = None) -> Change:
    return Change(action=action, content=content, confidence=0.9, target=target, sources=(content,))  # type: ignore[arg-type]


def test_nothing_ever_happened(fact_set: FactSet) -> None:
    assert fact_set.undo() is None


def test_an_edit_is_taken_back_and_done_again(fact_set: FactSet) -> None:
    fact_id = fact_set.add("Lives in Oslo")
    fact_set.edit(fact_id, "Lives in Bergen")
    assert fact_set.undo() is not None
    assert fact_set.says() == {fact_id: "Lives in Oslo"}
    fact_set.undo()
    assert fact_set.says() == {fact_id: "Lives in Bergen"}


def test_a_deletion_is_taken_back_and_done_again(fact_set: FactSet) -> None:
    fact_id = fact_set.add("Lives in Oslo")
    fact_set.retire(fact_id)
    assert fact_set.says() == {}
    done = fact_set.undo()
    assert done is not None
    assert ([fact.content for fact in done.restored], done.removed) == (["Lives in Oslo"], ())
    assert fact_set.says() == {fact_id: "Lives in Oslo"}
    fact_set.undo()
    assert fact_set.says() == {}


def test_a_restored_fact_is_edited_like_any_other(fact_set: FactSet) -> None:
    fact_id = fact_set.add("Lives in Oslo")
    fact_set.retire(fact_id)
    fact_set.undo()
    fact_set.facts.update(fact_id, pinned=True)
    assert fact_set.says() == {fact_id: "Lives in Oslo"}


def test_a_correction_is_taken_back_as_a_whole(fact_set: FactSet) -> None:
    oslo = fact_set.add("Lives in Oslo")
    fact_set.learn(change("Lives in Bergen", "corrects", oslo), change("Keeps bees"))
    assert sorted(fact_set.says().values()) == ["Keeps bees", "Lives in Bergen"]
    fact_set.undo()
    assert fact_set.says() == {oslo: "Lives in Oslo"}
    fact_set.undo()
    assert sorted(fact_set.says().values()) == ["Keeps bees", "Lives in Bergen"]


def test_what_was_taken_back_does_not_return_from_the_messages_it_came_from(fact_set: FactSet) -> None:
    learned = Change(action="new", content="Keeps bees", sources=("m1",), said_at="2025-10-01T10:00:00+00:00")
    fact_set.learn(learned)
    fact_set.undo()
    fact_set.learn(learned, replace(learned, sources=("m0",)))
    assert fact_set.says() == {}


def test_what_the_user_deleted_does_not_return_from_the_messages_it_came_from(fact_set: FactSet) -> None:
    learned = Change(action="new", content="Keeps bees", sources=("m1",), said_at="2025-10-01T10:00:00+00:00")
    fact_set.learn(learned)
    (fact_id,) = fact_set.says()
    fact_set.retire(fact_id)
    fact_set.learn(learned, replace(learned, sources=("m0",)))
    assert fact_set.says() == {}


def test_a_restored_fact_gives_way_to_one_that_says_the_same(fact_set: FactSet) -> None:
    fact_id = fact_set.add("Lives in Oslo")
    fact_set.retire(fact_id)
    fact_set.clock.advance(-0.5)
    twin = fact_set.facts.create("Lives in Oslo", "goal", 0.5).id
    fact_set.clock.advance(0.5)
    fact_set.undo()
    assert list(fact_set.says()) == [twin]


def test_restoring_keeps_the_limit(fact_set: FactSet) -> None:
    first = fact_set.add("fact 0")
    fact_set.retire(first)
    for number in range(1, 6):
        fact_set.clock.advance(-0.1)
        fact_set.facts.create(f"fact {number}", "goal", 0.5)
    fact_set.undo()
    assert len(fact_set.says()) == CONFIG.max_facts
    assert first in fact_set.says()


def test_only_facts_that_are_there_are_retired(fact_set: FactSet) -> None:
    with pytest.raises(FactNotFound):
        fact_set.retire("fact_00000000")


def test_another_agent_is_left_alone(fact_set: FactSet) -> None:
    fact_set.add("Lives in Oslo")
    done = FactStore(fact_set.store, "ada", "other", clock=fact_set.clock).undo()
    assert done is None
    assert list(fact_set.says().values()) == ["Lives in Oslo"]


def first(fact_set: FactSet) -> str | None:
    return next(iter(sorted(fact_set.says())), None)


STEPS: dict[str, Callable[[FactSet, int], object]] = {
    "add": lambda fact_set, n: fact_set.add(f"fact {n}") if len(fact_set.says()) < CONFIG.max_facts else None,
    "edit": lambda fact_set, n: fact_set.edit(fact_id, f"edit {n}") if (fact_id := first(fact_set)) else None,
    "retire": lambda fact_set, _: fact_set.retire(fact_id) if (fact_id := first(fact_set)) else None,
    "correct": lambda fact_set, n: (
        fact_set.learn(change(f"news {n}", "corrects", first(fact_set))) if first(fact_set) else None
    ),
    "end": lambda fact_set, _: fact_set.learn(change("", "ends", first(fact_set))) if first(fact_set) else None,
    "undo": lambda fact_set, _: fact_set.undo(),
}


@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=12))
def test_the_last_change_is_taken_back_and_done_again_whatever_came_before(steps: list[str]) -> None:
    fact_set = FactSet()
    before: dict[str, str] = {}
    for n, step in enumerate(steps):
        said = fact_set.says()
        STEPS[step](fact_set, n)
        if fact_set.says() != said:
            before = said
    after = fact_set.says()
    fact_set.undo()
    assert fact_set.says() == before
    fact_set.undo()
    assert fact_set.says() == after
