"""Who else ranks facts for a question: each peer gets the facts of a talk and returns their ids, best first."""

import importlib.util
import random
import re
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore

from memory.recall import Document

Ranker = Callable[[str], list[str]]
Peer = Callable[[Sequence[Document]], Ranker]

_NAMESPACE = ("facts",)
_MOST = 400


def by_confidence(seed: int) -> Peer:
    """The order of a prompt that does not look at the question; gold facts have one confidence, so it is a chance."""

    def peer(documents: Sequence[Document]) -> Ranker:
        ids = [document.id for document in documents]
        random.Random(seed).shuffle(ids)
        return lambda _: ids

    return peer


def fts5(documents: Sequence[Document]) -> Ranker:
    """SQLite's full-text search as it comes: Porter's stems, BM25, any word of the question."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='porter unicode61')")
    rows = [(number, f"{each.who} {each.text} {each.when[:10]}") for number, each in enumerate(documents)]
    database.executemany("INSERT INTO texts(rowid, text) VALUES (?, ?)", rows)

    def rank(question: str) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
        found = database.execute("SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts)", (words,))
        return [documents[number].id for (number,) in found]

    return rank


def stores(embeddings: Embeddings) -> Peer:
    """LangGraph's store with a vector index, as langmem uses it."""

    def peer(documents: Sequence[Document]) -> Ranker:
        store = _vector_store(embeddings)
        for document in documents:
            store.put(_NAMESPACE, document.id, {"content": document.text})
        return lambda question: [item.key for item in store.search(_NAMESPACE, query=question, limit=_MOST)]

    return peer


def reciprocal_ranks(*peers: Peer) -> Peer:
    """What several peers find, by the sum of 1 / (60 + place), as Cormack and others propose."""

    def peer(documents: Sequence[Document]) -> Ranker:
        rankers = [each(documents) for each in peers]

        def rank(question: str) -> list[str]:
            worth: dict[str, float] = {}
            for ranker in rankers:
                for place, name in enumerate(ranker(question), start=1):
                    worth[name] = worth.get(name, 0.0) + 1 / (60 + place)
            return sorted(worth, key=lambda name: -worth[name])

        return rank

    return peer


def langgraph_memory(embeddings: Embeddings) -> Peer:
    """PyPI's `langgraph-memory`, without its model calls: what it is given is kept as it is."""

    def peer(documents: Sequence[Document]) -> Ranker:
        from langgraph_memory import MemoryConfig, MemoryEngine

        engine = MemoryEngine(
            _vector_store(embeddings),
            extractor=lambda _: [],
            consolidator=lambda *_: None,
            config=MemoryConfig(consolidation_threshold=1.0),
        )
        ids = {document.text: document.id for document in documents}
        engine.remember_facts([document.text for document in documents], _NAMESPACE)

        def rank(question: str) -> list[str]:
            matches = engine.recall(question, _NAMESPACE, limit=_MOST, touch=False)
            return [ids[match.record.content] for match in matches]

        return rank

    return peer


def mem0(embeddings: Embeddings, dimensions: int) -> Peer:
    """PyPI's `mem0ai` with `infer=False` on its local Qdrant: no model is asked."""

    def peer(documents: Sequence[Document]) -> Ranker:
        from mem0 import Memory

        folder = Path(tempfile.mkdtemp(prefix="bench-mem0-"))
        memory = Memory.from_config(
            {
                "embedder": {"provider": "langchain", "config": {"model": embeddings}},
                "llm": {"provider": "openai", "config": {"api_key": "not-needed"}},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {"path": str(folder / "qdrant"), "embedding_model_dims": dimensions, "on_disk": False},
                },
                "history_db_path": str(folder / "history.db"),
            }
        )
        for document in documents:
            memory.add(document.text, user_id="user", infer=False, metadata={"document": document.id})

        def rank(question: str) -> list[str]:
            found: dict[str, Any] = memory.search(question, filters={"user_id": "user"}, top_k=_MOST, threshold=0.0)
            return [each["metadata"]["document"] for each in found["results"]]

        return rank

    return peer


def missing(package: str) -> str:
    """Return why a peer is not measured, or nothing if its package is there."""
    return "" if importlib.util.find_spec(package) else f"{package} is not installed"


def _vector_store(embeddings: Embeddings) -> InMemoryStore:
    dimensions = len(embeddings.embed_query("dimensions"))
    return InMemoryStore(index={"dims": dimensions, "embed": embeddings, "fields": ["content"]})
