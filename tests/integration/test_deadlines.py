"""No turn waits for a store that hangs or fails, and what was not written down in time is written down later, once."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any
from unittest.mock import AsyncMock

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.memory import InMemoryStore

from graphs.turn.context import Context
from graphs.turn.memory import TurnMemory
from graphs.turn.run import Run, Thread
from graphs.turn.state import State
from memory.context.tokens import TokenCounter
from memory.door import arun
from memory.namespaces import PROBE, Owner
from memory.updates.outbox import read_entries
from tests.laws.talk import NARROW, Talk
from tests.patience import let_pauses_pass, let_turns_wait

SHORT = 0.5
"""For turns whose store does nothing all the while: they have nothing to be done with in time."""
ADA = Owner.of("ada")


class TroubledStore(InMemoryStore):
    """Hangs or fails while it is told to: everything, or only writes; what hangs goes on when it is let go.

    Attributes:
        calls: How often somebody else than a probe asked it in trouble.
        probes: How many probes it has not answered yet.
        most_probes: How many there were at the same time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.trouble = ""
        self.only_writes = False
        self.calls = self.probes = self.most_probes = 0
        self.released = asyncio.Event()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        listed = list(ops)
        concerned = not self.only_writes or any(isinstance(op, PutOp) for op in listed)
        if self.trouble and concerned:
            probes = sum(getattr(op, "namespace", None) == PROBE for op in listed)
            self.calls += not probes
            self.probes += probes
            self.most_probes = max(self.most_probes, self.probes)
            try:
                if self.trouble == "fails":
                    raise OSError("the disk is gone")
                await self.released.wait()
            finally:
                self.probes -= probes
        return await super().abatch(listed)


class House(Talk):
    """The chat graph over a store in trouble."""

    def __init__(self) -> None:
        super().__init__(store=TroubledStore(), memory={"retry_base_seconds": 0})

    async def ends(self, text: str) -> dict[str, Any]:
        """Say something, and return the state's `memory`."""
        return dict((await self.say(text))["memory"])

    def trouble(self, trouble: str) -> None:
        """Let the store fail, or hang, and turns not wait long for one that does."""
        self.store.trouble = trouble
        now = self.service.stores.clock()
        self.service.stores.clock = lambda: now
        if trouble == "hangs":
            let_turns_wait(self.service, read=SHORT, write=SHORT)

    async def heal(self) -> None:
        """Let the store work, and turns ask it again. What hung goes on."""
        let_turns_wait(self.service)
        self.store.trouble = ""
        self.store.released.set()
        let_pauses_pass(self.service)

    async def pending(self) -> list[str]:
        entries = await arun(self.store, read_entries(ADA))
        return [message.text for entry in entries for message in entry.messages if message.role == "user"]


async def away(house: House, access: Any = "read") -> None:
    """Return once turns do not ask the store any more."""
    async with asyncio.timeout(240):
        while not house.service.stores.is_away(house.store, access):  # noqa: ASYNC110 (what ends it is in the library)
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("trouble", ["hangs", "fails"])
async def test_once_a_store_is_away_turns_do_not_ask_it_and_say_so(trouble: str, caplog: Any) -> None:
    house = House()
    house.trouble(trouble)
    memory = await house.ends("I like figs.")
    assert memory["receipt"]["not_written"] in ("too_late", "failed", "store_away")
    await away(house)
    asked = house.store.calls
    for _ in range(20):
        receipt = (await house.ends("Hello."))["receipt"]
        assert (receipt["without_memory"], receipt["not_written"]) == ("store_away", "store_away")
    assert house.store.calls == asked
    assert house.store.most_probes <= 2  # one at a time for each way of access
    warnings = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert sum("the store is away (read" in one for one in warnings) == 1
    await house.heal()
    assert "without_memory" not in (await house.ends("Hello."))["receipt"]
    assert "the store is back (read)" in caplog.text


async def test_a_summary_takes_nothing_out_of_a_compact_thread_that_was_not_written_down() -> None:
    house = House()
    house.context = Context(**{**vars(NARROW), "transcript": "compact"})
    house.trouble("fails")
    await house.ends("I like thing0.")
    await away(house)
    for number in range(1, 12):
        memory = await house.ends(f"I like thing{number}. " + "word " * 60)
    kept = (await house.values())["messages"]
    assert sum(isinstance(one, HumanMessage) for one in kept) == 12
    assert len(memory["unwritten"]) == 12
    await house.heal()
    memory = await house.ends("And now?")
    assert "unwritten" not in memory
    kept = (await house.values())["messages"]
    assert sum(isinstance(one, HumanMessage) for one in kept) < 12
    assert len(await house.learn()) == 12


async def test_after_a_pause_one_turn_asks_a_store_that_hangs_and_those_beside_it_do_not() -> None:
    house = House()
    house.trouble("hangs")
    await house.ends("I like figs.")
    asked = house.store.calls
    let_pauses_pass(house.service)
    said = [house.say("Hello.", f"thread {number}") for number in range(5)]
    receipts = [state["memory"]["receipt"] for state in await asyncio.gather(*said)]
    assert house.store.calls == asked + 1
    assert {receipt["not_written"] for receipt in receipts} == {"store_away"}
    await house.heal()
    assert "without_memory" not in (await house.ends("Hello."))["receipt"]


@pytest.mark.parametrize("trouble", ["fails", "hangs"])
async def test_each_turn_that_asks_a_store_in_vain_doubles_the_pause(trouble: str) -> None:
    house, times = House(), [0.0]
    house.trouble(trouble)
    house.service.stores.clock = lambda: times[0]
    await house.ends("Hello.")
    for pause in (1.0, 2.0, 4.0):
        asked = house.store.calls
        times[0] += pause - 0.01
        await house.ends("Hello.")
        assert house.store.calls == asked
        times[0] += 0.02
        await house.ends("Hello.")
        assert house.store.calls > asked


async def forever(**_: Any) -> None:
    await asyncio.Event().wait()


NONE = AsyncMock(return_value=[])


@pytest.mark.parametrize(("threads", "caller"), [(forever, "T"), (NONE, "T"), (NONE, "")])
async def test_a_mode_that_the_server_does_not_tell_in_time_or_of_a_deleted_thread_is_the_strictest(
    threads: Any, caller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = AsyncMock(**{"assistants.get.return_value": {"context": {"": ""}}, "threads.search": threads})
    monkeypatch.setattr("graphs.turn.run.get_client", lambda: client)
    house = House()
    let_turns_wait(house.service, read=SHORT, write=SHORT)
    memory = TurnMemory(house.service)
    config: Any = {"configurable": {"assistant_id": "chat", "thread_id": "T"}, "metadata": {"thread_id": caller}}
    run = Run(config, Context(), ADA, house.store, on_server=True)
    said: Any = [HumanMessage("I like figs.", id="q")]
    thread = Thread(State(messages=said, summarized_messages=[], context={}, memory={}))
    turn = await memory.begin(run, thread, said, (0, 0), lambda _: False, TokenCounter())
    assert turn.opening.mode == ("incognito" if caller else "normal")
    _, not_written, _ = await memory.write_turn(run, thread)
    assert not_written == ("mode_unknown" if threads is forever else None)
    assert len(await house.pending()) == (not caller)


def test_a_store_whose_event_loop_ended_is_asked_again_in_the_next() -> None:
    house = House()
    house.trouble("fails")

    async def first() -> None:
        await house.ends("I like figs.")
        await away(house)

    async def then() -> dict[str, Any]:
        assert house.service.stores.is_away(house.store, "read")
        await house.heal()
        return await house.ends("I like kiwis.")

    asyncio.run(first())
    assert "unwritten" not in asyncio.run(then())
