"""A talk as the product remembers it, and what its own choice shows of that for a question: no graph, no store."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from langchain_core.embeddings import Embeddings

from benchmarks.quality_data import Talk
from memory import prompts
from memory.context.tokens import count_tokens
from memory.facts.fact import Fact, fact_ids, strongest_first
from memory.facts.rows import MemorySnapshot
from memory.injection.selection import TurnConditions, inject
from memory.journal.entry import JournalEntry, line_id
from memory.journal.journal import JournalRevision, JournalView
from memory.message import StoredMessage
from memory.recall.search import search_facts
from memory.recall.user_index import Asked, Recalled, UserIndex
from memory.recall.vectors import QueryVector, packed, vector_key
from memory.recall.words import parts
from memory.updates.transcript import exchanges

EMBEDDER: Final = "bench"
_REVISION: Final = JournalRevision()
NOW: Final = 1_760_000_000.0
"""When all is asked: a message about tomorrow is found by the name of its day."""
BESIDE: Final = count_tokens(prompts.MEMORY_BLOCK.format(memory=""))
"""Tokens of the fence and its sentence: peers have none, so they are no part of a row's budget."""


def facts_of(talk: Talk) -> list[Fact]:
    """Return a talk's facts as updates would have left them."""
    return [
        Fact(
            id=next(fact_ids(talk.name, f"{number} {document.text}")),
            content=document.text,
            category="knowledge",
            confidence=0.8,
            created_at=f"{document.when}+00:00",
            updated_at=f"{document.when}+00:00",
            source="conversation",
            thread_id=document.session,
            message_ids=document.sources,
        )
        for number, document in enumerate(talk.facts)
    ]


def entries_of(talk: Talk, user: str = "") -> Iterable[JournalEntry]:
    """Return a talk's journal: the other speaker is the assistant.

    Args:
        talk: The talk.
        user: Who of the speakers is the user. Empty: what either said stands there as the user's, with the name before.
    """
    sessions: dict[str, list[StoredMessage]] = {}
    for turn in talk.turns:
        said = sessions.setdefault(turn.session, [])
        time = (datetime.fromisoformat(turn.when) + timedelta(seconds=len(said))).isoformat()
        text = turn.text if user else f"{turn.who}: {turn.text}"
        said.append(StoredMessage(turn.id, "user" if user in ("", turn.who) else "assistant", text, f"{time}+00:00"))
    for session, said in sessions.items():
        pairs = (tuple(said[at : at + 2]) for at in range(0, len(said), 2))
        for messages in exchanges(said) if user else pairs:
            yield JournalEntry(messages[0].time[:10], session, messages)


class Held:
    """What a process holds of a talk: its facts and, if wanted, its journal, with or without vectors."""

    def __init__(self, talk: Talk, embeddings: Embeddings | None, *, with_turns: bool) -> None:
        facts = facts_of(talk)
        self._snapshot = MemorySnapshot(facts=tuple(strongest_first(facts)))
        self._embeddings = embeddings
        self._index = UserIndex()
        self._index.follow_facts(facts)
        entries = {entry.key: entry for entry in entries_of(talk)} if with_turns else {}
        self._index.follow_journal(JournalView(_REVISION, entries, is_whole=True))
        self._vectors: dict[str, bytes] = {}
        if embeddings is not None:
            texts = self._index.texts()
            vectors = map(packed, embeddings.embed_documents(list(texts.values())))
            self._vectors = dict(zip(map(vector_key, texts.values()), vectors, strict=True))
            self._index.follow_vectors(EMBEDDER, self._vectors)
        self.evidence: dict[str, frozenset[str]] = {
            **{fact.id: frozenset(fact.message_ids) for fact in facts},
            **{line_id(turn.session, turn.id): frozenset({turn.id}) for turn in talk.turns},
        }
        """The turns of the talk that a fact or a line tells of."""

    def recall(self, question: str) -> Recalled:
        """Return what the product finds for a question."""
        vectors = [vector for part in parts(question) if (vector := self._asked(part))]
        return self._index.recall(Asked(question, vectors=vectors), _REVISION)

    def search(self, question: str, limit: int) -> set[str]:
        """Return the turns that the first facts tell of which `FactStore.search` finds."""
        found = search_facts(self._snapshot.facts, question, self._asked(question), self._vectors)
        return evidence_of([fact.id for fact in found[:limit]], self.evidence)

    def _asked(self, question: str) -> QueryVector | None:
        return QueryVector.of(EMBEDDER, self._embeddings.embed_query(question)) if self._embeddings else None

    def shown(self, recalled: Recalled, budget: int) -> set[str]:
        """Return the turns whose words, or facts of which, a first turn's prompt shows in so many tokens of memory."""
        turn = TurnConditions(
            thread_id="new",
            message_id="asked",
            window=(),
            now=NOW,
            cache_ttl_seconds=300.0,
            will_summarize=False,
            budget=budget + BESIDE,
            recalled=recalled,
        )
        injected = inject(None, self._snapshot, turn)
        return evidence_of((*injected.fact_ids(), *(line for _, line in injected.lines())), self.evidence)


def evidence_of(names: Sequence[str], evidence: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the turns that these facts and lines tell of."""
    return {turn for name in names for turn in evidence[name]}
