"""A fact with an end leaves the prompt by itself, and then the facts: by its text, by hand, and by the clock alone."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from memory.config import MemoryConfig
from memory.effects import run
from memory.extraction.days import with_dates
from memory.extraction.validity import validity
from memory.facts.fact import Fact, is_over
from memory.facts.snapshot import read_snapshot
from memory.facts.store import FactStore
from memory.namespaces import Owner
from memory.outbox.receipts import read_receipts
from memory.retention import Cleaned, clean, owners_to_clean
from tests.fakes import Clock
from tests.memory_bench import MemoryBench

ADA = Owner.of("ada")
SAID = date(2026, 11, 18)  # a Wednesday
NOW = datetime(2026, 11, 18, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0


@pytest.mark.parametrize(
    ("content", "begin", "end"),
    [
        ("User is in Paris this week", "2026-11-16", "2026-11-22"),
        ("User is visiting Ada this weekend", "2026-11-21", "2026-11-22"),
        ("User's sister is abroad this month", "2026-11", "2026-11"),
        ("User is sick today", "2026-11-18", "2026-11-18"),
        ("User must hand in the report this week", "2026-11-16", "2026-11-22"),
        ("User is in Paris until this Friday", "", "2026-11-20"),
        ("User moves to Oslo this week", "", ""),
        ("User was in Paris this week", "", ""),
        ("User is allergic to peanuts", "", ""),
        ("User is in Paris", "", ""),
        ("User is busy today and in Paris this week", "", ""),
        ("User starts a new job this month", "", ""),
    ],
)
def test_what_is_so_for_a_time_has_its_end_from_the_text(content: str, begin: str, end: str) -> None:
    assert validity(with_dates(content, SAID), SAID) == (begin, end)


def facts(store: InMemoryStore, clock: Clock) -> FactStore:
    return FactStore.of_owner(store, ADA, clock=clock)


def shown(store: InMemoryStore, clock: Clock) -> list[str]:
    return [fact.content for fact in run(store, read_snapshot(ADA)).at(clock()).facts]


def test_a_fact_leaves_the_prompt_when_its_day_has_ended_everywhere_and_later_the_facts() -> None:
    store, clock = InMemoryStore(), Clock(NOW)
    kept = facts(store, clock).create("Likes figs", "preference", 0.9)
    made = facts(store, clock).create("Is in Paris", "context", 0.9, expires_at="2026-11-20", pinned=True)
    assert shown(store, clock) == ["Is in Paris", "Likes figs"]
    clock.seconds = datetime(2026, 11, 21, 11, 59, tzinfo=UTC).timestamp()
    assert len(shown(store, clock)) == 2, "somewhere on earth it is still the 20th"
    clock.advance(120)
    assert shown(store, clock) == ["Likes figs"]
    assert {fact.id for fact in facts(store, clock).list()} == {kept.id, made.id}, "nobody has cleaned up yet"
    assert run(store, clean(ADA, MemoryConfig(), clock())) == Cleaned(over=1)
    assert [fact.id for fact in facts(store, clock).list()] == [kept.id]
    assert [(fact.id, fact.status) for fact in facts(store, clock).list("ended")] == [(made.id, "ended")]
    assert [fact.content for fact in facts(store, clock).history(made.id)] == ["Is in Paris"]
    assert run(store, clean(ADA, MemoryConfig(), clock())) == Cleaned()


def test_what_ended_by_the_clock_may_be_learned_again() -> None:
    store, clock = InMemoryStore(), Clock(NOW)
    facts(store, clock).create("Is in Paris", "context", 0.9, expires_at="2026-11-18")
    clock.advance(3 * DAY)
    run(store, clean(ADA, MemoryConfig(), clock()))
    facts(store, clock).create("Is in Paris", "context", 0.9)
    assert shown(store, clock) == ["Is in Paris"]


def test_an_end_is_given_changed_and_taken_back_by_hand() -> None:
    store, clock = InMemoryStore(), Clock(NOW)
    there = facts(store, clock)
    fact = there.create("Is in Paris", "context", 0.9)
    assert there.update(fact.id, expires_at="2026-11").valid_to == "2026-11"
    assert there.update(fact.id, confidence=0.5).valid_to == "2026-11"
    assert there.update(fact.id, content="Is in Rome", expires_at="2026-12").valid_to == "2026-12"
    assert there.update(fact.id, expires_at="").valid_to == ""
    assert there.update(fact.id, expires_at="2026").valid_to == "2026"
    assert there.update(fact.id, content="Is in Oslo").valid_to == "", "the end belonged to the old words"


@pytest.mark.parametrize("wrong", ["Friday", "2026-13", "2026-02-30", "20261231", "2026-12-31T10:00"])
def test_an_end_that_is_no_date_is_refused_by_its_name(wrong: str) -> None:
    store, clock = InMemoryStore(), Clock(NOW)
    with pytest.raises(ValueError, match="expires_at must be a day"):
        facts(store, clock).create("Is in Paris", "context", 0.9, expires_at=wrong)
    made = facts(store, clock).create("Is in Paris", "context", 0.9)
    with pytest.raises(ValueError, match="expires_at must be a day"):
        facts(store, clock).update(made.id, expires_at=wrong)


@given(st.dates(date(2000, 1, 1), date(2090, 1, 1)), st.floats(0, 4e9), st.floats(0, 1e8))
def test_what_is_over_stays_over(day: date, now: float, later: float) -> None:
    fact = Fact(
        id="fact_00000001", content="x", category="context", confidence=1.0, created_at="", updated_at="",
        valid_to=day.isoformat(),
    )  # fmt: skip
    assert not is_over(fact, now) or is_over(fact, now + later)


def everything(store: InMemoryStore) -> str:
    return repr([item.value for item in store.search((), limit=1000)])


def test_history_goes_by_age_and_what_a_person_deleted_does_not_come_back() -> None:
    store, clock = InMemoryStore(), Clock(NOW)
    there, config = facts(store, clock), MemoryConfig(history_days=30)
    edited = there.create("Lives in Bergen", "knowledge", 0.9)
    there.update(edited.id, content="Lives in Oslo")
    deleted = there.create("Owns a zebra", "knowledge", 0.9)
    there.delete(deleted.id)
    records = everything(store).count("fact_id")
    clock.advance(29 * DAY)
    assert run(store, clean(ADA, config, clock())).revisions == 0
    assert "Bergen" in everything(store)
    clock.advance(2 * DAY)
    assert run(store, clean(ADA, config, clock())).revisions == 1
    assert "Bergen" not in everything(store)
    assert everything(store).count("fact_id") == records, "deletion records are no history"
    assert [fact.content for fact in there.list()] == ["Lives in Oslo"]


def test_receipts_go_by_age() -> None:
    there = MemoryBench()
    there.say("I like figs")
    there.drain()
    config = MemoryConfig(receipt_days=7)
    there.clock.advance(6 * DAY)
    assert run(there.store, clean(ADA, config, there.clock())).receipts == 0
    there.clock.advance(2 * DAY)
    assert run(there.store, clean(ADA, config, there.clock())).receipts == 1
    assert not run(there.store, read_receipts(ADA, "initial"))
    assert there.facts() == ["Likes figs"]


def test_without_a_setting_nothing_goes_by_age() -> None:
    store, clock = InMemoryStore(), Clock(NOW)
    there = facts(store, clock)
    there.update(there.create("Lives in Bergen", "knowledge", 0.9).id, content="Lives in Oslo")
    clock.advance(10_000 * DAY)
    assert run(store, clean(ADA, MemoryConfig(), clock())) == Cleaned()
    assert run(store, owners_to_clean()) == [ADA]
