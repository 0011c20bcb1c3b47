"""What is imported is evidence, is learned once, is as old as it is, and can be taken back as a whole."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from memory.backfill.conversation import Conversation
from memory.backfill.exports import read_chatgpt
from memory.backfill.sources import ImportSource, open_source
from memory.backfill.taking_back import TakenBack, erase_source
from memory.backfill.taking_in import SourceGone, TakenIn, take_talk_in
from memory.config import Approval, MemoryConfig
from memory.control import change_control
from memory.effects import run
from memory.erase import threads_feeding
from memory.facts.fact import Fact
from memory.facts.store import FactStore
from memory.journal.entry import JournalEntry, outdated
from memory.message import StoredMessage, iso_time
from memory.namespaces import Owner, imported_thread, is_imported, source_unit, unit_of
from memory.recall.past import read_past
from tests.exports import Talk, chatgpt
from tests.forgetting import erase_fact
from tests.memory_bench import ADA, MemoryBench

OLD = "2023-04-05T10:00:00"


def talk(identity: str, *texts: str, begun: str = OLD) -> Conversation:
    said: Talk = [each for text in texts for each in (("user", text), ("assistant", f"So {text}"))]
    return read_chatgpt(chatgpt(identity, begun, said))


FIGS = talk("figs", "I like figs.", "My sister lives in Oslo.")
PLUMS = talk("plums", "I like plums.", begun="2023-05-05T10:00:00")


def opened(bench: MemoryBench, name: str = "chatgpt", owner: Owner = ADA) -> ImportSource:
    return run(bench.store, open_source(owner, name, "chatgpt", bench.clock()))


def take(
    bench: MemoryBench, *conversations: Conversation, learn: bool = True, source: ImportSource | None = None
) -> list[TakenIn]:
    source = source or opened(bench)
    return [
        run(bench.store, take_talk_in(ADA, source, each, now=bench.clock(), learn=learn, portion_messages=4))
        for each in conversations
    ]


def erased(bench: MemoryBench, name: str = "chatgpt") -> TakenBack:
    bench.clock.advance(1)
    return run(bench.store, erase_source(ADA, name, bench.clock(), MemoryConfig()))


def facts(bench: MemoryBench) -> list[Fact]:
    return FactStore(bench.store, ADA, clock=bench.clock).list()


@pytest.mark.parametrize("by", ["deployment", "user"])
def test_a_message_of_an_import_is_told_only_after_a_yes_where_no_model_marked_it(by: str) -> None:
    bench = MemoryBench()
    if by == "user":
        run(bench.store, change_control(ADA, approval="sensitive"))
    source = opened(bench)
    approval: Approval = "sensitive" if by == "deployment" else "off"
    run(
        bench.store,
        take_talk_in(ADA, source, FIGS, now=bench.clock(), learn=False, portion_messages=4, approval=approval),
    )
    told = [one.text for entry in run(bench.store, read_past(ADA, bench.epoch())) for one in entry.messages]
    assert told == []  # no model has read it
    assert len(bench.journaled()) == 4


def test_it_is_evidence_before_it_is_learned_and_keeps_its_dates() -> None:
    bench = MemoryBench()
    (done,) = take(bench, FIGS, learn=False)
    assert (done.told, done.queued) == (4, 0)
    assert [(entry.day, entry.source) for entry in bench.journal()] == [("2023-04-05", "turn")] * 2
    assert all(entry.written == iso_time(bench.clock())[:10] for entry in bench.journal())  # what retention counts from
    assert bench.model.prompts == []

    (done,) = take(bench, FIGS)
    assert (done.told, done.queued, done.updates, done.known) == (0, 4, 1, 0)
    before = bench.journaled()
    bench.drain_all()
    assert bench.journaled() == before
    (fact,) = facts(bench)
    assert (fact.content, fact.created_at[:10], fact.source) == ("Likes figs", "2023-04-05", "conversation")
    assert unit_of(fact.thread_id) == source_unit(ADA, "chatgpt")
    assert fact.message_ids == ("figs-1",)


def test_of_a_conversation_that_went_on_only_what_is_new_is_learned() -> None:
    bench = MemoryBench()
    take(bench, FIGS)
    bench.drain_all()
    longer = talk("figs", "I like figs.", "My sister lives in Oslo.", "I like dates.")
    (done,) = take(bench, longer)
    assert (done.queued, done.known) == (2, 4)
    (entry,) = bench.entries()
    assert [(one.text, one.seen) for one in entry.messages] == [
        ("So My sister lives in Oslo.", True),
        ("I like dates.", False),
        ("So I like dates.", False),
    ]
    bench.drain_all()
    assert bench.facts() == ["Likes dates", "Likes figs"]


def test_a_reply_that_leads_into_a_piece_is_neither_counted_nor_taken_in() -> None:
    bench = MemoryBench()
    later = talk("figs", "I like figs.", "I like dates.")
    led = replace(later, messages=later.messages[1:], goes_on=True)
    # Also if it is unknown here, as one is that was erased since.
    (done,) = take(bench, led)
    assert (done.told, done.queued, done.known) == (2, 2, 0)
    (entry,) = bench.entries()
    assert (entry.messages[0].text, entry.messages[0].seen) == ("So I like figs.", True)
    assert not [line for line in bench.journaled() if "So I like figs." in line]
    (done,) = take(bench, led)
    assert (done.told, done.queued, done.known) == (0, 0, 2)


def imported(bench: MemoryBench) -> None:
    take(bench, FIGS, PLUMS, learn=False)
    take(bench, FIGS, PLUMS)
    bench.drain_all()


def test_facts_that_others_support_stay() -> None:
    bench = MemoryBench()
    imported(bench)
    bench.clock.advance(10)
    bench.say("I like figs.", thread="live")
    bench.drain_all()
    store = FactStore(bench.store, ADA, clock=bench.clock)
    plums = next(fact for fact in store.list() if "plums" in fact.content)
    done = erased(bench)
    assert (bench.facts(), done.kept) == (["Likes figs"], 1)
    assert facts(bench)[0].thread_id == "live"

    bench = MemoryBench()
    imported(bench)
    FactStore(bench.store, ADA, clock=bench.clock).update(plums.id, content="Likes ripe plums")
    assert erased(bench).kept == 1
    assert bench.facts() == ["Likes ripe plums"]


def corrects(known: int, content: str) -> Callable[[list[Any]], str]:
    return lambda _: (
        f'{{"facts": [{{"message": 1, "action": "corrects", "known": {known}, "content": "{content}", '
        '"category": "knowledge", "confidence": 0.9}], "profile": []}'
    )


def learned_live(bench: MemoryBench, said: str, content: str) -> None:
    bench.model.respond = corrects(0, content)
    bench.record([StoredMessage("u1", "user", said, iso_time(bench.clock()))], thread="live")
    bench.drain_all()


def test_what_was_said_long_ago_corrects_nothing_newer() -> None:
    bench = MemoryBench()
    learned_live(bench, "I live in Bergen.", "Lives in Bergen")
    bench.model.respond = corrects(1, "Lives in Oslo")
    take(bench, talk("old", "I live in Oslo."))
    (receipt,) = [receipt for drained in [bench.drain()] for receipt in drained.receipts]
    assert [(each.reason, each.n) for each in receipt.refused] == [("older", 1)]
    assert bench.facts() == ["Lives in Bergen"]


def ends(bench: MemoryBench, talk_: Conversation) -> None:
    answer = (
        '{"facts": [{"message": 1, "action": "ends", "known": 1, "content": "", "confidence": 0.9}], "profile": []}'
    )
    bench.model.respond = lambda _: answer
    take(bench, talk_)
    bench.clock.advance(1)
    bench.drain()


def test_what_a_conversation_here_ended_stays_ended_when_an_import_goes() -> None:
    bench = MemoryBench()
    learned_live(bench, "I have a cat.", "Has a cat")
    take(bench, FIGS, learn=False)
    bench.model.respond = lambda _: (
        '{"facts": [{"message": 1, "action": "ends", "known": 1, "content": "", "confidence": 0.9}], "profile": []}'
    )
    bench.clock.advance(1)
    gone = StoredMessage("u2", "user", "I do not have a cat any more.", iso_time(bench.clock()))
    bench.record([gone], thread="live")
    bench.drain_all()
    assert bench.facts() == []
    assert erased(bench).restored == 0
    assert bench.facts() == []


def test_a_piece_for_a_source_that_was_erased_is_refused() -> None:
    bench = MemoryBench()
    source = opened(bench)
    erased(bench)
    with pytest.raises(SourceGone):
        take(bench, FIGS, source=source)
    opened(bench)
    with pytest.raises(SourceGone):
        take(bench, FIGS, source=source)
    assert bench.journaled() == []


def test_a_conversation_belongs_to_one_source() -> None:
    bench = MemoryBench()
    take(bench, FIGS)
    (done,) = take(bench, FIGS, source=opened(bench, "again"))
    assert (done.elsewhere, done.told, done.queued) == ("chatgpt", 0, 0)


def test_what_was_erased_does_not_come_back_by_running_it_again() -> None:
    bench = MemoryBench()
    imported(bench)
    figs = next(fact for fact in facts(bench) if "figs" in fact.content)
    bench.clock.advance(1)
    erase_fact(bench.store, ADA, figs.id, clock=bench.clock)
    imported(bench)
    assert bench.facts() == ["Likes plums"]
    assert "figs" not in " ".join(bench.journaled())


def test_one_users_import_is_nobody_elses() -> None:
    bob = Owner.of("bob")
    assert source_unit(ADA, "chatgpt") != source_unit(bob, "chatgpt")
    thread = imported_thread(source_unit(ADA, "chatgpt"), "c")
    assert is_imported(thread)
    assert unit_of(thread) == source_unit(ADA, "chatgpt")
    assert (unit_of("T"), is_imported("import: notes")) == ("T", False)
    with pytest.raises(ValueError, match="source must be"):
        source_unit(ADA, "a:b")


def test_no_server_thread_is_made_of_an_import() -> None:
    bench = MemoryBench()
    bench.say("I like cats.", thread="live")
    take(bench, FIGS)
    assert run(bench.store, threads_feeding("ada")) == ["live"]


def test_a_large_import_makes_room_before_what_was_said_here() -> None:
    def entry(thread: str, said: str, written: str) -> JournalEntry:
        message = StoredMessage("m", "user", "x" * 10, f"{said}T10:00:00+00:00")
        return JournalEntry(said, thread, (message,), "initial", written=written, source="turn")

    thread = imported_thread(source_unit(ADA, "chatgpt"), "c")
    held = {
        "live": entry("T", "2025-10-01", "2025-10-01"),
        "old": entry(thread, "2023-01-01", "2025-10-05"),
        "newer": entry(f"{thread}2", "2024-01-01", "2025-10-05"),
    }
    gone = outdated(held, "2025-10-06", 90, 20, sources={"turn"})
    assert gone == ["old"]
    # By age, the import is as old as its writing.
    assert outdated(held, "2025-12-31", 90, 1e9, sources={"turn"}) == ["live"]
