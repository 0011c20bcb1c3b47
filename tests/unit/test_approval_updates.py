"""Approval through whole updates: what the model is asked, what a receipt says, and kills at any write."""

import json
from dataclasses import replace

from langchain_core.messages import BaseMessage

from graphs.process.events import MemoryUpdated
from memory.control import change_control
from memory.effects import run
from memory.facts.store import FactStore
from memory.updates.receipts import read_receipts
from tests.fakes import RecordingModel
from tests.memory_bench import ADA, CONFIG, MemoryBench

ASKS = replace(CONFIG, approval="sensitive")


def answers(messages: list[BaseMessage]) -> str:
    """Answer as a model that knows an illness where no word tells it."""
    fact = {"message": 1, "action": "new", "known": 0, "category": "knowledge", "confidence": 0.9}
    facts = [{**fact, "content": "User goes to the ward each Monday.", "topic": "health"}]
    return json.dumps({"facts": facts, "profile": []})


def bench(**options: object) -> MemoryBench:
    made = MemoryBench(**options)  # type: ignore[arg-type]  # any of its fields
    made.model = RecordingModel(respond=answers)
    return made


def waits(on: MemoryBench) -> list[str]:
    return [fact.content for fact in FactStore(on.store, ADA, config=ASKS, clock=on.clock).list("waiting")]


def test_what_the_model_calls_sensitive_waits_where_the_user_wants_to_be_asked() -> None:
    one = bench()
    one.say("I go to the ward each Monday.")
    one.drain()
    assert (one.facts(), waits(one)) == (["User goes to the ward each Monday."], [])
    other = bench()
    run(other.store, change_control(ADA, approval="sensitive"))
    other.say("I go to the ward each Monday.")
    other.drain()
    assert (other.facts(), waits(other)) == ([], ["User goes to the ward each Monday."])


def test_the_receipt_and_the_event_name_what_waits() -> None:
    made = bench(config=ASKS)
    made.say("I go to the ward each Monday.")
    (receipt,) = made.drain().receipts
    (fact,) = FactStore(made.store, ADA, clock=made.clock).list("waiting")
    assert (receipt.created, receipt.waiting) == ((), (fact.id,))
    assert run(made.store, read_receipts(ADA, made.epoch())) == [receipt]
    assert MemoryUpdated.of(receipt).waiting == (fact.id,)
