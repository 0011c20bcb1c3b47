import pytest

from memory.forget.erase import erase_thread
from tests.memory_bench import MemoryBench


@pytest.mark.parametrize("step", [-10.0, -0.001, 10.0])
def test_erasing_a_thread_needs_no_clock(step: float) -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.clock.advance(step)
    erase_thread(bench.store, "T", clock=bench.clock)
    assert bench.entries() == []
    bench.clock.advance(step)
    bench.say("I like plums", begin=2)
    bench.drain()
    assert bench.facts() == ["Likes plums"]
