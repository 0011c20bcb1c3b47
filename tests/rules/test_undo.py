from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from memory.config import MemoryConfig
from memory.facts.changes import Change, Extraction
from memory.facts.rules import UndoneFacts
from memory.facts.store import FactStore
from memory.message import iso_time
from tests.fakes import Clock

CONFIG = MemoryConfig(max_facts=5)


class Remembered:
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
        now = iso_time(self.clock())
        self.facts.apply(Extraction(changes=changes), thread_id="t", epoch="initial", now=now)

    def undo(self) -> UndoneFacts | None:
        self.clock.advance(1)
        return self.facts.undo()

    def says(self) -> dict[str, str]:
        return {fact.id: fact.content for fact in self.facts.list()}


@pytest.fixture
def memory() -> Remembered:
    return Remembered()


def change(content: str, action: str = "new", target: str | None = None) -> Change:
    return Change(action=action, content=content, confidence=0.9, target=target, sources=(content,))  # type: ignore[arg-type]


def test_a_restored_fact_gives_way_to_one_that_says_the_same(memory: Remembered) -> None:
    fact_id = memory.add("Lives in Oslo")
    memory.retire(fact_id)
    memory.clock.advance(-0.5)
    twin = memory.facts.create("Lives in Oslo", "goal", 0.5).id
    memory.clock.advance(0.5)
    memory.undo()
    assert list(memory.says()) == [twin]


def test_an_edit_is_not_taken_back_to_what_another_fact_says_by_now(memory: Remembered) -> None:
    fact_id = memory.add("Lives in Oslo")
    memory.edit(fact_id, "Lives in Bergen")
    at = memory.facts.get(fact_id).updated_at
    twin = memory.add("Lives in Oslo")
    memory.clock.advance(1)
    assert memory.facts.undo(at) is not None
    assert memory.says() == {twin: "Lives in Oslo"}
    memory.undo()
    assert memory.says() == {fact_id: "Lives in Bergen", twin: "Lives in Oslo"}


def first(memory: Remembered) -> str | None:
    return next(iter(sorted(memory.says())), None)


STEPS: dict[str, Callable[[Remembered, int], object]] = {
    "add": lambda memory, n: memory.add(f"fact {n}") if len(memory.says()) < CONFIG.max_facts else None,
    "edit": lambda memory, n: memory.edit(fact_id, f"edit {n}") if (fact_id := first(memory)) else None,
    "retire": lambda memory, _: memory.retire(fact_id) if (fact_id := first(memory)) else None,
    "correct": lambda memory, n: (
        memory.learn(change(f"news {n}", "corrects", first(memory))) if first(memory) else None
    ),
    "end": lambda memory, _: memory.learn(change("", "ends", first(memory))) if first(memory) else None,
    "undo": lambda memory, _: memory.undo(),
}


@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=12))
def test_the_last_change_is_taken_back_and_done_again_whatever_came_before(steps: list[str]) -> None:
    memory = Remembered()
    before: dict[str, str] = {}
    for n, step in enumerate(steps):
        said = memory.says()
        STEPS[step](memory, n)
        if memory.says() != said:
            before = said
    after = memory.says()
    memory.undo()
    assert memory.says() == before
    memory.undo()
    assert memory.says() == after


def test_a_change_is_taken_back_by_its_time_whatever_came_after_it(memory: Remembered) -> None:
    first, second = memory.add("one"), memory.add("two")
    memory.clock.advance(1)
    at = memory.facts.retire(first)
    memory.edit(second, "too")
    memory.clock.advance(1)
    assert memory.facts.undo(at) is not None
    assert memory.says() == {first: "one", second: "too"}
    memory.clock.advance(1)
    assert memory.facts.undo(at) is None
