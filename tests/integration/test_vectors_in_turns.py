"""The way of vectors through a turn of the graph: what is found by them, and how long a turn waits."""

import asyncio
import threading
from collections.abc import Iterable

import pytest
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore

from graphs.process.embedders import Embedder
from graphs.turn.context import Context
from memory.door import run
from memory.facts.store import FactStore
from memory.namespaces import Owner
from memory.recall.vectors import read_vectors
from tests.fakes import WordEmbeddings
from tests.laws.embedding import embedded, indexed
from tests.laws.talk import Talk

pytest.importorskip("numpy")

ASKED = "Which food is dangerous?"


class Meanings(WordEmbeddings):
    """Knows that peanuts are food, and waits where it is told to."""

    def __init__(self) -> None:
        super().__init__(size=128)
        self.gate = threading.Event()
        self.gate.set()

    def embed_query(self, text: str) -> list[float]:
        assert self.gate.wait(60)
        return super().embed_query(text.lower().replace("peanuts", "food food food"))


class Finding(Talk):
    """A process with an embedder, and Ada's facts, of which a prompt has room for few."""

    def __init__(self, store: InMemoryStore | None = None, name: str = "meanings", seconds: float = 60.0) -> None:
        self.embeddings = Meanings()
        embedder = Embedder(name, lambda: self.embeddings, query_seconds=seconds)
        super().__init__(store=store, embedder=embedder, context=Context(memory_tokens=300))
        facts = FactStore(self.store, "ada")
        for number in range(0 if store else 60):
            facts.create(f"Has seen harbour number {number} in the far north of the country", "knowledge", 0.9)
        facts.create("Is allergic to peanuts", "knowledge", 0.1)

    async def asks(self, text: str) -> str:
        """Say something in a new thread and return the whole prompt that the model was sent."""
        await self.say(text, f"{id(self)}-{text}")
        return self.shown()

    async def ready(self) -> "Finding":
        """Have a first turn, which brings the facts into the index, and their vectors behind it."""
        await asyncio.wrap_future(self.embedder.start())
        await self.asks("Hello")
        await embedded(self.service, self.store, "ada")
        await indexed(self.service, self.store, "ada")
        return self


async def test_a_turn_finds_by_meaning_what_shares_no_word_with_its_message() -> None:
    assert "peanuts" in await (await Finding().ready()).asks(ASKED)


async def test_past_its_deadline_a_turn_goes_by_words_alone() -> None:
    talk = await Finding(seconds=0.01).ready()
    talk.embeddings.gate.clear()
    try:
        assert "peanuts" not in await talk.asks(ASKED)
        assert "peanuts" in await talk.asks("Is it peanuts?")
    finally:
        talk.embeddings.gate.set()


async def test_another_embedder_compares_nothing_with_the_old_vectors_and_has_them_made_anew() -> None:
    def vectors(name: str) -> dict[str, bytes]:
        return run(first.store, read_vectors(Owner.of("ada"), name))

    first = await Finding(name="first").ready()
    second = Finding(first.store, "second")
    assert vectors("second") == {}
    await second.ready()
    assert "peanuts" in await second.asks(ASKED)
    assert vectors("first") == {}


async def test_the_end_of_a_process_waits_for_what_its_last_vectors_lead_to() -> None:
    """Else whoever closes the store then has it fail, and the log says that an index is not up to date."""

    class Slow(InMemoryStore):
        is_slow = False

        def batch(self, ops: Iterable[Op]) -> list[Result]:
            if self.is_slow and threading.current_thread().name == "palimpsest-recall":
                threading.Event().wait(0.2)
            return super().batch(ops)

    talk = await Finding(Slow()).ready()
    await talk.asks("I like kiwis.")
    talk.store.is_slow = True
    await talk.service.adrain(talk.store, Owner.of("ada"))
    await asyncio.to_thread(talk.service.close)
    assert not [each.name for each in threading.enumerate() if each.name in ("palimpsest-recall", "palimpsest-vectors")]
