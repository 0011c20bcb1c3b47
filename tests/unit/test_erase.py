import pytest

from memory.effects import run
from memory.erase import erase_thread
from memory.namespaces import THREADS_ROOT, Owner
from memory.outbox.outbox import read_owners, record, write
from tests.memory_bench import ADA, MemoryBench, going_on


@pytest.mark.parametrize("step", [-10.0, -0.001, 10.0])
def test_erasing_a_thread_needs_no_clock(step: float) -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    (before,) = bench.entries()
    bench.clock.advance(step)
    erase_thread(bench.store, "T", clock=bench.clock)
    assert bench.entries() == []
    run(bench.store, write([before]))  # as a worker does that was at work on it
    bench.clock.advance(step)
    bench.say("I like plums", begin=2)
    assert bench.drain().cancelled == 1
    assert bench.facts() == ["Likes plums"]


def test_two_owners_who_write_a_threads_first_turn_down_at_once_are_both_found() -> None:
    bench = MemoryBench()
    tutor = Owner.of("ada", "tutor")
    ours, theirs = (record(bench.draft(bench.messages("I like figs"), owner=owner)) for owner in (ADA, tutor))
    read, also_read = bench.store.batch(next(ours)), bench.store.batch(next(theirs))  # before either has written
    run(bench.store, going_on(ours, read))
    run(bench.store, going_on(theirs, also_read))
    assert {*run(bench.store, read_owners("T"))} == {ADA, tutor}
    erase_thread(bench.store, "T", clock=bench.clock)
    assert "figs" not in bench.everything_stored()
    assert bench.store.items((THREADS_ROOT,)) == []


def test_a_turn_written_down_while_its_thread_is_erased_is_found_by_the_next_erase() -> None:
    bench = MemoryBench()
    bench.say("I like figs")

    def fault(_: int) -> None:
        if bench.store.items(ADA.control):  # the new epoch is written
            bench.store.fault = lambda _: None
            bench.say("I like plums", begin=2)

    bench.store.fault = fault
    erase_thread(bench.store, "T", clock=bench.clock)
    assert len(bench.entries()) == 1
    erase_thread(bench.store, "T", clock=bench.clock)
    assert bench.entries() == []
    assert bench.store.items((THREADS_ROOT,)) == []
