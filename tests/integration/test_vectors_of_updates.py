"""Vectors are made behind an update, by whoever has an embedder, and anew when it is another one; no turn waits."""

import threading
import time
from collections.abc import Callable

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.process.embedders import Embedder
from graphs.process.service import MemoryService
from graphs.settings import Settings
from memory.door import run
from memory.facts.store import FactStore
from memory.namespaces import Owner
from memory.recall.vectors import read_vectors, text_key
from tests.fakes import RecordingModel, WordEmbeddings, learns

ADA = Owner.of("ada")


class Slow(WordEmbeddings):
    """An embedder that goes on when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.gate.wait(30)
        return super().embed_documents(texts)


def service_with(name: str, embeddings: WordEmbeddings) -> MemoryService:
    model = RecordingModel(respond=learns)
    return MemoryService(Settings(), lambda *_: model, embedder=Embedder(name, lambda: embeddings))


async def say(service: MemoryService, store: InMemoryStore, text: str) -> None:
    graph = build_graph(service=service, tools=()).compile(checkpointer=InMemorySaver(), store=store)
    who = {"thread_id": "T", "langgraph_auth_user_id": "ada"}
    await graph.ainvoke({"messages": [HumanMessage(text)]}, {"configurable": who})


def vectors(store: InMemoryStore, name: str) -> set[str]:
    return set(run(store, read_vectors(ADA, "initial", name)))


def wait_for(look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def test_an_update_ends_before_its_vectors_are_made_and_they_follow() -> None:
    store, embeddings = InMemoryStore(), Slow()
    service = service_with("slow", embeddings)
    await say(service, store, "I like figs")
    assert (await service.adrain(store, ADA)).receipts
    contents = {text_key(fact.content) for fact in FactStore(store, "ada").list()}
    assert contents
    assert vectors(store, "slow") == set()
    embeddings.gate.set()
    wait_for(lambda: contents <= vectors(store, "slow"))


async def test_the_first_turn_of_a_process_with_another_embedder_has_all_made_anew() -> None:
    store, first = InMemoryStore(), WordEmbeddings()
    for number in range(40):
        FactStore(store, "ada").create(f"Owns painting number {number}", "knowledge", 0.9)
    before = service_with("first", first)
    before.recalling.making.ask(store, ADA)
    wait_for(lambda: len(vectors(store, "first")) == 40)
    await say(service_with("second", WordEmbeddings()), store, "Hello")
    wait_for(lambda: len(vectors(store, "second")) == 40)
    assert vectors(store, "first") == set()
    assert len(first.asked) == 40


async def test_without_an_embedder_there_are_no_vectors() -> None:
    store, model = InMemoryStore(), RecordingModel(respond=learns)
    service = MemoryService(Settings(), lambda *_: model)
    await say(service, store, "I like figs")
    assert (await service.adrain(store, ADA)).receipts
    assert store.search(ADA.namespace("vectors")) == []
