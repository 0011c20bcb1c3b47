"""What goes with an erased fact: echoes, confirmations, what says the same elsewhere; and what stays."""

import json
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from memory.facts.store import FactStore
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


def test_what_confirmed_it_in_another_thread_goes_whatever_it_says() -> None:
    bench = told("I like figs.", "Noted.")

    def confirms(_: Sequence[BaseMessage]) -> str:
        fact = {"message": 2, "action": "confirms", "known": 1, "content": "", "category": "preference"}
        return json.dumps({"facts": [{**fact, "confidence": 0.9}], "profile": []})

    bench.model.respond = confirms
    told("Hello.", "Do you still like figs?", "Yes, still.", "I see.", "Good day.", "Bye.", thread="U", bench=bench)
    chain = erase_fact(bench.store, ADA, FactStore(bench.store, ADA).list()[0].id, clock=bench.clock)
    assert chain.sources == {"T": {"m1"}, "U": {"m3"}}
    lines = [one.text for entry in bench.journal() for one in entry.messages]
    assert sorted(lines) == ["Bye.", "Good day.", "Hello."]
