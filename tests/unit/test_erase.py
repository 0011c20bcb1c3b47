import pytest

from memory.effects import run
from memory.erase import erase_thread
from memory.updates.outbox import write
from tests.memory_bench import MemoryBench


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
