"""What somebody else does to pending updates while one is under way: nothing is lost, doubled or comes back."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from memory.control import INITIAL_EPOCH
from memory.effects import run
from memory.erase import erase_thread
from memory.facts.profile import read_profile, texts_of
from memory.facts.store import FactStore
from memory.journal.entry import JournalEntry
from memory.journal.journal import append
from memory.message import StoredMessage, iso_time
from memory.outbox import outbox
from tests.fakes import learns
from tests.forgetting import erase_fact
from tests.memory_bench import ADA, CONFIG, MemoryBench

DAY = 86_400.0


def half_read() -> MemoryBench:
    """Two turns that are read together in two portions, of which the second failed."""
    bench = MemoryBench(config=replace(CONFIG, portion_messages=4))
    long_text = "I like figs. " + "And so on. " * 400
    bench.say(long_text)
    bench.clock.advance(1)
    bench.say("I like plums", begin=2)

    def respond(messages: list[BaseMessage]) -> str:
        if len(bench.model.prompts) == 2:
            raise TimeoutError
        return learns(messages)

    bench.model.respond = respond
    assert bench.drain().failed == 2
    assert len(bench.entries()) == 2
    return bench


def test_an_entry_that_is_gone_from_a_half_read_backlog_makes_nobody_skip_the_rest() -> None:
    bench = half_read()
    (gone,) = (entry for entry in bench.entries() if entry.extracted is None)
    run(bench.store, outbox.remove([gone]))
    bench.drain_all()
    assert bench.facts()[-1] == "Likes plums"


def told_of(thread: str, bench: MemoryBench) -> JournalEntry:
    time = iso_time(bench.clock())
    message = StoredMessage(f"of {thread}", "user", f"words of {thread}", time)
    return JournalEntry(time[:10], thread, (message,), INITIAL_EPOCH)


def erase_the_thread(store: BaseStore, bench: MemoryBench) -> None:
    erase_thread(store, "T", clock=bench.clock)


def erase_the_fact(store: BaseStore, bench: MemoryBench) -> None:
    (fact,) = FactStore.of_owner(store, ADA).list()
    erase_fact(store, ADA, fact.id, clock=bench.clock)


def at_call(bench: MemoryBench, n: int, erase: Callable[[BaseStore, MemoryBench], None]) -> list[bool]:
    """Erase just before the n-th call of the store from now on; the list tells whether it came to that."""
    first, has_erased = bench.store.calls + n, list[bool]()

    def fault(call: int) -> None:
        if call >= first and not has_erased:
            has_erased.append(True)
            erase(bench.store.inner, bench)

    bench.store.fault = fault
    return has_erased


@pytest.mark.parametrize("erase", [erase_the_thread, erase_the_fact])
async def test_what_is_erased_during_a_roll_up_does_not_come_back_in_the_history(
    erase: Callable[[BaseStore, MemoryBench], None],
) -> None:
    for n in range(1, 30):
        bench = MemoryBench()
        bench.record(bench.messages("I like figs"), kind="cut")
        bench.drain()
        run(bench.store, append(ADA, [told_of("U", bench)]))
        bench.clock.advance(DAY)
        bench.model.respond = lambda messages: "The user likes figs." if "figs" in messages[-1].text else "They talked."
        has_erased = at_call(bench, n, erase)
        await bench.updater.aroll_up([ADA])
        bench.store.fault = lambda _: None
        if not has_erased:
            break
        assert "figs" not in str(texts_of(run(bench.store, read_profile(ADA, bench.epoch())))), n
        bench.clock.advance(DAY)
        await bench.updater.aroll_up([ADA])
        history = texts_of(run(bench.store, read_profile(ADA, bench.epoch())))
        # What is erased after all is done takes the section along; the next day that is over writes it anew.
        assert history in ({"history.recent": "They talked."}, {}), n


def test_a_retry_that_a_clock_ahead_put_off_for_a_year_is_not_waited_for() -> None:
    bench = MemoryBench()
    bench.clock.advance(365 * DAY)
    bench.model.replies.append(TimeoutError())
    bench.say("I like figs")
    bench.drain()
    bench.clock.advance(-365 * DAY)
    bench.drain()
    assert bench.facts() == ["Likes figs"]
