"""The search of facts: one rule for `FactStore`, the memory API and the model's tool, by words, dates and meaning."""

import pytest
from langgraph.store.memory import InMemoryStore

from memory.effects import Handlers, perform
from memory.facts.store import FactStore
from memory.journal import JournalEntry
from memory.message import StoredMessage
from memory.namespaces import Owner
from memory.recall.kept_vectors import Embed, make_vectors, text_key
from memory.recall.search import search_facts, similarity_of
from memory.recall.vectors import QueryVector, packed
from memory.tool_lookups import Lookup, tell_found
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


def asked(query: str, name: str = "meanings") -> QueryVector:
    return QueryVector.of(name, Meanings().embed_query(query))


def with_vectors(facts: FactStore) -> None:
    store: InMemoryStore = facts._store  # type: ignore[assignment]  # the fixture's
    handlers: Handlers = {
        list: store.batch,
        Embed: lambda effect: [packed(values) for values in Meanings().embed_documents(list(effect.texts))],
    }
    perform(make_vectors(Owner.of("ada"), "meanings"), handlers)


def test_a_date_is_found_by_its_words(facts: FactStore) -> None:
    assert found(facts, "What happened in October?")[:1] == ["Moved on 2023-10-29"]


def test_what_shares_no_word_is_found_by_its_meaning(facts: FactStore) -> None:
    pytest.importorskip("numpy")
    assert found(facts, "dangerous food", asked("dangerous food")) == []  # no vectors yet: words alone
    with_vectors(facts)
    assert found(facts, "dangerous food") == []
    assert found(facts, "dangerous food", asked("dangerous food"))[0] == "Is allergic to peanuts"
    assert found(facts, "dangerous food", asked("dangerous food", "another embedder")) == []


def test_what_holds_the_query_comes_before_what_is_alike(facts: FactStore) -> None:
    pytest.importorskip("numpy")
    with_vectors(facts)
    assert found(facts, "chess", asked("dangerous food"))[0] == "Plays chess"


@pytest.mark.parametrize("query", ["", " ...", "\n"])
def test_white_space_and_punctuation_find_nothing(facts: FactStore, query: str) -> None:
    assert search_facts(facts.list(), query, asked("food")) == []


def test_a_text_without_a_vector_is_left_out_of_what_is_alike() -> None:
    pytest.importorskip("numpy")
    vectors = {text_key("figs"): packed([1.0, 0.0])}
    question = QueryVector.of("e", [1.0, 0.0])
    assert similarity_of({"a": "figs", "b": "plums"}, question, vectors) == pytest.approx({"a": 1.0}, abs=0.01)
    assert similarity_of({"b": "plums"}, question, vectors) is None
    assert similarity_of({"a": "figs"}, None, vectors) is None


def test_only_what_was_said_next_to_a_hit_is_found_with_it() -> None:
    said = [("We bought a boat", "Lovely"), ("The weather was fine", "Good"), ("Ines plays chess", "Nice")]
    journal = [
        JournalEntry(
            "2026-03-01",
            "t",
            (
                StoredMessage(f"u{number}", "user", question, f"2026-03-01T10:0{number}:00+00:00"),
                StoredMessage(f"a{number}", "assistant", answer, f"2026-03-01T10:0{number}:05+00:00"),
            ),
            "e",
        )
        for number, (question, answer) in enumerate(said)
    ]

    told = tell_found(Lookup(journal=journal), "boat", 10)

    assert "We bought a boat" in told
    assert "weather" not in told
    assert "chess" not in told
