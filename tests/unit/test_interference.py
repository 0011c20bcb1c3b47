"""What somebody else does to pending updates while one is under way: nothing is lost, doubled or comes back."""

from tests.memory_bench import MemoryBench

DAY = 86_400.0


def test_a_retry_that_a_clock_ahead_put_off_for_a_year_is_not_waited_for() -> None:
    bench = MemoryBench()
    bench.clock.advance(365 * DAY)
    bench.model.replies.append(TimeoutError())
    bench.say("I like figs")
    bench.drain()
    bench.clock.advance(-365 * DAY)
    bench.drain()
    assert bench.facts() == ["Likes figs"]
