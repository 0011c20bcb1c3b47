from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import Op, Result

from memory.control import INITIAL_EPOCH, read_time_zone, write_time_zone
from memory.effects import perform, run
from memory.journal.entry import JournalEntry, day_of, entries_of
from memory.journal.journal import append, prune, read_journal, read_view, redact
from memory.message import StoredMessage
from memory.namespaces import Owner
from tests.stores import FaultyStore

ADA = Owner.of("ada")
TODAY = JournalEntry("2026-11-22", "T", (), INITIAL_EPOCH)
LATER = JournalEntry("2026-11-23", "T", (), INITIAL_EPOCH)


def said(name: str, time: str = "2026-11-22T10:00:00+00:00") -> StoredMessage:
    return StoredMessage(name, "user", f"text of {name}", time)


def entries(*names: str, thread: str = "T", day: str = "2026-11-22", epoch: str = INITIAL_EPOCH) -> list[JournalEntry]:
    exchanges = [[said(name, f"{day}T10:00:00+00:00")] for name in names]
    return entries_of(JournalEntry(day, thread, (), epoch), exchanges)


def read(store: FaultyStore, since: str = "") -> list[str]:
    found = run(store, read_journal(ADA, INITIAL_EPOCH, since))
    return [message.id for entry in found for message in entry.messages]


def test_a_journal_is_read_in_the_order_it_was_lived() -> None:
    store = FaultyStore()
    run(store, append(ADA, entries("3", day="2026-11-23")))
    run(store, append(ADA, entries("1", "2")))
    assert read(store) == ["1", "2", "3"]
    assert read(store, since="2026-11-23") == ["3"]


@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True), max_size=6))
def test_appending_again_and_in_parts_loses_and_doubles_nothing(parts: list[list[str]]) -> None:
    store = FaultyStore()
    for part in [*parts, *parts]:
        run(store, append(ADA, entries(*part)))
    assert sorted(read(store)) == sorted({name for part in parts for name in part})


@pytest.mark.parametrize("days", [1_000_000, 10**18])
def test_a_journal_that_is_kept_for_longer_than_there_were_days_is_kept(days: int) -> None:
    store = FaultyStore()
    run(store, append(ADA, entries("1", day="1970-01-01")))
    assert run(store, prune(ADA, "2026-11-22", days)) == 0
    assert read(store) == ["1"]


def test_an_exchange_that_was_cut_in_two_grows_together() -> None:
    store = FaultyStore()
    question, answer = said("q"), StoredMessage("a", "assistant", "so", "2026-11-22T10:00:01+00:00")
    run(store, append(ADA, entries_of(TODAY, [[question]])))
    run(store, append(ADA, entries_of(LATER, [[question, answer]])))
    (entry,) = run(store, read_journal(ADA, INITIAL_EPOCH))
    assert entry.messages == (question, answer)
    assert entry.to_json()["to"] == answer.time
    assert entry.written == TODAY.day


def test_another_epoch_is_not_read_and_not_merged() -> None:
    store = FaultyStore()
    run(store, append(ADA, entries("1", epoch="old")))
    assert read(store) == []
    run(store, append(ADA, entries("1")))
    assert read(store) == ["1"]


@pytest.mark.parametrize(
    ("zone", "day"), [("UTC", "2026-11-22"), ("Asia/Tokyo", "2026-11-23"), ("America/New_York", "2026-11-22")]
)
def test_a_day_is_the_users_own(zone: str, day: str) -> None:
    assert day_of("2026-11-22T23:30:00+00:00", ZoneInfo(zone)) == day


def test_a_users_time_zone_is_kept_and_a_wrong_one_refused() -> None:
    store = FaultyStore()
    assert str(run(store, read_time_zone(ADA))) == "UTC"
    run(store, write_time_zone(ADA, "Asia/Tokyo"))
    assert str(run(store, read_time_zone(ADA))) == "Asia/Tokyo"
    with pytest.raises(ValueError, match="IANA"):
        run(store, write_time_zone(ADA, "Middle/Earth"))


def test_retention_drops_whole_days_and_only_old_ones() -> None:
    store = FaultyStore()
    for day in ("2026-11-01", "2026-11-12", "2026-11-22"):
        run(store, append(ADA, entries(day, day=day)))
    assert run(store, prune(ADA, "2026-11-22", 10)) == 1
    assert read(store) == ["2026-11-12", "2026-11-22"]


@pytest.mark.parametrize("old", [1, 200])
def test_a_reader_can_follow_what_is_kept_no_longer_however_much_it_is(old: int) -> None:
    store = FaultyStore()
    run(store, append(ADA, entries(*map(str, range(old)), day="2026-11-01")))
    run(store, append(ADA, entries("new")))
    known = run(store, read_view(ADA))

    assert run(store, prune(ADA, "2026-11-22", 10)) == old

    view, left = run(store, read_view(ADA, known)), run(store, read_view(ADA))
    assert (view.is_whole, view.entries, view.revision) == (False, {}, left.revision)
    assert view.gone == known.entries.keys() - left.entries.keys()
    assert len(left.entries) == 1


def test_who_writes_while_something_is_kept_no_longer_has_readers_read_anew() -> None:
    store = FaultyStore()
    run(store, append(ADA, entries("old", day="2026-11-01")))
    known = run(store, read_view(ADA))
    to_come = [entries("new")]

    def beside(batch: list[Op]) -> list[Result]:
        found = store.batch(batch)
        while to_come:
            run(store, append(ADA, to_come.pop()))
        return found

    assert perform(prune(ADA, "2026-11-22", 10), {list: beside}) == 1

    view = run(store, read_view(ADA, known))
    assert view.is_whole
    assert read(store) == ["new"]


def test_redacting_takes_messages_of_one_thread_only() -> None:
    store = FaultyStore()
    run(store, append(ADA, entries_of(TODAY, [[said("1"), said("2")], [said("3")]])))
    run(store, append(ADA, entries("1", thread="U")))
    run(store, redact(ADA, {"T": {"1", "3"}}))
    left = run(store, read_journal(ADA, INITIAL_EPOCH))
    assert sorted((entry.thread_id, [one.id for one in entry.messages]) for entry in left) == [
        ("T", ["2"]),
        ("U", ["1"]),
    ]


def test_an_entry_that_lost_its_first_message_keeps_its_key() -> None:
    store = FaultyStore()
    run(store, append(ADA, entries_of(TODAY, [[said("1"), said("2")]])))
    run(store, redact(ADA, {"T": {"1"}}))
    (entry,), (item,) = run(store, read_journal(ADA, INITIAL_EPOCH)), store.items(ADA.namespace("journal"))
    assert entry.key == item.key


def test_an_item_that_is_no_entry_is_skipped() -> None:
    store = FaultyStore()
    store.put(ADA.namespace("journal"), "x", {"day": 3})
    store.put(ADA.namespace("journal"), "y", {"day": "2026-11-22", "thread_id": "T", "messages": []})
    assert read(store) == []
