"""A failing model or store: tried again, kept for a hand, and never in the way of others."""

import threading
from dataclasses import replace

import pytest
from langchain_core.messages import BaseMessage

from memory.effects import run
from memory.namespaces import Owner
from memory.outbox.outbox import dead_letters, discard_dead, retry_dead
from memory.queue.schedule import ConversationContext
from tests.fakes import learns
from tests.memory_bench import ADA, CONFIG, MemoryBench
from tests.stores import fail_at

BOB = Owner.of("bob")


class Refused(Exception):
    status_code = 401


class TooMany(Exception):
    status_code = 429


@pytest.mark.parametrize("error", [TooMany("x"), TimeoutError(), ConnectionError(), ValueError("no JSON")])
def test_a_failing_model_is_tried_again_with_growing_delays(error: Exception) -> None:
    bench = MemoryBench()
    bench.model.replies.extend([error] * 3)
    bench.say("I like figs")
    delays = []
    for _ in range(3):
        drained = bench.drain()
        assert drained.failed == 1
        assert drained.due is not None
        delays.append(drained.due - bench.clock())
        assert bench.drain().receipts == ()
        bench.clock.advance(delays[-1])
    assert delays == [5, 10, 20]
    bench.drain()
    assert bench.facts() == ["Likes figs"]


def test_what_fails_for_good_is_kept_and_can_be_retried_or_discarded() -> None:
    bench = MemoryBench(config=replace(CONFIG, max_attempts=3))
    bench.model.replies.extend([ValueError("secret")] * 3)
    bench.say("I like figs")
    bench.drain_all()
    (dead,) = run(bench.store, dead_letters(ADA))
    assert (dead.state, dead.attempts, dead.error) == ("dead", 3, "ValueError")
    assert bench.markers() == []
    assert run(bench.store, retry_dead(ADA, bench.clock(), [dead.key])) == 1
    assert bench.markers() == [ADA]
    bench.drain()
    assert bench.facts() == ["Likes figs"]


def test_a_dead_letter_can_be_discarded() -> None:
    bench = MemoryBench()
    bench.model.replies.append(Refused())
    bench.say("I like figs")
    bench.drain()
    assert run(bench.store, discard_dead(ADA)) == 1
    assert bench.entries() == []


def test_a_wrong_api_key_is_not_tried_again() -> None:
    bench = MemoryBench()
    bench.model.replies.append(Refused())
    bench.say("I like figs")
    bench.drain_all()
    assert len(bench.model.prompts) == 1
    assert [entry.state for entry in bench.entries()] == ["dead"]


def test_a_model_that_cannot_be_loaded_fails_the_update_only() -> None:
    bench = MemoryBench()

    def load(name: str) -> None:
        raise ImportError(name)

    bench.load = load  # type: ignore[assignment, method-assign]
    bench.restart()
    bench.say("I like figs")
    assert bench.drain().failed == 1
    assert [entry.error for entry in bench.entries()] == ["ImportError"]


def test_one_conversations_failure_does_not_stop_the_next() -> None:
    bench = MemoryBench()
    bench.model.replies.append(TooMany())
    bench.say("I like figs", thread="A")
    bench.say("I like plums", thread="B")
    drained = bench.drain()
    assert (drained.failed, len(bench.facts())) == (1, 1)


async def test_one_users_failure_does_not_stop_a_sweep() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.say("I like plums", owner=BOB)
    calls = bench.store.calls
    bench.store.fault = fail_at(calls + 1, error=lambda: OSError("gone"))
    await bench.updater.asweep([ADA, BOB])
    assert bench.facts(BOB) == ["Likes plums"]


def test_a_garbled_entry_is_left_alone_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    (value,) = bench.store.values(ADA.namespace("outbox"))
    bench.store.put(ADA.namespace("outbox"), "moved", value)
    bench.store.put(ADA.namespace("outbox"), "garbled", {"kind": "turn", "messages": "I like secrets"})
    bench.drain()
    assert bench.facts() == ["Likes figs"]
    assert bench.markers() == []
    assert len(bench.store.items(ADA.namespace("outbox"))) == 2
    assert "secrets" not in caplog.text


@pytest.mark.parametrize("garbage", ["x", ["x"], {}, {"entries": "x", "portions": 1}, {"entries": [], "portions": "x"}])
def test_a_garbled_journal_of_an_extraction_asks_the_model_again(garbage: object) -> None:
    bench = MemoryBench()
    key = bench.say("I like figs").key
    (value,) = bench.store.values(ADA.namespace("outbox"))
    bench.store.put(ADA.namespace("outbox"), key, {**value, "extracted": garbage})
    bench.drain()
    assert bench.facts() == ["Likes figs"]


def test_a_hung_model_call_is_given_up_after_its_deadline() -> None:
    bench = MemoryBench(config=replace(CONFIG, model_timeout_seconds=0.05))
    hung = threading.Event()

    def respond(messages: list[BaseMessage]) -> str:
        hung.wait(30)
        return learns(messages)

    bench.model.respond = respond
    bench.say("I like figs")
    assert bench.drain().failed == 1
    assert [entry.error for entry in bench.entries()] == ["TimeoutError"]
    hung.set()


def test_a_failing_update_in_a_program_of_ones_own_is_tried_again_by_the_queue() -> None:
    bench = MemoryBench()
    bench.model.replies.append(TooMany())
    assert bench.updater.process(ConversationContext("T", "ada", messages=bench.messages("I like figs"))) == 5
