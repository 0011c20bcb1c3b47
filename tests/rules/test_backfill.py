"""What is imported is evidence, is learned once, is as old as it is, and can be taken back as a whole."""

from collections.abc import Callable
from typing import Any

from memory.backfill.conversation import Conversation
from memory.backfill.exports import read_exported
from memory.backfill.source import ImportSource, TakenBack, TakenIn, erase_source, open_source, take_in
from memory.config import MemoryConfig
from memory.door import run
from memory.facts.fact import Fact
from memory.facts.store import FactStore
from memory.journal.entry import JournalEntry, outdated
from memory.message import StoredMessage, iso_time
from memory.namespaces import imported_thread, source_unit, unit_of
from tests.exports import Talk, chatgpt
from tests.memory_bench import ADA, MemoryBench

OLD = "2023-04-05T10:00:00"


def talk(identity: str, *texts: str, begun: str = OLD) -> Conversation:
    said: Talk = [each for text in texts for each in (("user", text), ("assistant", f"So {text}"))]
    return read_exported(chatgpt(identity, begun, said))


FIGS = talk("figs", "I like figs.", "My sister lives in Oslo.")
PLUMS = talk("plums", "I like plums.", begun="2023-05-05T10:00:00")


def opened(bench: MemoryBench, name: str = "chatgpt") -> ImportSource:
    return run(bench.store, open_source(ADA, name, "chatgpt", bench.clock()))


def take(
    bench: MemoryBench, *conversations: Conversation, learn: bool = True, source: ImportSource | None = None
) -> list[TakenIn]:
    source = source or opened(bench)
    return [run(bench.store, take_in(ADA, source, each, now=bench.clock(), learn=learn)) for each in conversations]


def erased(bench: MemoryBench) -> TakenBack:
    bench.clock.advance(1)
    return run(bench.store, erase_source(ADA, "chatgpt", bench.clock(), MemoryConfig()))


def facts(bench: MemoryBench) -> list[Fact]:
    return FactStore(bench.store, ADA, clock=bench.clock).list()


def test_it_is_evidence_before_it_is_learned_and_keeps_its_dates() -> None:
    bench = MemoryBench()
    (done,) = take(bench, FIGS, learn=False)
    assert (done.journal, done.queued) == (4, 0)
    assert [(entry.day, entry.source) for entry in bench.journal()] == [("2023-04-05", "turn")] * 2
    assert all(entry.written == iso_time(bench.clock())[:10] for entry in bench.journal())  # what retention counts from
    assert bench.model.prompts == []

    (done,) = take(bench, FIGS)
    assert (done.journal, done.queued, done.updates, done.known) == (0, 4, 1, 0)
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
    done = erased(bench)
    assert (bench.facts(), done.kept) == (["Likes figs"], 1)
    assert facts(bench)[0].thread_id == "live"


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


def test_a_conversation_belongs_to_one_source() -> None:
    bench = MemoryBench()
    take(bench, FIGS)
    (done,) = take(bench, FIGS, source=opened(bench, "again"))
    assert done == TakenIn(elsewhere=1)


def test_a_large_import_makes_room_before_what_was_said_here() -> None:
    def entry(thread: str, said: str, written: str) -> JournalEntry:
        message = StoredMessage("m", "user", "x" * 10, f"{said}T10:00:00+00:00")
        return JournalEntry(said, thread, (message,), written=written, source="turn")

    thread = imported_thread(source_unit(ADA, "chatgpt"), "c")
    held = {
        "live": entry("T", "2025-10-01", "2025-10-01"),
        "old": entry(thread, "2023-01-01", "2025-10-05"),
        "newer": entry(f"{thread}2", "2024-01-01", "2025-10-05"),
    }
    gone = outdated(held, "2025-10-06", 90, 20)
    assert gone == ["old"]
    # By age, the import is as old as its writing.
    assert outdated(held, "2025-12-31", 90, 1e9) == ["live"]
