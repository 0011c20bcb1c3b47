"""What was said in other conversations comes back when a message asks for it, seen from what the model received."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.process.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.config import MemoryConfig
from memory.control import change_control
from memory.door import run
from memory.facts.store import FactStore
from memory.message import iso_time
from memory.namespaces import Owner
from tests.fakes import Clock, RecordingModel

ADA = Owner.of("local")
SECTION = "Past conversations:"


class Talks:
    """One user's threads, learned as soon as they are told to be; extraction finds no fact in them."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.model = RecordingModel(respond=lambda _: "Noted.")
        self.store = InMemoryStore()
        settings = Settings(single_user=True, memory=MemoryConfig(debounce_seconds=3600))
        reader = RecordingModel(respond=lambda _: '{"facts": []}')
        self.service = self.another_process(settings, reader)
        self.context = Context()

    def another_process(self, settings: Settings, reader: RecordingModel) -> MemoryService:
        self.settings, self.reader = settings, reader
        self.service = MemoryService(
            settings, lambda _, purpose: self.model if purpose == "chat" else reader, clock=self.clock
        )
        self.graph = build_graph(service=self.service).compile(checkpointer=InMemorySaver(), store=self.store)
        return self.service

    async def say(self, text: str, thread: str) -> str:
        """Say something and return the whole prompt that the model was sent."""
        self.clock.advance(5)
        self.state = await self.graph.ainvoke(
            {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}}, context=self.context
        )
        return "\n".join(message.text for message in self.model.prompts[-1])

    async def learn(self) -> None:
        await self.service.adrain(self.store, ADA)

    async def until(self, text: str, ask: str, is_there: Callable[[str], bool]) -> str:
        """Ask in new threads until the prompt is as it should be: the index is brought up to date behind a turn."""
        for number in range(3000):
            prompt = await self.say(ask, f"{text}-{number}")
            if is_there(prompt):
                return prompt
            await asyncio.sleep(0.02)
        raise AssertionError(prompt)


@pytest.fixture
def talks() -> Talks:
    return Talks()


async def test_what_was_said_in_another_thread_comes_back_with_its_day_and_who_said_it(talks: Talks) -> None:
    await talks.say("My cello teacher is called Ines [goal | 0.90]", "first")
    await talks.learn()

    prompt = await talks.until("asked", "Who teaches me the cello?", lambda prompt: SECTION in prompt)

    day = iso_time(talks.clock())[:10]
    assert f"- {day} user: My cello teacher is called Ines (goal | 0.90)" in prompt
    assert prompt.index(SECTION) < prompt.rindex("Who teaches me the cello?")
    memory = talks.state["memory"]
    assert memory["receipt"]["recalled"] == [entry for entry, _ in memory["deltas"][0]["lines"]][:1]
    assert "Ines" not in json.dumps(memory)


async def test_what_a_thread_itself_shows_is_not_said_twice(talks: Talks) -> None:
    await talks.say("My cello teacher is called Ines", "first")
    await talks.learn()
    await talks.until("asked", "Who teaches me the cello?", lambda prompt: SECTION in prompt)

    prompt = await talks.say("And who teaches me the cello?", "first")

    assert prompt.count("Ines") == 1


async def test_a_later_turn_keeps_what_it_showed_and_adds_what_its_message_asks_for(talks: Talks) -> None:
    await talks.say("My cello teacher is called Ines", "first")
    await talks.say("We sailed to Bergen in a wooden boat", "second")
    await talks.learn()
    await talks.until("asked", "Who teaches me the cello?", lambda prompt: SECTION in prompt)
    first = await talks.say("Who is my cello teacher?", "long")

    second = await talks.say("Where did we sail with the boat?", "long")

    assert "Ines" in first
    assert "Bergen" not in first
    assert second.startswith(first[: first.rindex("Who is my cello teacher?")])
    assert "user: We sailed to Bergen" in second


async def test_nothing_of_what_was_erased_stays_in_memory(talks: Talks) -> None:
    await talks.say("My cello teacher is called Ines", "first")
    await talks.learn()
    await talks.until("asked", "Who teaches me the cello?", lambda prompt: SECTION in prompt)
    recalling = talks.service.recalling
    assert ADA in recalling._stores[talks.store]

    talks.service.forget("another thread")
    assert ADA in recalling._stores[talks.store]
    talks.service.forget("first")
    assert ADA not in recalling._stores[talks.store]
    await talks.until("again", "Who teaches me the cello?", lambda prompt: SECTION in prompt)
    talks.service.forget(ADA.segment)

    assert ADA not in recalling._stores[talks.store]


@pytest.mark.parametrize(("assistants", "users"), [("Pacific/Auckland", None), ("Europe/Oslo", "Pacific/Auckland")])
async def test_yesterday_counts_from_the_day_where_the_user_is(
    talks: Talks, assistants: str, users: str | None
) -> None:
    talks.clock.seconds = datetime(2026, 3, 9, 13, tzinfo=UTC).timestamp()  # in Auckland, the tenth has begun
    talks.context = Context(time_zone=assistants, memory_tokens=200)
    if users:
        run(talks.store, change_control(ADA, time_zone=users))
    for day in range(1, 9):
        FactStore(talks.store, "local").create(f"Went to harbour {day} on 2026-03-0{day} by ferry", "context", 0.9)
    FactStore(talks.store, "local").create("Went to the fair on 2026-03-09 by tram", "context", 0.1)

    assert "the fair" in await talks.say("Where did I go yesterday?", "asked")
