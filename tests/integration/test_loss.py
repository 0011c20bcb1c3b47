"""What a failing model, a full disk and a read-only disk do to messages, summary, pending updates and facts."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore

from graphs.chat import build_graph
from graphs.persistence.sqlite_saver import DurableSqliteSaver, open_checkpointer
from graphs.persistence.sqlite_store import DurableSqliteStore, open_store
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from graphs.turn.state import InputState
from memory.config import MemoryConfig
from memory.context.running_summary import RunningSummary
from memory.effects import arun
from memory.facts.store import FactStore
from memory.namespaces import Owner
from memory.outbox.outbox import read_entries
from tests.fakes import RecordingModel, learns
from tests.stores import FaultyStore

LOCAL = Owner.of("local")
PATIENCE = 120.0
NO_BACK_OFF = MemoryConfig(retry_base_seconds=0, update_spacing_seconds=0)


CONTEXT = Context(max_tokens=900, max_summary_tokens=64, reply_tokens=64, memory_tokens=0)
DISKS = {"full": "PRAGMA max_page_count = 1", "read-only": "PRAGMA query_only = ON"}
HEALED = ("PRAGMA max_page_count = 1000000", "PRAGMA query_only = OFF")

both_disks = pytest.mark.parametrize("disk", list(DISKS))


class Deployment:
    """The chat graph, whose models, store and disk can fail."""

    def __init__(
        self,
        store: BaseStore,
        saver: BaseCheckpointSaver[str],
        memory: MemoryConfig = NO_BACK_OFF,
    ) -> None:
        self.store = store
        self.chat = RecordingModel()
        self.memory = RecordingModel(respond=self._answer)
        settings = Settings(single_user=True, trigger="run", memory=memory)
        # A server that is not there: nothing but what the tests call triggers an update.
        self.service = MemoryService(settings, lambda _, purpose: self.chat if purpose == "chat" else self.memory)
        self.graph = build_graph(service=self.service).compile(checkpointer=saver, store=store)
        self.config: RunnableConfig = {"configurable": {"thread_id": "T"}}

    def _answer(self, messages: list[BaseMessage]) -> str:
        return learns(messages) if "Messages:" in messages[-1].text else "They talked."

    async def say(self, text: str) -> str:
        asked = InputState(messages=[HumanMessage(text)])
        state = await self.graph.ainvoke(asked, self.config, context=CONTEXT)
        return str(state["messages"][-1].text)

    async def said(self) -> list[str]:
        """The texts of the user's messages in the thread's newest checkpoint."""
        state = await self.graph.aget_state(self.config)
        return [one.text for one in state.values["messages"] if isinstance(one, HumanMessage)]

    async def summary(self) -> RunningSummary | None:
        state = await self.graph.aget_state(self.config)
        found = state.values.get("context", {}).get("running_summary")
        assert found is None or isinstance(found, RunningSummary)
        return found

    async def talk(self, turns: int = 12) -> None:
        for number in range(turns):
            await self.say(f"{number}: I like thing{number}. " + "word " * 60)

    async def drain(self) -> None:
        await self.service.adrain(self.store, LOCAL)

    async def facts(self) -> list[str]:
        return sorted(fact.content for fact in await FactStore.of_owner(self.store, LOCAL).alist())

    async def pending(self) -> list[str]:
        entries = await arun(self.store, read_entries(LOCAL))
        return [message.text for entry in entries for message in entry.messages if message.role == "user"]


class OnDisk(Deployment):
    """A deployment on SQLite files."""

    def __init__(self, store: DurableSqliteStore, saver: DurableSqliteSaver) -> None:
        super().__init__(store, saver)
        self.facts_file, self.checkpoints_file = store.conn, saver.conn

    async def heal(self) -> None:
        """Let the store's disk be written again, and wait until turns ask the store again."""
        await execute(self.facts_file, *HEALED)
        async with asyncio.timeout(PATIENCE):
            await self.service.stores.settled()


@pytest.fixture
async def deployment(tmp_path: Path) -> AsyncIterator[OnDisk]:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(tmp_path / "store.sqlite"))
        saver = await stack.enter_async_context(open_checkpointer(tmp_path / "checkpoints.sqlite"))
        yield OnDisk(store, saver)


async def execute(connection: aiosqlite.Connection, *pragmas: str) -> None:
    for pragma in pragmas:
        await (await connection.execute(pragma)).close()


async def test_a_secret_run_that_ends_there_is_never_written_down(deployment: OnDisk) -> None:
    secret = Context(memory_mode="incognito")
    said = InputState(messages=[HumanMessage("I like figs.")])
    await deployment.graph.ainvoke(said, deployment.config, context=secret, interrupt_before=["flush_memory"])
    await deployment.say("I like plums.")
    assert await deployment.pending() == ["I like plums."]


class SilentModel(RecordingModel):
    """A model that takes a prompt and never answers."""

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.prompts.append(messages)
        await asyncio.Event().wait()
        raise AssertionError("never")

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        threading.Event().wait()
        raise AssertionError("never")


@pytest.mark.parametrize("share", [0.7, 1.0], ids=["also ahead of time", "when it is due"])
async def test_a_summary_that_never_comes_ends_no_turn_and_is_asked_for_again(share: float) -> None:
    store, saver = FaultyStore(), InMemorySaver()
    deployment = Deployment(store, saver, MemoryConfig(model_timeout_seconds=0.3, prepare_summary_share=share))
    silent = deployment.memory = SilentModel()
    async with asyncio.timeout(PATIENCE):
        await deployment.talk()
        asked = len(silent.prompts)
        assert asked > 1 or share < 1
        assert await deployment.say("Are you there?") == "reply to Are you there?"
    # A turn that waited in vain for what is written ahead of time does not wait a second time.
    assert len(silent.prompts) == asked + 1 or share < 1
    assert await deployment.summary() is None
    assert len(await deployment.said()) == 13
    patient = Deployment(store, saver)
    await patient.say("And now?")
    assert await patient.summary() is not None


@both_disks
async def test_a_store_that_cannot_be_written_fails_no_turn_and_the_log_says_so(
    deployment: OnDisk, disk: str, caplog: pytest.LogCaptureFixture
) -> None:
    await deployment.say("I like figs.")
    await deployment.drain()
    await execute(deployment.facts_file, DISKS[disk])
    assert await deployment.say("I like plums." + "x" * 5000) != ""
    assert "not written down" in caplog.text
    assert "plums" not in caplog.text
    assert len(await deployment.said()) == 2
    assert await deployment.facts() == ["Likes figs"]


@both_disks
async def test_a_store_that_cannot_be_written_keeps_what_a_summary_would_take(deployment: OnDisk, disk: str) -> None:
    await deployment.say("I like figs.")
    await execute(deployment.facts_file, DISKS[disk])
    await deployment.talk()
    assert await deployment.summary() is None
    assert len(await deployment.said()) == 13
    await deployment.heal()
    await deployment.say("And now?")
    assert await deployment.summary() is not None
    await deployment.drain()
    # what could not be written down turn by turn is written down when it is cut
    assert "Likes thing0" in await deployment.facts()


@both_disks
async def test_an_update_on_a_disk_that_cannot_be_written_is_made_later(deployment: OnDisk, disk: str) -> None:
    await deployment.say("I like figs.")
    await execute(deployment.facts_file, DISKS[disk])
    # a full file may still have room in its free pages
    with suppress(sqlite3.OperationalError):
        await deployment.drain()
    await deployment.heal()
    await deployment.drain()
    assert await deployment.facts() == ["Likes figs"]


@both_disks
async def test_checkpoints_that_cannot_be_written_fail_the_turn_and_keep_what_was(
    deployment: OnDisk, disk: str
) -> None:
    await deployment.talk()
    before, summary = await deployment.said(), await deployment.summary()
    await execute(deployment.checkpoints_file, DISKS[disk])
    with pytest.raises(Exception, match=r"full|read-only"):
        await deployment.say("x" * 50_000)
    assert await deployment.said() == before
    assert await deployment.summary() == summary
    await execute(deployment.checkpoints_file, *HEALED)
    await deployment.say("And now?")
    assert (await deployment.said())[:-1] == before
