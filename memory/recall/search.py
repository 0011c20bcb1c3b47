"""What a search finds, and in what order: the one rule for `FactStore`, the memory API and the model's tool. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from memory.facts.fact import Fact
from memory.recall.documents import Hit, fact_document
from memory.recall.index import Index
from memory.recall.vectors import QueryVector, VectorIndex
from memory.text import normalize

_MOST_ALIKE: Final = 100
"""An embedder finds every text more or less alike; so many are worth showing."""
LEAST_SHARE: Final = 0.2
"""What has less of the best hit's score is found for words of other hits, or for a day, and not for the query."""


def search_facts(
    facts: Sequence[Fact],
    query: str,
    question: QueryVector | None = None,
    vectors: Mapping[str, bytes] | None = None,
    *,
    only_asked: bool = False,
) -> list[Fact]:
    """Return the facts that hold the query, in the order given, then those that recall ranks best for it.

    Args:
        facts: All that are searched.
        query: A word or a sentence, whatever its case; nothing is found by white space or punctuation alone.
        question: What an embedder makes of it.
        vectors: Those of the facts, by `vector_key`.
        only_asked: Leave out what is found for words of other hits, or for the conversation that it is from: a person
            who typed the query would not know why it is there.
    """
    wanted = normalize(query)
    if not wanted:
        return []
    by_id = {fact.id: fact for fact in facts}
    texts = {fact.id: fact.content for fact in facts}
    known = VectorIndex.of(question.embedder, texts, vectors or {}) if question else None
    similarity = known.similarity(question) if known else None
    limit = _MOST_ALIKE if similarity else len(facts)
    index = Index(map(fact_document, facts))
    hits = relevant(index.rank(query, similarity=similarity, limit=limit, only_asked=only_asked), LEAST_SHARE)
    holding = (name for name, text in texts.items() if wanted in normalize(text))
    return [by_id[name] for name in dict.fromkeys([*holding, *(hit.document.id for hit in hits)])]


def relevant(hits: Sequence[Hit], share: float) -> list[Hit]:
    """Return the hits, best first, that have at least this share of the best one's score."""
    return [hit for hit in hits if hit.score >= share * hits[0].score]
