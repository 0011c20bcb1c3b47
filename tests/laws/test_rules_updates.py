"""Updates by several processes, and updates that fail: read once, kept, listed, and none left unlearned."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.memory import InMemoryStore
from prometheus_client import REGISTRY

from palimpsest import Context, FactStore, MemoryUpdater, open_store
from tests.fakes import Clock
from tests.laws.doors import CONFIG, House, remember
from tests.laws.interruptions import Tap, tapped
from tests.stores import Killed

_FORKS = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def process(store: Any = None, clock: Clock | None = None) -> House:
    return House(store or InMemoryStore(), InMemorySaver(), {}, clock or Clock())


async def pending(house: House) -> list[Any]:
    return list((await house.ask("GET", "/updates"))[1]["updates"])


async def on_file(folder: Path, act: Callable[[House], Any]) -> Any:
    """Have a process of its own do something in a file."""
    async with open_store(folder / "store.sqlite") as store:
        return await act(process(store))


def elsewhere(folder: Path, respond: Callable[[list[BaseMessage]], str]) -> int:
    """Learn in another process, whose model answers so; return its id."""
    child = os.fork()
    if not child:
        try:

            async def learn(house: House) -> None:
                house.memory.respond = respond
                await house.learn()

            asyncio.run(on_file(folder, learn))
        finally:
            os._exit(0)
    return child


def failed_updates() -> float:
    return REGISTRY.get_sample_value("palimpsest_updates_total", {"outcome": "failed"}) or 0


async def say(house: House) -> None:
    await house.say("T", "I like figs.")


async def learn(house: House) -> tuple[int, list[str], int]:
    """Return how often the model was asked, what is known, and how much is pending."""
    await house.learn()
    return len(house.memory.prompts), await house.known(), len(await pending(house))


@_FORKS
def test_a_living_process_keeps_its_claim_and_the_model_is_asked_once(tmp_path: Path) -> None:
    asyncio.run(on_file(tmp_path, say))
    (asked, asks), (answers, answer) = os.pipe(), os.pipe()

    def respond(messages: list[BaseMessage]) -> str:
        os.write(asks, b"asked")
        os.read(answers, 1)
        return remember(messages)

    child = elsewhere(tmp_path, respond)
    os.close(asks)
    assert os.read(asked, 5) == b"asked"
    assert asyncio.run(on_file(tmp_path, learn)) == (0, [], 1)
    os.write(answer, b"!")
    assert os.waitpid(child, 0)[1] == 0
    assert asyncio.run(on_file(tmp_path, learn)) == (0, ["Likes figs"], 0)
    for end in (asked, answers, answer):
        os.close(end)


@_FORKS
def test_the_claim_of_a_killed_process_is_void_at_once(tmp_path: Path) -> None:
    asyncio.run(on_file(tmp_path, say))

    def die(_: list[BaseMessage]) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    assert os.waitpid(elsewhere(tmp_path, die), 0)[1] == signal.SIGKILL
    assert asyncio.run(on_file(tmp_path, learn)) == (1, ["Likes figs"], 0)


async def test_a_worker_that_wakes_after_another_took_over_writes_nothing_and_counts_no_failure() -> None:
    store, clock = InMemoryStore(), Clock()
    late, other = process(store, clock), process(store, clock)

    def respond(messages: list[BaseMessage]) -> str:
        if not other.memory.prompts:  # it was stopped for longer than its lease
            clock.advance(CONFIG.lease_seconds)
            asyncio.run(other.learn())
            raise OSError("no answer")
        return remember(messages)

    late.memory.respond = respond
    await say(late)
    await late.learn()
    assert [len(each.memory.prompts) for each in (late, other)] == [1, 1]
    assert await late.known() == ["Likes figs"]
    assert await pending(late) == []
    assert len((await late.ask("GET", "/receipts"))[1]["receipts"]) == 1


@pytest.mark.parametrize("fails", [False, True])
async def test_what_another_took_over_and_did_not_end_is_left_to_it(fails: bool) -> None:
    store, clock = InMemoryStore(), Clock()
    late, other = process(store, clock), process(store, clock)
    begun, may_answer = threading.Event(), threading.Event()
    taking = threading.Thread(target=lambda: asyncio.run(other.learn()))

    def slow(messages: list[BaseMessage]) -> str:
        begun.set()
        assert may_answer.wait(60)
        return remember(messages)

    def respond(messages: list[BaseMessage]) -> str:
        clock.advance(CONFIG.lease_seconds)
        taking.start()
        assert begun.wait(60)
        if fails:
            raise OSError("no answer")
        return remember(messages)

    late.memory.respond, other.memory.respond = respond, slow
    await say(late)
    await late.learn()
    assert await late.known() == []
    (one,) = await pending(late)
    assert (one["state"], one["attempts"]) == ("running", 0)
    may_answer.set()
    await asyncio.to_thread(taking.join)
    assert await late.known() == ["Likes figs"]


async def test_what_changes_whenever_a_model_has_answered_is_read_ever_more_rarely() -> None:
    house, failed = process(), failed_updates()

    def respond(messages: list[BaseMessage]) -> str:
        fact = house.facts.create("Likes wine", "preference", 0.9)
        asyncio.run(house.ask("POST", "/erase/fact", {"fact_id": fact.id}))
        return remember(messages)

    house.memory.respond = respond
    await say(house)
    for _ in range(20):
        await house.learn()
    assert len(house.memory.prompts) == 1
    assert [one["error"] for one in await pending(house)] == [""]  # nothing failed
    assert (await house.service.adrain(house.store, house.facts.owner)).waiting == frozenset()
    assert failed_updates() == failed
    for times in range(2, CONFIG.max_attempts + 3):  # it is never given up
        house.clock.advance(CONFIG.retry_max_seconds)
        await house.learn()
        assert len(house.memory.prompts) == times
    house.memory.respond = remember
    house.clock.advance(CONFIG.retry_max_seconds)
    await house.learn()
    assert (await house.known(), await pending(house)) == (["Likes figs"], [])


async def test_B2_the_quiet_time_of_a_conversation_is_that_of_all_processes() -> None:
    store, clock = InMemoryStore(), Clock()
    one = process(store, clock)
    other = House(store, one.saver, one.rows, clock)
    updater = MemoryUpdater(store, lambda _: one.memory, clock=clock)
    await say(one)
    clock.advance(20)
    await other.say("T", "I like tea.")
    clock.advance(10)
    drained = await asyncio.to_thread(updater.drain, one.facts.owner, "T", quiet=30)
    assert drained.due is not None
    assert (round(drained.due - clock()), one.memory.prompts) == (20, [])
    clock.advance(20)
    await asyncio.to_thread(updater.drain, one.facts.owner, "T", quiet=30)
    assert await one.known() == ["Likes figs", "Likes tea"]
    assert len(one.memory.prompts) == 1


class Hiccup(InMemoryStore):
    """Fails once, when what an update did is to be written."""

    is_over = False

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        asked = list(ops)
        if not self.is_over and any(isinstance(op, PutOp) and op.namespace[-1] == "receipts" for op in asked):
            self.is_over = True
            raise OSError("the disk is full")
        return super().batch(asked)


async def test_an_update_that_cannot_be_written_is_told_as_failed_and_the_next_conversation_is_read() -> None:
    house = process(Hiccup())
    await say(house)
    house.clock.advance(1)
    await house.say("other", "I like tea.")
    drained = MemoryUpdater(house.store, lambda _: house.memory, clock=house.clock).drain(house.facts.owner)
    assert ([one.thread_id for one in drained.receipts], drained.failed) == (["other"], 1)
    assert await house.known() == ["Likes tea"]
    house.clock.advance(CONFIG.retry_max_seconds)
    assert await learn(house) == (3, ["Likes figs", "Likes tea"], 0)


async def test_the_newest_hundred_receipts_are_kept() -> None:
    house = process()
    for at in range(103):
        house.clock.advance(1)
        await house.cut(f"T{at}", "Good day.")
    kept = (await house.ask("GET", "/receipts?since=2025-10-09T12:00:00%2B12:00"))[1]["receipts"]
    assert len(kept) == 100
    assert {each["thread_id"] for each in kept}.isdisjoint({"T0", "T1", "T2"})


async def test_a_sweep_reads_what_was_said_to_each_agent_of_a_user() -> None:
    house = process()
    agents = ("one", "two", "three")
    for agent in agents:
        who = {"configurable": {"thread_id": agent, "langgraph_auth_user_id": "ada"}}
        said = {"messages": [HumanMessage("I like figs.", id="u1")]}
        await house.graph.ainvoke(said, who, context=Context(agent_name=agent))
    await house.sweep()
    for agent in agents:
        assert [fact.content for fact in await FactStore(house.store, "ada", agent).alist()] == ["Likes figs"]


async def ends_of_a_killed_turn() -> list[tuple[bool, list[str], int]]:
    """Kill a process at each place of a turn; return whether it ended, and what one that runs on makes of it."""
    ends: list[tuple[bool, list[str], int]] = []
    for at in range(1, 100):
        store, clock = InMemoryStore(), Clock()
        other = process(store, clock)
        await other.sweep()  # it is not fresh: what it sweeps from here on is what is due
        tap, is_done = Tap("kill", at, is_atomic=True, beside=_nobody), False
        with suppress(Killed):
            await process(tapped(store, tap), clock).say("T", "I like figs.")
            is_done = True
        clock.advance(CONFIG.max_wait_seconds)
        await other.sweep()
        ends.append((is_done, await other.known(), len(await pending(other))))
        if not tap.was_reached:
            break
    return ends


async def test_what_a_killed_process_acknowledged_is_learned_by_one_that_runs_on() -> None:
    *killed, whole = await ends_of_a_killed_turn()
    assert killed
    assert whole == (True, ["Likes figs"], 0)
    assert all(facts == ["Likes figs"] for is_done, facts, _ in killed if is_done)


async def test_nothing_is_pending_that_is_never_due() -> None:
    assert {left for _, _, left in await ends_of_a_killed_turn()} == {0}


async def _nobody(_: Tap) -> None:
    pass


async def test_F3_what_a_model_is_not_sure_of_is_not_stored_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    house = process()
    house.memory.respond = lambda sent: remember(sent).replace("0.55", "0.45")
    with caplog.at_level(logging.INFO):
        await house.say("T", "I might like figs. I like dates.")
        await house.learn()
    assert await house.known() == ["Likes dates"]
    (receipt,) = (await house.ask("GET", "/receipts"))[1]["receipts"]
    assert [each["reason"] for each in receipt["refused"]] == ["low_confidence"]
    assert "low_confidence" in caplog.text
    assert "figs" not in caplog.text
