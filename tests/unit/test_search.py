"""The search of facts: one rule for `FactStore`, the memory API and the model's tool, by words, dates and meaning."""

from collections.abc import Sequence

import pytest
from langgraph.store.memory import InMemoryStore

from memory.control import INITIAL_EPOCH
from memory.door import run
from memory.facts.changes import Change, Extraction
from memory.facts.store import FactStore
from memory.namespaces import Owner
from memory.recall.vectors import QueryVector, make_vectors, packed
from tests.fakes import WordEmbeddings


class Meanings(WordEmbeddings):
    """Knows that food and peanuts are alike."""

    def embed_query(self, text: str) -> list[float]:
        return super().embed_query(text.replace("peanuts", "food"))


@pytest.fixture
def facts() -> FactStore:
    facts = FactStore(InMemoryStore(), "ada")
    for content in ("Is allergic to peanuts", "Moved on 2023-10-29", "Plays chess"):
        facts.create(content, "knowledge", 0.9)
    return facts


def found(facts: FactStore, query: str, question: QueryVector | None = None) -> list[str]:
    return [fact.content for fact in facts.search(query, question=question)]


def typed(facts: FactStore, query: str) -> list[str]:
    """What a person finds with it."""
    return [fact.content for fact in facts.search(query, only_asked=True)]


def asked(query: str, name: str = "meanings") -> QueryVector:
    return QueryVector.of(name, Meanings().embed_query(query))


def with_vectors(facts: FactStore) -> None:
    store: InMemoryStore = facts._store  # type: ignore[assignment]  # the fixture's

    def embed(texts: Sequence[str]) -> list[bytes]:
        return [packed(values) for values in Meanings().embed_documents([*texts])]

    run(store, make_vectors(Owner.of("ada"), "meanings", embed))


def test_what_shares_no_word_is_found_by_its_meaning(facts: FactStore) -> None:
    pytest.importorskip("numpy")
    assert found(facts, "dangerous food", asked("dangerous food")) == []  # no vectors yet: words alone
    with_vectors(facts)
    assert found(facts, "dangerous food") == []
    assert found(facts, "dangerous food", asked("dangerous food"))[0] == "Is allergic to peanuts"
    assert found(facts, "dangerous food", asked("dangerous food", "another embedder")) == []


def test_what_only_shares_words_with_a_hit_is_not_found() -> None:
    """ "Likes" tells much about the plums that are found, but nobody asked for it."""
    facts = FactStore(InMemoryStore(), "ada")
    for content in ("Likes plums", "Likes figs"):
        facts.create(content, "preference", 0.9)
    assert typed(facts, "plums") == ["Likes plums"]
    assert typed(facts, "the plum tree") == ["Likes plums"]
    assert sorted(typed(facts, "likes")) == ["Likes figs", "Likes plums"]


def test_what_was_only_said_in_the_same_conversation_as_a_hit_is_not_found() -> None:
    facts = FactStore(InMemoryStore(), "ada")
    others = {f"thread {number}": (f"Saw harbour {number}", f"Met sailor {number}") for number in range(8)}
    for thread, contents in {"one": ("Likes plums", "Has a boat in Bergen"), **others}.items():
        changes = tuple(Change(action="new", content=each, category="knowledge", sources=("1",)) for each in contents)
        facts.apply(Extraction(changes=changes), thread_id=thread, epoch=INITIAL_EPOCH, now="2026-03-01T10:00:00+00:00")
    assert typed(facts, "plums") == ["Likes plums"]
