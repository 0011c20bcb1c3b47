"""Vectors in the store: beside their texts, made where they lack, and gone with their texts whoever deletes those."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from memory.control import read_control
from memory.door import run
from memory.facts.changes import Change, Extraction
from memory.facts.store import FactStore
from memory.journal.entry import JournalEntry
from memory.journal.journal import append, read_view
from memory.message import StoredMessage
from memory.namespaces import Owner, thread_namespace
from memory.recall.user_index import UserIndex
from memory.recall.vectors import make_vectors, packed, read_vectors, vector_key
from tests.fakes import WordEmbeddings

ADA = Owner.of("ada")
SAID, ASKED = "I keep an axolotl called Wombert.", "How old is it?"


class Home:
    """Ada's memory with a fact and a journal entry of one thread, and their vectors."""

    def __init__(self) -> None:
        self.store: BaseStore = InMemoryStore()
        self.embeddings = WordEmbeddings()
        self.facts = FactStore(self.store, "ada")
        change = Change(action="new", content="Keeps an axolotl called Wombert", category="knowledge", sources=("1",))
        epoch = run(self.store, read_control(ADA)).epoch
        self.facts.apply(Extraction(changes=(change,)), thread_id="T", epoch=epoch, now="2026-03-01T10:00:00+00:00")
        self.store.put(thread_namespace("T"), ADA.due_key, {})
        at = "2026-03-01T10:00:00+00:00"
        messages = (StoredMessage("1", "user", SAID, at), StoredMessage("2", "user", ASKED, at))
        run(self.store, append(ADA, [JournalEntry("2026-03-01", "T", messages)]))
        self.make()

    @property
    def fact_id(self) -> str:
        return self.facts.list()[0].id

    def make(self, name: str = "words", meanwhile: Callable[[], object] = lambda: None) -> int:
        def embed(texts: Sequence[str]) -> list[bytes]:
            vectors = [packed(values) for values in self.embeddings.embed_documents([*texts])]
            meanwhile()
            return vectors

        return run(self.store, make_vectors(ADA, name, embed))

    def kept(self) -> dict[str, dict[str, Any]]:
        return {item.key: item.value for item in self.store.search(ADA.namespace("vectors"), limit=100)}

    def read(self, name: str = "words") -> set[str]:
        return set(run(self.store, read_vectors(ADA, name)))


def test_every_active_fact_and_past_message_has_a_vector_and_no_text_is_embedded_twice() -> None:
    home = Home()
    texts = ["Keeps an axolotl called Wombert", SAID, ASKED]
    assert home.read() == set(map(vector_key, texts))
    assert sorted(home.embeddings.asked) == sorted(texts)
    assert home.make() == 0
    home.facts.create("Likes figs", "preference", 0.9)
    assert home.make() == 1
    assert home.embeddings.asked[-1] == "Likes figs"


def test_a_text_of_any_length_has_the_vector_of_what_is_indexed_of_it() -> None:
    home = Home()
    at = "2026-03-02T10:00:00+00:00"
    pasted = (StoredMessage("3", "user", "An axolotl is a salamander. " * 300, at),)
    run(home.store, append(ADA, [JournalEntry("2026-03-02", "T", pasted)]))
    home.make()
    index = UserIndex()
    index.follow_facts(home.facts.list())
    index.follow_journal(run(home.store, read_view(ADA)))

    assert len(index) == 4
    assert home.read() == set(map(vector_key, index.texts().values()))
    assert home.make() == 0


def test_vectors_without_an_item_go_with_the_next_pass() -> None:
    home = Home()
    (value, *_) = home.kept().values()
    home.store.put(ADA.namespace("vectors"), "facts.gone", value)
    home.make()
    assert "facts.gone" not in home.kept()


@pytest.mark.parametrize("garbled", [{}, {"vectors": 3}, {"vectors": {"a": "!"}, "dimension": 1}, {"dimension": None}])
def test_what_a_hand_garbled_is_made_anew(garbled: dict[str, Any]) -> None:
    home = Home()
    (key,) = (key for key in home.kept() if key.startswith("facts."))
    home.store.put(ADA.namespace("vectors"), key, garbled)
    assert len(home.read()) == 2
    assert home.make() == 1
    assert len(home.read()) == 3
