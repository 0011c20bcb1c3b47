"""How often memory goes to the store, one batch after another: each is a round trip on a server."""

import json

from langchain_core.messages import BaseMessage

from tests.memory_bench import MemoryBench

UPDATE = 14


def test_an_update_of_one_entry_takes_few_batches() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    before = bench.store.calls
    assert bench.drain().receipts
    assert bench.store.calls - before <= UPDATE


def test_a_correction_with_a_new_profile_takes_few_more() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.drain()

    def corrects(messages: list[BaseMessage]) -> str:
        fact = {"message": 1, "action": "corrects", "known": 1, "content": "Likes plums", "category": "preference"}
        profile = [{"section": "personal", "text": "Likes plums."}]
        return json.dumps({"facts": [{**fact, "confidence": 0.9}], "profile": profile})

    bench.model.respond = corrects
    bench.record(bench.messages("I like plums, not figs", begin=2))
    before = bench.store.calls
    assert bench.drain().receipts[0]["superseded"]
    assert bench.store.calls - before <= UPDATE + 2
