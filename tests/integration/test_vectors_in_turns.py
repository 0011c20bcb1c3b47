"""The way of vectors through a turn of the graph: what is found by them, what a turn embeds, and how long it waits."""

import asyncio
import threading

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.process.embedders import Embedder
from graphs.process.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.config import MemoryConfig
from memory.door import run
from memory.facts.store import FactStore
from memory.namespaces import Owner
from memory.recall.vectors import read_vectors
from tests.fakes import RecordingModel, WordEmbeddings

pytest.importorskip("numpy")

ADA = Owner.of("ada")
ASKED = "Which food is dangerous?"


class Meanings(WordEmbeddings):
    """Knows that peanuts and lobsters are food, and waits where it is told to."""

    def __init__(self) -> None:
        super().__init__(size=128)
        self.gate = threading.Event()
        self.gate.set()

    def embed_query(self, text: str) -> list[float]:
        assert self.gate.wait(60)
        return super().embed_query(text.lower().replace("peanuts", "food food food").replace("lobster", "food food"))


class House:
    """Ada's facts, of which a prompt has room for few, and a process with an embedder."""

    def __init__(self) -> None:
        self.store = InMemoryStore()
        self.facts = FactStore(self.store, "ada")
        for number in range(60):
            self.facts.create(f"Has seen harbour number {number} in the far north of the country", "knowledge", 0.9)
        self.facts.create("Is allergic to peanuts", "knowledge", 0.1)
        self.reader = RecordingModel(respond=lambda _: '{"facts": []}')

    async def process(self, name: str = "meanings", seconds: float = 60.0, *, made: bool = True) -> "Process":
        process = Process(self, name, seconds)
        await asyncio.wrap_future(process.embedder.start())
        if made:
            await process.made()
        return process


class Process:
    def __init__(self, house: House, name: str, seconds: float) -> None:
        self.house, self.turns = house, 0
        self.model, self.embeddings = RecordingModel(respond=lambda _: "Noted."), Meanings()
        self.embedder = Embedder(name, lambda: self.embeddings, query_seconds=seconds)
        self.service = MemoryService(
            Settings(memory=MemoryConfig(debounce_seconds=3600)),
            lambda _, purpose: self.model if purpose == "chat" else house.reader,
            embedder=self.embedder,
        )
        self.graph = build_graph(service=self.service, tools=()).compile(
            checkpointer=InMemorySaver(), store=house.store
        )

    async def made(self) -> None:
        """Return once every text has its vector, and the index has them all."""
        making = self.service.recalling.making.ask(self.house.store, ADA)
        assert making is not None
        await asyncio.wrap_future(making)
        following = self.service.recalling.behind.ask(self.house.store, ADA)
        assert following is not None
        await asyncio.wrap_future(following)
        # What the index held of no vector before is ranked with it from the next turn on.
        self.embeddings.asked.clear()

    async def say(self, text: str) -> str:
        """Say something in a new thread and return the whole prompt that the model was sent."""
        self.turns += 1
        who = {"thread_id": f"{id(self)}-{self.turns}", "langgraph_auth_user_id": "ada"}
        await self.graph.ainvoke(
            {"messages": [HumanMessage(text)]}, {"configurable": who}, context=Context(memory_tokens=300)
        )
        return "\n".join(message.text for message in self.model.prompts[-1])

    async def ready(self) -> None:
        """Have a first turn, which brings the facts into the index, and their vectors behind it."""
        await self.say("Hello")
        await self.made()


async def test_a_turn_finds_by_meaning_what_shares_no_word_with_its_message() -> None:
    process = await House().process()
    await process.ready()
    assert "peanuts" in await process.say(ASKED)


async def test_past_its_deadline_a_turn_goes_by_words_alone() -> None:
    process = await House().process(seconds=0.01)
    await process.ready()
    process.embeddings.gate.clear()
    try:
        assert "peanuts" not in await process.say(ASKED)
        assert "peanuts" in await process.say("Is it peanuts?")
    finally:
        process.embeddings.gate.set()


async def test_another_embedder_compares_nothing_with_the_old_vectors_and_has_them_made_anew() -> None:
    house = House()
    await (await house.process("first")).ready()
    second = await house.process("second", made=False)
    second.embeddings.gate.clear()
    making = second.service.recalling.making.ask(house.store, ADA)
    try:
        assert set(run(house.store, read_vectors(ADA, "initial", "second"))) == set()
    finally:
        second.embeddings.gate.set()
    assert making is not None
    await asyncio.wrap_future(making)
    await second.ready()
    assert "peanuts" in await second.say(ASKED)
    assert run(house.store, read_vectors(ADA, "initial", "first")) == {}
