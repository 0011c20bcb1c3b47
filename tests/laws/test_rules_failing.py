"""Stores, models and checkpoints that fail or hang inside a turn, and deletions that break off."""

import asyncio
import re
import threading
from collections.abc import Iterable
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.memory import InMemoryStore

from palimpsest import ConversationContext, MemoryConfig, MemoryUpdater, open_checkpointer, open_store
from tests.fakes import Clock
from tests.laws.interruptions import How, Tap, tapped
from tests.laws.starting import deletions_of, finish_deletions
from tests.laws.talk import LONG, NARROW, Talk, remembers
from tests.stores import Killed

THREAD = str(UUID(int=1))
SHIPPED = MemoryConfig()


class Hanging(InMemoryStore):
    """Never answers; each call moves the loop's clock on by as much as a turn may wait for it."""

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        loop: Any = asyncio.get_running_loop()
        now = loop.time
        loop.time = lambda: now() + 2.0
        await asyncio.Event().wait()
        return []


async def test_a_turn_over_a_store_that_hangs_ends_with_the_shipped_deadlines() -> None:
    shipped = {name: getattr(MemoryConfig(), name) for name in ("read_timeout_seconds", "write_timeout_seconds")}
    loop: Any = asyncio.get_running_loop()
    time = loop.time
    try:
        turn = asyncio.ensure_future(Talk(store=Hanging(), memory=shipped).say("I like figs"))
        done, _ = await asyncio.wait({turn}, timeout=40)
        assert done
        assert (await turn)["messages"][-1].text == "Noted."
    finally:
        loop.time = time


async def test_a_store_that_fails_at_any_call_fails_no_turn_and_nothing_is_lost() -> None:
    for at in range(1, 100, 2):
        talk = Talk()
        whole, tap = talk.store, Tap("fail once", at, is_atomic=True, beside=_nobody)
        broken = Talk(store=tapped(whole, tap), saver=talk.saver, clock=talk.clock)
        state = await broken.say("I like figs")
        assert state["messages"][-1].text == "Noted.", at
        await talk.say("I like dates")
        assert await talk.learn() == ["Likes dates", "Likes figs"], at
        if not tap.was_reached:
            break
    assert at > 2


async def _nobody(_: Tap) -> None:
    pass


@pytest.mark.parametrize("purpose", ["summaries", "memory"])
async def test_a_model_of_memory_that_fails_at_any_call_fails_no_turn_and_nothing_is_lost(purpose: str) -> None:
    for at in range(1, 4):
        talk, calls = Talk(context=NARROW), list[int]()

        def fails(messages: list[BaseMessage], at: int = at, calls: list[int] = calls) -> str:
            calls.append(1)
            if len(calls) == at:
                raise ConnectionError("down")
            return remembers(messages)

        getattr(talk, purpose).respond = fails
        for number in range(3):
            assert (await talk.say(f"I like figs{number}.{LONG * 6}"))["messages"][-1].text == "Noted.", at
        for _ in range(3):
            talk.clock.advance(2 * SHIPPED.retry_max_seconds)
            await talk.learn()
        assert await talk.known() == [f"Likes figs{number}" for number in range(3)], at
        if len(calls) < at:
            break
    assert at > 1


@pytest.mark.parametrize("share", [0.7, 1.0], ids=["ahead of time", "when it is due"])
async def test_a_summary_that_never_comes_ends_no_turn_and_is_asked_for_again(share: float) -> None:
    released = threading.Event()
    talk = Talk(context=NARROW, memory={"model_timeout_seconds": 0.3, "prepare_summary_share": share})

    def hangs(_: list[BaseMessage]) -> str:
        released.wait()
        return "They talked."

    talk.summaries.respond = hangs
    try:
        for number in range(6):
            assert (await talk.say(f"{number}.{LONG * 3}"))["messages"][-1].text == "Noted."
        assert len(talk.summaries.prompts) > 1
        assert "running_summary" not in (await talk.values()).get("context", {})
    finally:
        released.set()
    patient = Talk(context=NARROW, store=talk.store, saver=talk.saver, clock=talk.clock)
    await patient.say(f"And now?{LONG}")
    assert "running_summary" in (await patient.values())["context"]


async def test_checkpoints_that_cannot_be_written_fail_the_turn_and_keep_what_was(tmp_path: Path) -> None:
    async with open_checkpointer(tmp_path / "checkpoints.sqlite") as saver:
        talk, connection = Talk(saver=saver), saver.conn
        await talk.say("I like figs")
        await connection.execute("PRAGMA query_only = 1")
        with pytest.raises(Exception, match="read-only"):
            await talk.say("I like dates")
        await connection.execute("PRAGMA query_only = 0")
        assert [each.text for each in (await talk.restarted().values())["messages"]] == ["I like figs", "Noted."]
        await talk.say("I like plums")
        assert {"Likes figs", "Likes plums"} <= set(await talk.learn())


async def test_what_is_committed_is_on_the_disk(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.sqlite") as store, open_checkpointer(tmp_path / "saver.sqlite") as saver:
        for each in (store, saver):
            connection: Any = each.conn
            found = [
                (await (await connection.execute(f"PRAGMA {name}")).fetchone())[0]
                for name in ("journal_mode", "synchronous", "secure_delete")
            ]
            assert found == ["wal", 2, 1]


def test_an_update_ends_though_its_store_never_answers() -> None:
    released = threading.Event()

    class Stuck(InMemoryStore):
        def batch(self, ops: Iterable[Op]) -> list[Result]:
            released.wait()
            return super().batch(ops)

    updater = MemoryUpdater(Stuck(), lambda _: Talk().memory, config=MemoryConfig(store_timeout_seconds=0.2))
    try:
        with pytest.raises(TimeoutError):
            updater.process(ConversationContext("T", "ada", messages=[HumanMessage("I like figs", id="u1")]))
    finally:
        released.set()


@pytest.mark.parametrize("how", ["kill", "fail once"])
async def test_a_deletion_of_a_thread_that_breaks_off_is_carried_out_or_was_none(
    how: How, caplog: pytest.LogCaptureFixture
) -> None:
    whole, store, clock = ["Likes dates", "Likes figs", "Likes plums"], InMemoryStore(), Clock()
    talk = Talk(store=store, clock=clock)
    await talk.say("I like figs", THREAD)
    await talk.learn()
    await talk.say("I like dates", THREAD)
    await talk.say("I like plums", "another")
    puts = [PutOp(item.namespace, item.key, item.value) for item in store.search((), limit=1_000)]
    for at in range(1, 200, 3):
        talk, rows = Talk(store=InMemoryStore(), clock=clock), {THREAD}
        talk.store.batch(deepcopy(puts))
        caplog.clear()

        async def granted(scope: Any, _: Any, send: Any, rows: set[str] = rows) -> None:
            if scope["method"] == "DELETE":
                rows.discard(THREAD)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        tap = Tap(how, at, is_atomic=True, beside=_nobody)
        door = deletions_of(granted, tapped(talk.store, tap), clock)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(door), base_url="http://here") as client:
            with suppress(Killed):
                await client.delete(f"/threads/{THREAD}")
        clock.advance(3_600)  # a server that may still decide is left alone for a while
        await finish_deletions(talk.store, clock, rows)
        known = await talk.learn()
        # A deletion of which no record can be made stops nobody, takes nothing along, and says so.
        is_unsure = "will not be erased" in caplog.text
        assert known in ([whole] if rows else [["Likes plums"], *([whole] if is_unsure else [])]), at
        assert known == whole or not {"figs", "dates"} & set(re.findall(r"\w+", talk.stored())), at
        if not tap.was_reached:
            break
    assert known != whole
    assert at > 2
