"""Crashes, several workers and erases in the middle of an update: nothing lost, nothing doubled, nothing back."""

from contextlib import suppress

import pytest
from langchain_core.messages import BaseMessage

from memory.outbox import outbox
from tests.fakes import Responder, learns
from tests.forgetting import erase_user
from tests.memory_bench import ADA, CONFIG, MemoryBench
from tests.stores import FaultyStore, Killed, fail_at

SAID = ["T: I like figs", "T: I like plums", "T: reply 1", "T: reply 2"]


def test_the_extraction_is_journaled_before_it_is_applied() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    journaled: list[bool] = []

    def fault(n: int) -> None:
        if not bench.store.items(ADA.namespace("facts")):
            journaled.append(any(value["extracted"] for value in bench.store.values(ADA.namespace("outbox"))))

    bench.store.fault = fault
    bench.drain()
    assert journaled[-1]


@pytest.mark.parametrize("applies_first", [False, True])
def test_killed_at_any_write_the_next_worker_ends_in_the_same_place(applies_first: bool) -> None:
    total = _calls_of_a_whole_update()
    assert total > 15
    for n in range(1, total + 1):
        bench = MemoryBench()
        bench.store.applies_first = applies_first
        bench.store.fault = fail_at(n, error=Killed)
        _until_killed(bench)
        bench.store.fault = lambda _: None
        bench.restart()
        if bench.entries() or n > 3:
            _converse(bench)
            bench.drain()
        assert bench.entries() == [], n
        assert bench.facts() in (["Likes figs", "Likes plums"], []), n
        assert len(bench.model.prompts) <= 2, n
        assert bench.markers() == [], n
        if bench.facts():
            assert bench.journaled() == SAID, n


def _converse(bench: MemoryBench) -> None:
    bench.say("I like figs")
    bench.record(bench.messages("I like plums", begin=2), kind="cut")


def _until_killed(bench: MemoryBench) -> None:
    with suppress(Killed):
        _converse(bench)
        bench.drain()


def _calls_of_a_whole_update() -> int:
    bench = MemoryBench()
    _until_killed(bench)
    assert bench.facts() == ["Likes figs", "Likes plums"]
    return bench.store.calls


def test_after_a_crash_the_model_is_not_asked_again_for_what_was_journaled() -> None:
    bench = MemoryBench()
    bench.say("I like figs")

    def fault(_: int) -> BaseException | None:
        journaled = any(value["extracted"] for value in bench.store.values(ADA.namespace("outbox")))
        return Killed() if journaled else None

    bench.store.fault = fault
    with pytest.raises(Killed):
        bench.drain()
    bench.store.fault = lambda _: None
    bench.restart()
    bench.say("I like plums", begin=2)
    bench.drain()
    assert bench.facts() == ["Likes figs", "Likes plums"]
    assert len(bench.model.prompts) == 2
    assert "figs" not in bench.model.prompts[1][-1].text.split("Messages:")[1]


def test_any_model_call_may_fail_once_and_nothing_is_lost_or_doubled() -> None:
    for n in range(4):
        bench = MemoryBench()
        bench.model.replies.extend(["not JSON"] if n == 0 else [])
        for number in range(4):
            if number == n:
                bench.model.replies.append(ConnectionError("later"))
            bench.say(f"I like figs{number}", begin=number)
            bench.drain()
        bench.drain_all()
        assert bench.facts() == [f"Likes figs{number}" for number in range(4)]


def test_two_workers_ask_the_model_once() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    other = bench.another_process(99)

    def respond(messages: list[BaseMessage]) -> str:
        assert other.drain(ADA).receipts == ()
        return learns(messages)

    bench.model.respond = respond
    bench.drain()
    assert (len(bench.model.prompts), bench.facts()) == (1, ["Likes figs"])


def test_a_dead_workers_lease_is_void_at_once_and_a_living_ones_runs_out() -> None:
    for kill, waits in [(True, 0.0), (False, CONFIG.lease_seconds)]:
        bench = MemoryBench()
        bench.say("I like figs")
        bench.model.respond = _raises(Killed)
        with pytest.raises(Killed):
            bench.drain()
        bench.model.respond = learns
        if kill:
            bench.restart()
        other = bench.updater if kill else bench.another_process(99)
        if waits:
            assert other.drain(ADA).receipts == ()
        bench.clock.advance(waits)
        other.drain(ADA)
        assert bench.facts() == ["Likes figs"]


def _raises(error: type[BaseException]) -> Responder:
    def respond(messages: list[BaseMessage]) -> str:
        raise error

    return respond


def test_a_worker_that_lost_its_lease_does_not_apply_what_it_found() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    other = bench.another_process(99)

    def respond(messages: list[BaseMessage]) -> str:
        bench.model.respond = learns
        bench.clock.advance(CONFIG.lease_seconds)
        other.drain(ADA)
        return learns(messages).replace("Likes figs", "Is fond of figs")

    bench.model.respond = respond
    bench.drain()
    assert bench.facts() == ["Likes figs"]
    assert bench.entries() == []


def test_erasing_wins_over_an_extraction_in_flight_at_every_point() -> None:
    total = _calls_of_a_whole_update()
    for n in range(1, total + 1):
        bench = MemoryBench()
        state = {"erased": False}

        def fault(call: int, bench: MemoryBench = bench, n: int = n, state: dict[str, bool] = state) -> None:
            if call >= n and not state["erased"]:
                state["erased"] = True
                erase_user(FaultyStore(bench.store.inner), "ada")

        _converse(bench)
        start = bench.store.calls
        bench.store.fault = lambda call, fault=fault, start=start: fault(call - start)  # type: ignore[misc]
        bench.drain()
        bench.drain()
        if state["erased"]:
            assert bench.facts() == [], n
            stored = bench.everything_stored()
            assert "figs" not in stored, n
            assert "plums" not in stored, n


def test_after_an_erase_what_is_cut_from_older_messages_does_not_come_back() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.drain()
    erase_user(bench.store, "ada")
    bench.say("I like plums", begin=2)
    bench.record(bench.messages("I like figs", "I like plums"), kind="cut")
    bench.drain()
    assert bench.facts() == ["Likes plums"]
    assert "figs" not in bench.everything_stored()


def test_a_marker_is_right_whatever_another_worker_does_between_the_look_and_the_writing() -> None:
    for entries_before, entries_after in [(1, 0), (0, 1)]:
        bench = MemoryBench()
        if entries_before:
            bench.say("I like figs")
        settling = outbox.settle(ADA)
        operations = settling.send(bench.store.batch(next(settling)))  # it has looked, and is about to write
        if entries_after:
            bench.say("I like figs")
        else:
            bench.another_process(99).drain(ADA)
        with suppress(StopIteration):
            while True:
                operations = settling.send(bench.store.batch(operations))
        assert len(bench.markers()) == len(bench.entries()) == entries_after


def test_what_an_erase_cancels_in_the_middle_of_a_drain_reaches_no_model() -> None:
    bench = MemoryBench()
    bench.say("I like figs", thread="A")
    bench.say("I like plums", thread="B")

    def respond(messages: list[BaseMessage]) -> str:
        erase_user(bench.store, "ada")
        return learns(messages)

    bench.model.respond = respond
    bench.drain()
    assert len(bench.model.prompts) == 1
    assert bench.entries() == []


def test_a_long_cut_is_read_in_portions_and_a_crash_between_them_asks_for_none_twice() -> None:
    bench = MemoryBench()
    bench.record(bench.messages(*(f"I like figs{number}" for number in range(25))), kind="cut")

    def respond(messages: list[BaseMessage]) -> str:
        if len(bench.model.prompts) == 2:
            raise Killed
        return learns(messages)

    bench.model.respond = respond
    with pytest.raises(Killed):
        bench.drain()
    bench.restart()
    bench.drain()
    assert len(bench.facts()) == 25
    assert len(bench.model.prompts) == 4
