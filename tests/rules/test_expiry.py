"""A fact with an end leaves the prompt by itself, and then the facts: by its text, by hand, and by the clock alone."""

from datetime import UTC, datetime

from langgraph.store.memory import InMemoryStore

from memory.config import MemoryConfig
from memory.door import run
from memory.facts.store import FactStore
from memory.forget.retention import clean
from memory.namespaces import Owner
from tests.fakes import Clock

ADA = Owner.of("ada")
NOW = datetime(2026, 11, 18, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0


def everything(store: InMemoryStore) -> str:
    return repr([item.value for item in store.search((), limit=1000)])


def test_history_goes_by_age_and_what_a_person_deleted_does_not_come_back() -> None:
    store, clock = InMemoryStore(), Clock(NOW)
    there, config = FactStore(store, ADA, clock=clock), MemoryConfig(history_days=30)
    edited = there.create("Lives in Bergen", "knowledge", 0.9)
    there.update(edited.id, content="Lives in Oslo")
    deleted = there.create("Owns a zebra", "knowledge", 0.9)
    there.delete(deleted.id)
    records = everything(store).count("fact_id")
    clock.advance(29 * DAY)
    assert run(store, clean(ADA, config, clock()))["revisions"] == 0
    assert "Bergen" in everything(store)
    clock.advance(2 * DAY)
    assert run(store, clean(ADA, config, clock()))["revisions"] == 1
    assert "Bergen" not in everything(store)
    assert everything(store).count("fact_id") == records, "deletion records are no history"
    assert [fact.content for fact in there.list()] == ["Lives in Oslo"]


def test_without_a_setting_nothing_goes_by_age() -> None:
    store, clock = InMemoryStore(), Clock(NOW)
    there = FactStore(store, ADA, clock=clock)
    there.update(there.create("Lives in Bergen", "knowledge", 0.9).id, content="Lives in Oslo")
    clock.advance(10_000 * DAY)
    assert not any(run(store, clean(ADA, MemoryConfig(), clock())).values())
