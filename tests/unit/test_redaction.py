"""What goes with an erased fact: echoes, confirmations, what says the same elsewhere; and what stays."""

import json
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from memory.door import run
from memory.facts.store import FactStore
from memory.forget.erase import erase_thread
from memory.journal.journal import read_journal
from memory.message import StoredMessage, iso_time
from tests.forgetting import erase_fact
from tests.memory_bench import ADA, MemoryBench


def talk(bench: MemoryBench, *texts: str, begin: int = 1) -> Sequence[StoredMessage]:
    """What the user and the assistant said by turns."""
    now = iso_time(bench.clock())
    return [
        StoredMessage(f"m{number}", "assistant" if number % 2 == 0 else "user", text, now)
        for number, text in enumerate(texts, begin)
    ]


def told(*texts: str, thread: str = "T", bench: MemoryBench | None = None) -> MemoryBench:
    """A conversation that was learned and journaled."""
    bench = bench or MemoryBench()
    bench.record(talk(bench, *texts), kind="cut", thread=thread)
    bench.drain()
    bench.clock.advance(1)
    return bench


def facts_of(bench: MemoryBench) -> FactStore:
    return FactStore(bench.store, ADA, clock=bench.clock)


def fact_id(bench: MemoryBench, word: str) -> str:
    return next(fact.id for fact in facts_of(bench).list() if word in fact.content)


def erase(bench: MemoryBench, word: str = "figs") -> None:
    erase_fact(bench.store, ADA, fact_id(bench, word), clock=bench.clock)


def journal(bench: MemoryBench) -> list[str]:
    entries = run(bench.store, read_journal(ADA))
    return sorted(one.text for entry in entries for one in entry.messages)


def test_what_confirmed_it_in_another_thread_goes_whatever_it_says() -> None:
    bench = told("I like figs.", "Noted.")

    def confirms(_: Sequence[BaseMessage]) -> str:
        fact = {"message": 2, "action": "confirms", "known": 1, "content": "", "category": "preference"}
        return json.dumps({"facts": [{**fact, "confidence": 0.9}], "profile": []})

    bench.model.respond = confirms
    told("Hello.", "Do you still like figs?", "Yes, still.", "I see.", "Good day.", "Bye.", thread="U", bench=bench)
    chain = erase_fact(bench.store, ADA, fact_id(bench, "figs"), clock=bench.clock)
    assert chain.sources == {"T": {"m1"}, "U": {"m3"}}
    assert journal(bench) == ["Bye.", "Good day.", "Hello."]


def test_a_confirmation_goes_with_the_thread_that_it_was_said_in() -> None:
    bench = told("I like figs.", "Noted.")
    told("I like figs.", "Noted.", thread="U", bench=bench)
    facts = FactStore(bench.store, ADA)
    assert facts.confirmations(fact_id(bench, "figs")).count == 1
    erase_thread(bench.store, "U", clock=bench.clock)
    assert bench.facts() == ["Likes figs"]
    assert facts.confirmations(fact_id(bench, "figs")).count == 0
    assert "'U'" not in bench.everything_stored()
