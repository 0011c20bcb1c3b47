"""When a sweep or a roll-up is due by the clock of this process, and when that clock is set back."""

import asyncio

from graphs.process.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.door import run
from memory.journal.journal import append
from memory.namespaces import DUE
from tests.memory_bench import ADA, MemoryBench
from tests.unit.test_rollup import FIRST, entry

DAY = 86_400.0
WRITTEN = FIRST.isoformat()


def test_a_clock_that_is_set_back_puts_off_neither_the_daily_sweep_nor_the_hourly_roll_up() -> None:
    bench = MemoryBench()
    service = MemoryService(
        Settings(memory=MemoryConfig(update_spacing_seconds=0)), lambda *_: bench.model, clock=bench.clock
    )
    bench.clock.seconds = 1_767_225_600.0 + 30 * DAY  # the journal's first day, and a month
    asyncio.run(service.asweep(bench.store))
    asyncio.run(service.arollup(bench.store))
    bench.say("I like figs")
    bench.store.delete(DUE, ADA.due_key)
    run(bench.store, append(ADA, [entry(WRITTEN)]))
    bench.clock.advance(-20 * DAY)
    asyncio.run(service.asweep(bench.store))
    assert bench.facts() == ["Likes figs"]
    asked = len(bench.model.prompts)
    asyncio.run(service.arollup(bench.store))
    assert len(bench.model.prompts) > asked
