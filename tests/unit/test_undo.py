from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from memory.config import MemoryConfig
from memory.core.changes import Change, Extraction
from memory.core.facts import FactNotFound
from memory.core.store import FactStore
from memory.core.undo import Undone, retire_steps, undo_steps
from memory.namespaces import Owner
from memory.storage import run
from tests.fakes import Clock

OWNER = Owner.of("ada")
CONFIG = MemoryConfig(max_facts=5)


class Shelf:
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
        run(self.store, retire_steps(OWNER, fact_id, CONFIG, self.clock()))

    def learn(self, *changes: Change) -> None:
        self.clock.advance(1)
        now = FactStore(InMemoryStore(), "x", clock=self.clock).create("now", "goal", 1.0).created_at
        self.facts.apply(Extraction(changes=changes), thread_id="t", epoch="initial", now=now)

    def undo(self) -> Undone | None:
        self.clock.advance(1)
        return run(self.store, undo_steps(OWNER, CONFIG, self.clock()))

    def says(self) -> dict[str, str]:
        return {fact.id: fact.content for fact in self.facts.list()}


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def change(content: str, action: str = "new", target: str | None = None) -> Change:
    return Change(action=action, content=content, confidence=0.9, target=target, sources=(content,))  # type: ignore[arg-type]


def test_nothing_ever_happened(shelf: Shelf) -> None:
    assert shelf.undo() is None


def test_an_edit_is_taken_back_and_done_again(shelf: Shelf) -> None:
    fact_id = shelf.add("Lives in Oslo")
    shelf.edit(fact_id, "Lives in Bergen")
    assert shelf.undo() is not None
    assert shelf.says() == {fact_id: "Lives in Oslo"}
    shelf.undo()
    assert shelf.says() == {fact_id: "Lives in Bergen"}


def test_a_deletion_is_taken_back_and_done_again(shelf: Shelf) -> None:
    fact_id = shelf.add("Lives in Oslo")
    shelf.retire(fact_id)
    assert shelf.says() == {}
    done = shelf.undo()
    assert done is not None
    assert ([fact.content for fact in done.restored], done.removed) == (["Lives in Oslo"], ())
    assert shelf.says() == {fact_id: "Lives in Oslo"}
    shelf.undo()
    assert shelf.says() == {}


def test_a_restored_fact_is_edited_like_any_other(shelf: Shelf) -> None:
    fact_id = shelf.add("Lives in Oslo")
    shelf.retire(fact_id)
    shelf.undo()
    shelf.facts.update(fact_id, pinned=True)
    assert shelf.says() == {fact_id: "Lives in Oslo"}


def test_a_correction_is_taken_back_as_a_whole(shelf: Shelf) -> None:
    oslo = shelf.add("Lives in Oslo")
    shelf.learn(change("Lives in Bergen", "corrects", oslo), change("Keeps bees"))
    assert sorted(shelf.says().values()) == ["Keeps bees", "Lives in Bergen"]
    shelf.undo()
    assert shelf.says() == {oslo: "Lives in Oslo"}
    shelf.undo()
    assert sorted(shelf.says().values()) == ["Keeps bees", "Lives in Bergen"]


def test_what_was_taken_back_does_not_return_from_the_messages_it_came_from(shelf: Shelf) -> None:
    learned = Change(action="new", content="Keeps bees", sources=("m1",), said_at="2025-10-01T10:00:00+00:00")
    shelf.learn(learned)
    shelf.undo()
    shelf.learn(learned, replace(learned, sources=("m0",)))
    assert shelf.says() == {}


def test_what_the_user_deleted_does_not_return_from_the_messages_it_came_from(shelf: Shelf) -> None:
    learned = Change(action="new", content="Keeps bees", sources=("m1",), said_at="2025-10-01T10:00:00+00:00")
    shelf.learn(learned)
    (fact_id,) = shelf.says()
    shelf.retire(fact_id)
    shelf.learn(learned, replace(learned, sources=("m0",)))
    assert shelf.says() == {}


def test_a_restored_fact_gives_way_to_one_that_says_the_same(shelf: Shelf) -> None:
    fact_id = shelf.add("Lives in Oslo")
    shelf.retire(fact_id)
    shelf.clock.advance(-0.5)
    twin = shelf.facts.create("Lives in Oslo", "goal", 0.5).id
    shelf.clock.advance(0.5)
    shelf.undo()
    assert list(shelf.says()) == [twin]


def test_restoring_keeps_the_limit(shelf: Shelf) -> None:
    first = shelf.add("fact 0")
    shelf.retire(first)
    for number in range(1, 6):
        shelf.clock.advance(-0.1)
        shelf.facts.create(f"fact {number}", "goal", 0.5)
    shelf.undo()
    assert len(shelf.says()) == CONFIG.max_facts
    assert first in shelf.says()


def test_only_facts_that_are_there_are_retired(shelf: Shelf) -> None:
    with pytest.raises(FactNotFound):
        shelf.retire("fact_00000000")


def test_another_agent_is_left_alone(shelf: Shelf) -> None:
    shelf.add("Lives in Oslo")
    done = run(shelf.store, undo_steps(Owner.of("ada", "other"), CONFIG, shelf.clock()))
    assert done is None
    assert list(shelf.says().values()) == ["Lives in Oslo"]


def first(shelf: Shelf) -> str | None:
    return next(iter(sorted(shelf.says())), None)


STEPS: dict[str, Callable[[Shelf, int], object]] = {
    "add": lambda shelf, n: shelf.add(f"fact {n}") if len(shelf.says()) < CONFIG.max_facts else None,
    "edit": lambda shelf, n: shelf.edit(fact_id, f"edit {n}") if (fact_id := first(shelf)) else None,
    "retire": lambda shelf, _: shelf.retire(fact_id) if (fact_id := first(shelf)) else None,
    "correct": lambda shelf, n: shelf.learn(change(f"news {n}", "corrects", first(shelf))) if first(shelf) else None,
    "end": lambda shelf, _: shelf.learn(change("", "ends", first(shelf))) if first(shelf) else None,
    "undo": lambda shelf, _: shelf.undo(),
}


@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=12))
def test_the_last_change_is_taken_back_and_done_again_whatever_came_before(steps: list[str]) -> None:
    shelf = Shelf()
    before: dict[str, str] = {}
    for n, step in enumerate(steps):
        said = shelf.says()
        STEPS[step](shelf, n)
        if shelf.says() != said:
            before = said
    after = shelf.says()
    shelf.undo()
    assert shelf.says() == before
    shelf.undo()
    assert shelf.says() == after
