"""Every learned turn gets its dated line once, marked, and no line outlives what a user takes away."""

import json
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest
from langchain_core.messages import BaseMessage

from memory.config import MemoryConfig
from memory.control import write_time_zone
from memory.effects import run
from memory.erase import erase_thread
from memory.facts.store import FactStore
from memory.journal.entry import JournalEntry, entries_of, line_id
from memory.journal.journal import JournalRevision, JournalView, append, read_revision, read_view
from memory.message import StoredMessage, iso_time
from memory.outbox.outbox import discard_dead, retry_dead
from memory.outbox.transcript import ThreadView
from tests.fakes import RecordingModel, learns
from tests.forgetting import erase_fact, erase_user
from tests.memory_bench import ADA, CONFIG, MemoryBench
from tests.stores import FaultyStore

DAY = 86_400.0
NOTHING = json.dumps({"facts": [], "profile": []})


def sources(bench: MemoryBench) -> list[tuple[str, list[str]]]:
    return sorted((entry.source, [one.id for one in entry.messages]) for entry in bench.journal())


def token(bench: MemoryBench) -> str:
    return run(bench.store, read_revision(ADA)).token


def test_a_learned_turn_has_its_line_at_once_and_a_later_cut_only_marks_it() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    (receipt,) = bench.drain().receipts
    assert (sources(bench), dict(receipt.journal)) == ([("turn", ["u1", "a1"])], {"turn": 2})
    bench.clock.advance(2 * DAY)
    bench.record(bench.messages("I like figs"), kind="cut")
    (receipt,) = bench.drain().receipts
    assert (sources(bench), dict(receipt.journal)) == ([("cut", ["u1", "a1"])], {"cut": 2})
    (entry,) = bench.journal()
    assert (entry.day, entry.written) == ("2025-10-09", "2025-10-11")
    assert entry.messages[0].time == "2025-10-09T08:53:20+00:00"


def test_what_is_said_again_in_the_same_words_has_the_day_and_the_time_of_then_also_once_it_is_cut() -> None:
    bench = MemoryBench()
    bench.say("Good morning")
    bench.drain()
    bench.clock.advance(5 * DAY)
    bench.say("Good morning", begin=2)
    bench.drain()

    def told() -> list[tuple[str, str]]:
        return sorted((entry.day, entry.messages[0].time) for entry in bench.journal())

    then = [("2025-10-09", "2025-10-09T08:53:20+00:00"), ("2025-10-14", "2025-10-14T08:53:20+00:00")]
    assert told() == then
    bench.clock.advance(DAY)
    bench.record([*bench.messages("Good morning"), *bench.messages("Good morning", begin=2)], kind="cut")
    bench.drain()
    assert told() == then


def test_a_turn_in_which_nothing_is_worth_remembering_has_its_line() -> None:
    bench = MemoryBench(model=RecordingModel(respond=lambda _: NOTHING))
    bench.say("What is the capital of France?")
    bench.drain()
    assert bench.facts() == []
    assert bench.journaled() == ["T: What is the capital of France?", "T: reply 1"]


def test_what_fails_for_good_has_its_line_then_and_a_retry_or_a_discard_changes_nothing() -> None:
    bench = MemoryBench(config=replace(CONFIG, max_attempts=1))
    bench.model.replies.extend([TimeoutError(), TimeoutError()])
    bench.say("I like figs")
    bench.drain()
    (dead,) = bench.entries()
    assert (dead.state, bench.journaled()) == ("dead", ["T: I like figs", "T: reply 1"])
    bench.say("I like plums", begin=2)
    bench.drain()
    run(bench.store, retry_dead(ADA, bench.clock(), [dead.key]))
    bench.drain()
    run(bench.store, discard_dead(ADA))
    assert bench.entries() == []
    assert bench.facts() == ["Likes figs"]
    assert len(bench.journaled()) == 4


def test_a_dead_letter_of_an_erased_thread_leaves_no_line() -> None:
    bench = MemoryBench(config=replace(CONFIG, max_attempts=1))

    def respond(_: object) -> str:
        erase_thread(FaultyStore(bench.store.inner), "T", clock=bench.clock)
        raise TimeoutError

    bench.model.respond = respond
    bench.say("I like figs")
    bench.drain()
    assert "figs" not in bench.everything_stored()


@pytest.mark.parametrize(("first", "rest"), [(1, 3), (2, 2), (3, 1)])
def test_a_summary_that_cuts_between_a_message_and_its_answer_doubles_no_line(first: int, rest: int) -> None:
    bench = MemoryBench()
    said = bench.messages("I like figs", "I like plums")
    bench.record(said[:2])
    bench.record(said[2:])
    bench.drain()
    for part in (said[:first], said[first:]):
        bench.record(part, kind="cut")
        bench.drain()
    assert rest == len(said) - first
    assert bench.journaled() == ["T: I like figs", "T: I like plums", "T: reply 1", "T: reply 2"]
    assert {source for source, _ in sources(bench)} == {"cut"}


def test_a_message_that_was_edited_away_before_it_was_learned_has_no_line() -> None:
    bench = MemoryBench()
    old, new = bench.messages("I like figs"), bench.messages("I like plums", begin=2)
    bench.record(old)
    bench.record(new, view=ThreadView({message.id for message in new}))
    bench.drain()
    assert bench.journaled() == ["T: I like plums", "T: reply 2"]


def test_a_message_that_says_something_else_under_its_id_and_a_new_answer_take_the_old_ones_place() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.drain()
    bench.clock.advance(60)
    question, answer = bench.messages("I like plums")
    bench.record([question, replace(answer, id="again", text="Good")])
    bench.drain()
    assert bench.journaled() == ["T: Good", "T: I like plums"]


def test_the_day_of_a_line_is_the_users_and_stays_when_they_move() -> None:
    bench = MemoryBench()
    run(bench.store, write_time_zone(ADA, "Pacific/Auckland"))
    bench.clock.advance(6 * 3600)
    bench.say("I like figs")
    bench.drain()
    run(bench.store, write_time_zone(ADA, "America/Los_Angeles"))
    bench.record(bench.messages("I like figs"), kind="cut")
    bench.drain()
    (entry,) = bench.journal()
    assert entry.day == "2025-10-10"
    assert iso_time(bench.clock()).startswith("2025-10-09")


def test_what_a_deleted_fact_came_from_is_not_written_down_again() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.drain()
    (fact,) = FactStore.of_owner(bench.store, ADA).list()
    erase_fact(bench.store, ADA, fact.id, clock=bench.clock)
    assert bench.journal() == []
    bench.record(bench.messages("I like figs", "Good day"), kind="cut")
    bench.drain()
    assert bench.journaled() == ["T: Good day", "T: reply 2"]


def test_erasing_a_thread_or_a_user_takes_their_lines_and_no_others() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.say("I like plums", begin=2, thread="U")
    bench.drain()
    erase_thread(bench.store, "T", clock=bench.clock)
    assert bench.journaled() == ["U: I like plums", "U: reply 2"]
    erase_user(bench.store, "ada")
    assert bench.journal() == []
    assert "plums" not in bench.everything_stored()


def test_every_change_of_the_journal_changes_its_revision_and_nothing_else_does() -> None:
    bench = MemoryBench(config=replace(CONFIG, journal_days=1))
    seen = [token(bench)]

    def look(changed: bool) -> None:
        assert (token(bench) != seen[-1]) == changed
        seen.append(token(bench))

    bench.say("I like figs")
    look(False)
    bench.drain()
    look(True)
    bench.clock.advance(60)
    bench.drain()
    look(False)
    bench.record(bench.messages("I like figs"), kind="cut")
    bench.drain()
    look(True)
    run(bench.store, append(ADA, [JournalEntry("2025-01-01", "V", bench.messages("I like tea", begin=9), "initial")]))
    look(True)
    (fact,) = FactStore.of_owner(bench.store, ADA).list()
    erase_fact(bench.store, ADA, fact.id, clock=bench.clock)
    look(True)
    bench.say("I like plums", begin=2)
    bench.drain()
    look(True)
    erase_thread(bench.store, "T", clock=bench.clock)
    look(True)
    erase_user(bench.store, "ada")
    look(True)


def test_a_reader_follows_the_journal_by_what_changed_and_reads_all_where_nobody_can_tell() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.drain()
    first = run(bench.store, read_view(ADA))
    assert first.is_whole
    bench.say("I like plums", begin=2)
    bench.drain()
    bench.record(bench.messages("I like figs"), kind="cut")
    bench.drain()
    change = run(bench.store, read_view(ADA, first))
    assert not change.is_whole
    whole = run(bench.store, read_view(ADA))
    assert {**first.entries, **change.entries} == whole.entries
    assert run(bench.store, read_view(ADA, whole)) == replace(whole, entries={}, is_whole=False)
    erase_thread(bench.store, "T", clock=bench.clock)
    assert run(bench.store, read_view(ADA, whole)).is_whole
    assert run(bench.store, read_view(ADA, replace(whole, epoch="old"))).is_whole


def test_a_revision_that_two_wrote_at_once_cannot_be_followed() -> None:
    known = JournalRevision("a")
    one, other = known.changed(["1"]), known.changed(["2"])
    assert one.keys_since("a") == frozenset("1")
    assert one.changed(["3"]).keys_since("a") == frozenset("13")
    assert other.keys_since(one.token) is None
    assert replace(one.changed(["3"]), token="c").keys_since("a") is None
    hundred = [str(n) for n in range(100)]
    assert known.changed(hundred).keys_since("a") == frozenset(hundred)
    assert known.changed([str(n) for n in range(2_000)]).keys_since("a") is None
    many = known
    for n in range(20):
        many = many.changed([str(n)])
    assert many.keys_since("a") is None


def test_who_wrote_at_the_same_time_makes_readers_read_anew() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.drain()
    known = run(bench.store, read_view(ADA))

    def respond(messages: list[BaseMessage]) -> str:
        # Another worker writes a line of another thread, knowing the same revision as this one.
        bench.model.respond = learns
        bench.say("I like plums", begin=2, thread="U")
        bench.another_process(99).drain(ADA)
        return learns(messages)

    bench.model.respond = respond
    bench.say("I like tea", begin=3)
    bench.drain()
    view = run(bench.store, read_view(ADA, known))
    assert view.is_whole
    assert len(view.entries) == 3


async def test_a_roll_up_tells_of_what_was_cut_only_and_asks_no_model_for_the_rest() -> None:
    bench = MemoryBench()
    bench.say("I like figs", "I like plums")
    bench.drain()
    bench.clock.advance(2 * DAY)
    bench.model.prompts.clear()
    assert await bench.updater.aroll_up([ADA]) == [False]
    assert bench.model.prompts == []
    bench.record(bench.messages("I like figs"), kind="cut")
    bench.drain()
    bench.clock.advance(2 * DAY)
    bench.model.respond = lambda _: "account"
    assert await bench.updater.aroll_up([ADA]) == [True]
    told = bench.model.prompts[-1][-1].text
    assert "figs" in told
    assert "plums" not in told


async def test_a_line_that_is_cut_long_after_its_day_was_told_of_is_told_with_the_day_of_the_cut() -> None:
    bench = MemoryBench()
    bench.say("I like figs", "I like plums")
    bench.drain()
    for kept, day in (("I like figs", 1), ("I like plums", 3)):
        bench.clock.advance(DAY)
        number = 1 if kept == "I like figs" else 2
        bench.record(bench.messages(kept, begin=number), kind="cut")
        bench.drain()
        bench.clock.advance(DAY)
        bench.model.respond = lambda _: "account"
        assert await bench.updater.aroll_up([ADA]) == [True], day
        assert kept in bench.model.prompts[-1][-1].text
        bench.model.respond = learns


async def test_lines_go_by_age_and_by_size_the_oldest_first_also_while_a_model_fails() -> None:
    bench = MemoryBench(config=MemoryConfig(journal_days=30, journal_bytes=60))
    for number in range(4):
        bench.say(f"I like figs{number}", begin=number)  # 12 bytes, and 7 of the reply
        bench.drain()
        bench.clock.advance(DAY)
    await bench.updater.aroll_up([ADA])
    assert [one.id for entry in bench.journal() for one in entry.messages] == ["u1", "a1", "u2", "a2", "u3", "a3"]
    bench.record(bench.messages("I like figs3", begin=3), kind="cut")
    bench.drain()
    bench.clock.advance(40 * DAY)
    bench.model.replies.append(TimeoutError())
    assert await bench.updater.aroll_up([ADA]) == [False]
    assert sources(bench) == [("cut", ["u3", "a3"])], (
        "what nobody told of waits for the model, what need not be does not"
    )


def test_the_ids_of_lines_differ_between_threads() -> None:
    assert line_id("T", "1") != line_id("U", "1")
    said = (StoredMessage("1", "user", "Hi", "2026-11-22T23:30:00+00:00"),)
    (entry,) = entries_of(JournalEntry("2026-11-22", "T", (), "e"), [said], ZoneInfo("Asia/Tokyo"), cut=())
    assert (entry.messages, entry.day, entry.source) == (said, "2026-11-23", "turn")
    assert JournalView("e", JournalRevision(), {}, True).entries == {}
