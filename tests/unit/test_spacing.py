"""B9: updates of one process start at least half a second apart, whoever drives them, and none waits after the last."""

import threading

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from memory.namespaces import Owner
from memory.worker.effects import UpdateGate, next_start
from tests.fakes import Clock, learns
from tests.memory_bench import ADA, MemoryBench

BOB = Owner.of("bob")
SECONDS = st.floats(0, 1000)


class Timed(MemoryBench):
    """A bench that notes when, by the gate's clock, the model was asked."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.begin = self.gate_clock()
        self.asked: list[float] = []
        self.model.respond = self._respond

    def _respond(self, messages: list[BaseMessage]) -> str:
        self.asked.append(self.gate_clock() - self.begin)
        return learns(messages)


def test_B9_the_updates_of_one_drain_start_half_a_second_apart() -> None:
    bench = Timed()
    for number in range(3):
        bench.say(f"I like figs{number}", thread=f"T{number}")
    bench.drain()
    assert bench.asked == [0, 0.5, 1.0]
    assert bench.gate_clock() - bench.begin == 1.0


async def test_B9_a_sweep_and_a_drain_of_one_process_start_half_a_second_apart() -> None:
    bench = Timed()
    for owner in (ADA, BOB):
        bench.say("I like figs", owner=owner)
    bench.say("I like plums", owner=BOB, thread="U", begin=2)
    bench.drain()
    await bench.updater.asweep([ADA, BOB])
    assert bench.asked == [0, 0.5, 1.0]
    assert bench.gate_clock() - bench.begin == 1.0


async def test_B9_owners_for_whom_nothing_is_pending_wait_for_nobody() -> None:
    bench = Timed()
    bench.say("I like figs", owner=BOB)
    await bench.updater.asweep([Owner.of(f"user{number}") for number in range(9)] + [BOB])
    assert bench.asked == [0]


@given(st.lists(st.tuples(SECONDS, SECONDS), max_size=20))
def test_B9_no_update_starts_too_early_and_none_waits_longer_than_it_has_to(steps: list[tuple[float, float]]) -> None:
    last = float("-inf")
    now = 0.0
    for passed, spacing in steps:
        now += passed
        start = next_start(now, last, spacing)
        assert start in (now, last + spacing)
        assert start >= max(now, last + spacing)
        last = start


def test_B9_threads_that_come_at_once_start_one_after_another() -> None:
    waits: list[float] = []
    gate = UpdateGate(clock=Clock(), sleep=waits.append)
    threads = [threading.Thread(target=gate.wait_turn, args=(0.5,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(waits) == [0.5 * number for number in range(1, 8)]
