"""The parts of `benchmarks.quality`: what ours and peers find of one conversation, as rows."""

import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from langchain_core.embeddings import Embeddings

from benchmarks import quality_peers
from benchmarks.quality_data import Question, Talk
from benchmarks.quality_memory import Held, evidence_of
from benchmarks.quality_report import SEED, Rows, share
from memory.context.tokens import count_tokens
from memory.facts.fact import Fact
from memory.injection.block import fact_line
from memory.recall import Document, Hit, Index
from memory.recall.user_index import Recalled
from memory.recall.vectors import QueryVector, VectorIndex, packed

BUDGETS = (500, 1000, 2000)
# Of a session's worth: what a fact counts beside a turn, each further hit beside the one before, and its whole text.
_FACT, _LATER, _WHOLE = 0.7, 0.3, 0.2


class Recall:
    """Ours over messages alone: an index, asked with or without vectors."""

    def __init__(self, documents: Iterable[Document], embeddings: Embeddings | None) -> None:
        kept = list(documents)
        self.index = Index(kept)
        self._embeddings = embeddings
        self._vectors: VectorIndex | None = None
        if embeddings is not None and kept:
            vectors = embeddings.embed_documents([each.text for each in kept])
            told = {each.id: packed(vector) for each, vector in zip(kept, vectors, strict=True)}
            self._vectors = VectorIndex("bench", told)

    def rank(self, question: str) -> list[Hit]:
        if self._embeddings is None or self._vectors is None:
            return self.index.rank(question)
        query = QueryVector.of("bench", self._embeddings.embed_query(question))
        return self.index.rank(question, similarity=self._vectors.similarity(query))


def line_of(document: Document) -> str:
    """Return a document as a prompt would show it."""
    if document.kind == "fact":
        return fact_line(Fact(content=document.text, category="knowledge", confidence=0.8))
    return f"- {document.when[:10]} {document.who}: {document.text}"


def measure_facts(rows: Rows, talk: Talk, who: str, embeddings: Embeddings | None) -> None:
    """Add what ours finds and shows of the facts: by a search, and in a prompt without past turns."""
    alone, held = (Held(talk, embeddings, with_turns=with_turns) for with_turns in (False, True))
    told = _told(talk)
    for question in talk.questions:
        if not (needed := question.evidence & told):
            continue
        hits = [hit for hit in held.recall(question.text).hits if hit.document.kind == "fact"]
        for budget in BUDGETS:
            value = share(needed, held.shown(Recalled(hits), budget))
            rows.add(f"facts' evidence in {budget} tokens", who, talk.name, value)
        first = evidence_of([hit.document.id for hit in hits[:10]], held.evidence)
        rows.add("facts' evidence, R@10", who, talk.name, share(needed, first))
        rows.add("FactStore.search, R@10", who, talk.name, share(needed, alone.search(question.text, 10)))


def measure_all(rows: Rows, talk: Talk, who: str, embeddings: Embeddings | None) -> None:
    """Add what ours finds of turns and sessions, among facts and past turns."""
    held = Held(talk, embeddings, with_turns=True)
    session = {turn.id: turn.session for turn in talk.turns}
    whole = Index(_whole_sessions(talk))
    for question in talk.questions:
        recalled = held.recall(question.text)
        turns = [hit.document.id for hit in recalled.hits if hit.document.kind == "turn"]
        add_turns(rows, talk, who, question, [each for line in turns for each in held.evidence[line]])
        add_sessions(rows, talk, who, question, _worth_by_scores(held, session, recalled, whole.rank(question.text)))


def _told(talk: Talk) -> set[str]:
    """Return the turns that facts were taken from."""
    return {source for fact in talk.facts for source in fact.sources}


def fitting(ranked: Iterable[Document], budget: int) -> list[str]:
    """Return what the best fill so many tokens with, one that is too long for what is left passed over, as ids."""
    chosen = []
    for document in ranked:
        if (price := count_tokens(line_of(document) + "\n")) <= budget:
            budget -= price
            chosen.append(document.id)
    return chosen


def add_turns(rows: Rows, talk: Talk, who: str, question: Question, ranked: Sequence[str]) -> None:
    rows.add("turns, R@10", who, talk.name, share(question.evidence, ranked[:10]))


def add_sessions(rows: Rows, talk: Talk, who: str, question: Question, worth: Mapping[str, float]) -> None:
    sessions = sorted(worth, key=lambda name: (-worth[name], name))
    needed = {turn.session for turn in talk.turns if turn.id in question.evidence}
    rows.add("sessions, R@10", who, talk.name, share(needed, sessions[:10]))
    rows.add("sessions, any hit@5", who, talk.name, float(bool(needed & set(sessions[:5]))))


def _whole_sessions(talk: Talk) -> list[Document]:
    """Return each session as one document."""
    said: dict[str, list[Document]] = {}
    for turn in talk.turns:
        said.setdefault(turn.session, []).append(turn)
    return [
        Document(id=name, text="\n".join(f"{turn.who}: {turn.text}" for turn in turns), when=turns[0].when)
        for name, turns in said.items()
    ]


def _worth_by_scores(
    held: Held, session: Mapping[str, str], recalled: Recalled, whole: Sequence[Hit]
) -> dict[str, float]:
    """Return how good sessions are: by their best turns and facts, and by what they say as a whole."""
    scores: dict[str, list[float]] = {}
    best = recalled.hits[0].score if recalled.hits else 1.0
    for hit in recalled.hits:
        weight = (1.0 if hit.document.kind == "turn" else _FACT) * (hit.score / best)
        for name in {session[turn] for turn in held.evidence[hit.document.id] if turn in session}:
            scores.setdefault(name, []).append(weight**2)
    worth = {
        name: sum(each * _LATER**place for place, each in enumerate(sorted(found, reverse=True)))
        for name, found in scores.items()
    }
    most = max(worth.values(), default=1.0)
    for hit in whole:
        worth[hit.document.id] = worth.get(hit.document.id, 0.0) + _WHOLE * most * hit.score / whole[0].score
    return worth


def _worth_by_places(ranked: Sequence[str], session: Mapping[str, str]) -> dict[str, float]:
    """Return how good sessions are where only the order of their turns is known."""
    found: dict[str, list[float]] = {}
    for place, turn in enumerate(ranked[:100]):
        found.setdefault(session[turn], []).append(1 / (10 + place))
    # A session is as good as its best turns, each later one counting half of the one before.
    return {name: sum(each / 2**later for later, each in enumerate(places)) for name, places in found.items()}


def measure_peer(rows: Rows, talk: Talk, who: str, peer: quality_peers.Peer) -> None:
    """Add what a peer finds among the facts."""
    rank, told = peer(talk.facts), _told(talk)
    facts = {each.id: each for each in talk.facts}
    sources = {each.id: frozenset(each.sources) for each in talk.facts}
    for question in talk.questions:
        if not (needed := question.evidence & told):
            continue
        ranked = rank(question.text)
        for budget in BUDGETS:
            chosen = fitting(map(facts.__getitem__, ranked), budget)
            rows.add(f"facts' evidence in {budget} tokens", who, talk.name, share(needed, evidence_of(chosen, sources)))
        rows.add("facts' evidence, R@10", who, talk.name, share(needed, evidence_of(ranked[:10], sources)))


def measure_fts5(rows: Rows, talk: Talk) -> None:
    """Add what FTS5 finds of turns and sessions among everything."""
    every = (*talk.facts, *talk.turns)
    by_id = {each.id: each for each in every}
    rank, session = quality_peers.fts5(every), {turn.id: turn.session for turn in talk.turns}
    for question in talk.questions:
        ranked = [by_id[each] for each in rank(question.text)]
        turns = [each.id for each in ranked if each.kind == "turn"]
        add_turns(rows, talk, "FTS5", question, turns)
        add_sessions(rows, talk, "FTS5", question, _worth_by_places(turns, session))


def measure_chat(rows: Rows, talk: Talk, who: str, embeddings: Embeddings | None) -> None:
    """Add what ours finds of a long chat with an assistant."""
    recall = Recall(talk.turns, embeddings)
    _add_chat(rows, talk, who, lambda question: with_standing(recall, question))


def measure_chat_fts5(rows: Rows, talk: Talk) -> None:
    """Add what FTS5 finds of one."""
    _add_chat(rows, talk, "FTS5", quality_peers.fts5(talk.turns))


def _add_chat(rows: Rows, talk: Talk, who: str, find: Callable[[str], list[str]]) -> None:
    for question in talk.questions:
        value = share(question.evidence, find(question.text)[:10])
        rows.add("BEAM messages, R@10", who, talk.name, value)
        if question.kind == "instruction_following":
            rows.add("BEAM instructions, R@10", who, talk.name, value)


def with_standing(recall: Recall, question: str) -> list[str]:
    """Return what a prompt would show: standing instructions that fit, then what was found."""
    hits = recall.rank(question)
    standing = [each.id for each in recall.index.standing(hits)[:2]]
    return list(dict.fromkeys([*standing, *(hit.document.id for hit in hits)]))


def measure_cost(rows: Rows, talks: Sequence[Talk]) -> None:
    """Add the CPU time of choosing among 500 facts and 5,000 turns by words, and what their index takes."""
    turns: list[Document] = []
    facts: list[Document] = []
    for copy in range(3):
        for talk in talks:
            name = f"{copy}.{talk.name}."
            for each in (*talk.turns, *talk.facts):
                kept = turns if each.kind == "turn" else facts
                kept.append(
                    Document(
                        id=name + each.id,
                        text=each.text,
                        when=each.when,
                        who=each.who,
                        session=name + each.session,
                        place=each.place,
                        kind=each.kind,
                        sources=tuple(name + source for source in each.sources),
                    )
                )
    index = Index([*random.Random(SEED).sample(facts, min(500, len(facts))), *turns[:5000]])
    questions = [question.text for talk in talks for question in talk.questions]
    times = []
    for question in random.Random(SEED).sample(questions, min(200, len(questions))):
        started = time.process_time()
        index.coverage(question)
        index.rank(question)
        times.append(1000 * (time.process_time() - started))
    p95 = sorted(times)[round(0.95 * len(times)) - 1]
    held = f"{min(500, len(facts))} facts and {min(5000, len(turns)):,} past turns"
    rows.notes.append(
        f"Choosing among {held} by words: {statistics.median(times):.1f} ms of CPU in the median, {p95:.1f} ms at p95 "
        f"(goal: at most 6 ms), n={len(times)}. Their index takes {index.size() / 1e6:.1f} MB with the texts."
    )
