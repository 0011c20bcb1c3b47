"""What a scheduler sent and its reply are never learned or journaled, however they are cut into updates."""

from dataclasses import replace

from memory.effects import run
from memory.journal.journal import read_journal
from memory.message import StoredMessage
from tests.memory_bench import ADA, MemoryBench


def talk(bench: MemoryBench) -> tuple[StoredMessage, ...]:
    asked, reply, *rest = bench.messages("[SCHEDULED] nightly report", "I like figs")
    return (asked, replace(reply, text="REPORT: likes kale"), *rest)


def told(bench: MemoryBench) -> str:
    journal = run(bench.store, read_journal(ADA, bench.epoch()))
    return f"{bench.model.prompts} {[one.text for entry in journal for one in entry.messages]}"


def test_a_scheduled_reply_that_was_written_down_as_a_turns_context_is_not_read() -> None:
    bench = MemoryBench()
    messages = talk(bench)
    bench.record(messages[:2])
    bench.drain()
    bench.record((replace(messages[1], seen=True), *messages[2:]))
    bench.drain()
    assert "REPORT" not in told(bench)
    assert bench.facts() == ["Likes figs"]


def test_a_reply_to_a_person_whose_message_was_cut_before_is_journaled() -> None:
    bench = MemoryBench()
    figs = bench.messages("I like figs", "I like plums")
    for part in (figs[:1], figs[1:]):
        bench.record(part, kind="cut")
        bench.drain()
    assert "reply 1" in told(bench)


def test_a_reply_in_the_words_of_a_scheduled_one_is_read() -> None:
    bench = MemoryBench()
    bench.record(talk(bench))
    bench.drain()
    asked, reply = bench.messages("I like plums", begin=5)
    bench.record((asked, replace(reply, text="REPORT: likes kale")), kind="cut")
    bench.drain()
    assert "REPORT" in told(bench)
