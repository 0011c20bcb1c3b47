"""What of the journal may be told: whoever reads it while a person deletes a fact, or wants it back, reads it again."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from memory.config import MemoryConfig
from memory.control import EDIT_KEY, INITIAL_EPOCH, edit_in
from memory.effects import StoreEffects, run
from memory.erase import forget_messages
from memory.facts.changes import Change, Extraction
from memory.facts.effects import FactEffects
from memory.facts.store import FactStore
from memory.journal import JournalEntry, append
from memory.journal.journal import JournalView
from memory.message import StoredMessage
from memory.namespaces import Owner
from memory.recall.past import read_tellable_view

ADA = Owner.of("ada")
READERS_STEPS = 6
"""A few more than there are: the last changes come after it."""
AT = "2026-03-01T10:00:00+00:00"


@pytest.fixture
def store() -> InMemoryStore:
    """Ada's fact, and the message that it was taken from, in her journal."""
    store = InMemoryStore()
    change = Change(action="new", content="Keeps an axolotl called Wombert", category="knowledge", sources=("1",))
    FactStore.of_owner(store, ADA).apply(Extraction(changes=(change,)), thread_id="T", epoch=INITIAL_EPOCH, now=AT)
    messages = (StoredMessage("1", "user", "I keep an axolotl called Wombert.", AT),)
    run(store, append(ADA, [JournalEntry("2026-03-01", "T", messages, INITIAL_EPOCH)]))
    return store


def retire(store: BaseStore, facts: FactEffects) -> StoreEffects[Any]:
    return facts.retire(FactStore.of_owner(store, ADA).list()[0].id)


def delete(store: BaseStore, facts: FactEffects) -> StoreEffects[Any]:
    return facts.delete(FactStore.of_owner(store, ADA).list()[0].id)


def forget(store: BaseStore, facts: FactEffects) -> StoreEffects[Any]:
    return forget_messages(ADA, {"T": ["1"]}, FactStore.of_owner(store, ADA).list()[0].id, 1_760_000_000.0)


def undo(store: BaseStore, facts: FactEffects) -> StoreEffects[Any]:
    run(store, retire(store, facts))
    return facts.undo()


def step_by_step(store: BaseStore, effects: StoreEffects[Any]) -> Iterator[None]:
    batch = next(effects)
    while True:
        yield
        try:
            batch = effects.send(store.batch(batch))
        except StopIteration:
            return


def told(view: JournalView) -> int:
    return sum(len(entry.messages) for entry in view.entries.values())


@pytest.mark.parametrize("change", [retire, delete, forget, undo])
def test_who_reads_between_two_steps_of_a_change_reads_again_after_it(
    store: InMemoryStore, change: Callable[[BaseStore, FactEffects], StoreEffects[Any]]
) -> None:
    facts = FactEffects(ADA, MemoryConfig(), lambda: 1_760_000_000.0)
    views = [run(store, read_tellable_view(ADA)) for _ in step_by_step(store, change(store, facts))]

    after = run(store, read_tellable_view(ADA))

    assert told(after) == (change is undo)
    assert len(views) > 2
    assert all(told(view) == told(after) for view in views if view.edit == after.edit)
    assert after.edit == edit_in(store.get(ADA.control, EDIT_KEY))


def read_into(views: list[JournalView]) -> StoreEffects[None]:
    views.append((yield from read_tellable_view(ADA)))


@pytest.mark.parametrize("steps_before", range(READERS_STEPS))
@pytest.mark.parametrize("change", [retire, delete, forget, undo])
def test_a_change_between_two_steps_of_a_reader_has_it_read_again(
    change: Callable[[BaseStore, FactEffects], StoreEffects[Any]], steps_before: int, store: InMemoryStore
) -> None:
    changing = change(store, FactEffects(ADA, MemoryConfig(), lambda: 1_760_000_000.0))
    views: list[JournalView] = []
    reading = step_by_step(store, read_into(views))

    list(islice(reading, steps_before + 1))
    run(store, changing)
    list(reading)

    after = run(store, read_tellable_view(ADA))
    assert told(views[0]) == told(after) or views[0].edit != after.edit
