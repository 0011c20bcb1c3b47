"""Updates by several processes, and updates that fail: read once, kept, listed, and none left unlearned."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from palimpsest import open_store
from tests.fakes import Clock
from tests.laws.doors import CONFIG, House, remember
from tests.laws.interruptions import Tap, tapped
from tests.stores import Killed

_FORKS = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def process(store: Any = None, clock: Clock | None = None) -> House:
    return House(store or InMemoryStore(), InMemorySaver(), {}, clock or Clock())


async def pending(house: House) -> list[Any]:
    return list((await house.ask("GET", "/updates"))[1]["updates"])


async def known(house: House) -> list[str]:
    return sorted(fact.content for fact in await house.facts.alist())


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


async def say(house: House) -> None:
    await house.say("T", "I like figs.")


async def learn(house: House) -> tuple[int, list[str], int]:
    """Return how often the model was asked, what is known, and how much is pending."""
    await house.learn()
    return len(house.memory.prompts), await known(house), len(await pending(house))


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
        ends.append((is_done, await known(other), len(await pending(other))))
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
    assert await known(house) == ["Likes dates"]
    (receipt,) = (await house.ask("GET", "/receipts"))[1]["receipts"]
    assert [each["reason"] for each in receipt["refused"]] == ["low_confidence"]
    assert "low_confidence" in caplog.text
    assert "figs" not in caplog.text
