"""The node that chooses what the model knows about the user, seen from what the model received."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import Op
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.process.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.config import MemoryConfig
from memory.facts.changes import Change, Extraction, Section
from memory.facts.store import FactStore
from memory.message import iso_time
from tests.fakes import Clock, RecordingModel
from tests.patience import all_have_answered, let_turns_wait


class WaywardStore(InMemoryStore):
    """A store that is down, or slow, while told so."""

    error: Exception | None = None
    delay: float = 0.0

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.error:
            raise self.error
        return await super().abatch(ops)


class Talk:
    """One user's threads with a recorded model, over a store that may fail."""

    def __init__(self, context: Context | None = None) -> None:
        self.clock = Clock()
        self.model = RecordingModel()
        self.store = WaywardStore()
        settings = Settings(single_user=True, memory=MemoryConfig(debounce_seconds=3600))
        memory_model = RecordingModel(respond=lambda _: '{"facts": []}')
        self.service = MemoryService(
            settings, lambda _, purpose: self.model if purpose == "chat" else memory_model, clock=self.clock
        )
        self.graph = build_graph(service=self.service).compile(checkpointer=InMemorySaver(), store=self.store)
        self.facts = FactStore(self.store, "local", clock=self.clock)
        self.context = context or Context()

    async def say(self, text: str, thread: str = "t") -> str:
        """Say something and return the whole prompt the model was sent."""
        self.clock.advance(5)
        self.state = await self.graph.ainvoke(
            {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}}, context=self.context
        )
        return "\n".join(message.text for message in self.model.prompts[-1])

    def trouble(self, trouble: dict[str, Any]) -> None:
        """Let the store be down, or slower than turns wait for it."""
        for name, value in trouble.items():
            setattr(self.store, name, value)
        let_turns_wait(self.service, read=0.05, write=0.05)

    async def heal(self) -> None:
        """Let the store work, and wait until turns ask it again."""
        self.store.error, self.store.delay = None, 0.0
        let_turns_wait(self.service)
        async with asyncio.timeout(60):
            await all_have_answered(self.service)

    def learn(self, content: str, target: str | None = None) -> str:
        """Let an update of another thread bring a fact, or correct one."""
        self.clock.advance(5)
        now = iso_time(self.clock())
        action: Any = "corrects" if target else "new"
        change = Change(action=action, content=content, confidence=0.9, target=target, sources=(content,), said_at=now)
        extraction = Extraction(changes=(change,))
        return self.facts.apply(extraction, thread_id="another", epoch="initial", now=now).created[0]


@pytest.fixture
def talk() -> Talk:
    return Talk()


async def test_what_arrives_during_a_thread_stands_before_the_newest_message_and_the_block_stays(talk: Talk) -> None:
    talk.learn("User lives in Oslo")
    await talk.say("Hello")
    before = talk.model.prompts[-1][0].text
    talk.learn("User has a dog")

    await talk.say("What now?")

    system, *_, asked = talk.model.prompts[-1]
    assert system.text == before
    assert "User has a dog" in asked.text
    assert asked.text.endswith("What now?")
    assert "User has a dog" not in json.dumps(talk.state["messages"], default=str)


async def test_the_state_and_the_receipt_hold_ids_and_counts_never_texts(talk: Talk) -> None:
    oslo = talk.learn("User lives in Oslo")
    await talk.say("Hello")
    dog = talk.learn("User has a dog")
    await talk.say("Hello again")

    receipt = talk.state["memory"]["receipt"]
    assert receipt["facts"] == [oslo, dog]
    assert set(receipt["tokens"]) == {"system", "memory", "recalled", "summary", "messages", "budget"}
    assert receipt["tokens"]["memory"] > 0
    assert receipt["tokens"]["recalled"] > 0
    assert "Oslo" not in json.dumps(talk.state["memory"])
    assert "dog" not in json.dumps(talk.state["memory"])


async def test_a_cold_prefix_takes_what_arrived_into_the_block(talk: Talk) -> None:
    talk.learn("User lives in Oslo")
    await talk.say("Hello")
    talk.learn("User has a dog")
    talk.clock.advance(talk.context.cache_ttl_seconds + 1)

    await talk.say("Good morning")

    assert "User has a dog" in talk.model.prompts[-1][0].text
    assert talk.state["memory"]["deltas"] == []


async def test_the_profile_is_shown_and_stays_as_it_was_until_the_next_basis(talk: Talk) -> None:
    def work(text: str) -> None:
        section = Section(name="user.work", text=text)
        extraction = Extraction(profile=(section,))
        talk.facts.apply(extraction, thread_id="x", epoch="initial", now=iso_time(talk.clock()))

    work("Nurse")
    assert "User Context:\n- Work: Nurse" in await talk.say("Hello")
    work("Doctor")
    assert "Work: Nurse" in await talk.say("Hello again")
    talk.clock.advance(1000)
    assert "Work: Doctor" in await talk.say("Good morning")
