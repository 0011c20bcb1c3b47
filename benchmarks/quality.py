"""How much of what answers a question recall finds, beside peers; no model is asked, and nothing is judged.

    python -m benchmarks.quality DATA [--embedder local|none] [--write docs/recall.md]

DATA holds public conversations (`benchmarks.quality_data`). Every row has its n, its goal and a bootstrap 95 % interval
over questions. The parameters of recall were chosen on the first three LoCoMo conversations and the first four BEAM
chats; the last table shows the others apart.
"""

import argparse
import asyncio
import random
import re
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from langchain_core.embeddings import Embeddings

from benchmarks import quality_peers
from benchmarks.measuring import progress
from benchmarks.quality_data import Question, Talk, beam, locomo
from benchmarks.quality_graph import measure_graph
from benchmarks.quality_plot import plot
from benchmarks.quality_report import OURS, SEED, WITH, Rows, report
from graphs.embedders import embedder_of
from graphs.settings import Settings
from memory.context.tokens import count_tokens, shared_counter
from memory.injection.block import fact_line
from memory.recall import Document, Hit, Index, choose
from memory.recall.vectors import QueryVector, VectorIndex, packed

BUDGETS = (500, 1000, 2000)
# It takes minutes a talk: asked about the first two, as its n says.
SLOW = {"mem0, infer=False"}
SLOW_TALKS = 2
_PLACE = re.compile(r"(<!-- benchmark: quality -->\n).*?(<!-- end -->)", re.DOTALL)


class KeptEmbeddings(Embeddings):
    """An embedder whose vectors are kept in a file: peers and repeated runs ask for the same texts."""

    def __init__(self, name: str, inner: Embeddings, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._name, self._inner = name, inner
        self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._file.execute("CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector TEXT)")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._kept("document", text, lambda text: self._inner.embed_documents([text])[0]) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._kept("query", text, self._inner.embed_query)

    def _kept(self, kind: str, text: str, embed: Callable[[str], list[float]]) -> list[float]:
        key = sha256(f"{self._name}\0{kind}\0{text}".encode()).hexdigest()
        row = self._file.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        if row is None:
            vector = embed(text)
            self._file.execute(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?)", (key, " ".join(f"{each:.6g}" for each in vector))
            )
            return vector
        return [float(each) for each in row[0].split()]


class Recall:
    """Ours: an index over a talk, asked with or without vectors."""

    def __init__(self, documents: Iterable[Document], embeddings: Embeddings | None) -> None:
        kept = list(documents)
        self.index = Index.of(kept)
        self._embeddings = embeddings
        self._vectors = None if embeddings is None else VectorIndex("bench")
        if embeddings is not None and self._vectors is not None:
            vectors = embeddings.embed_documents(
                [f"{each.who}: {each.text}" if each.who else each.text for each in kept]
            )
            self._vectors.put({each.id: packed(vector) for each, vector in zip(kept, vectors, strict=True)})

    def rank(self, question: str) -> list[Hit]:
        if self._embeddings is None or self._vectors is None:
            return self.index.rank(question)
        query = QueryVector.of("bench", self._embeddings.embed_query(question))
        return self.index.rank(question, similarity=self._vectors.similarity(query))


def line_of(document: Document) -> str:
    """Return a document as a prompt would show it."""
    if document.kind == "fact":
        return fact_line({"content": document.text, "category": "knowledge", "confidence": 0.8})
    return f"- {document.when[:10]} {document.who}: {document.text}"


def tokens_of(document: Document) -> int:
    return count_tokens(line_of(document) + "\n")


def share(needed: Iterable[str], found: Iterable[str]) -> float:
    wanted, there = set(needed), set(found)
    return len(wanted & there) / len(wanted)


def evidence_of(documents: Iterable[Document]) -> set[str]:
    return {each for document in documents for each in (document.sources or (document.id,))}


def measure_locomo(rows: Rows, talk: Talk, who: str, recall: Recall) -> None:
    """Add what one talk says about ours: facts alone, everything, turns and sessions."""
    told = evidence_of(talk.facts)
    session = {turn.id: turn.session for turn in talk.turns}
    for question in talk.questions:
        hits = recall.rank(question.text)
        facts = [hit for hit in hits if hit.document.kind == "fact"]
        turns = [hit for hit in hits if hit.document.kind == "turn"]
        add_facts(rows, talk, who, question, [hit.document for hit in facts], told)
        for budget in BUDGETS:
            chosen = choose(hits, budget=budget, cost=tokens_of)
            rows.add(f"all evidence in {budget} tokens", who, talk.name, share(question.evidence, evidence_of(chosen)))
        add_turns(rows, talk, who, question, [hit.document.id for hit in turns], session)


def add_facts(rows: Rows, talk: Talk, who: str, question: Question, ranked: Sequence[Document], told: set[str]) -> None:
    needed = question.evidence & told
    if not needed:
        return
    hits = [Hit(document, 0.0) for document in ranked]
    for budget in BUDGETS:
        chosen = choose(hits, budget=budget, cost=tokens_of)
        rows.add(f"facts' evidence in {budget} tokens", who, talk.name, share(needed, evidence_of(chosen)))
    rows.add("facts' evidence, R@10", who, talk.name, share(needed, evidence_of(ranked[:10])))


def add_turns(
    rows: Rows, talk: Talk, who: str, question: Question, ranked: Sequence[str], session: Mapping[str, str]
) -> None:
    rows.add("turns, R@10", who, talk.name, share(question.evidence, ranked[:10]))
    found: dict[str, list[float]] = {}
    for place, turn in enumerate(ranked[:100]):
        found.setdefault(session[turn], []).append(1 / (10 + place))
    # A session is as good as its best turns, each later one counting half of the one before.
    worth = {name: sum(each / 2**later for later, each in enumerate(places)) for name, places in found.items()}
    sessions = sorted(worth, key=lambda name: (-worth[name], name))
    needed = {session[turn] for turn in question.evidence}
    rows.add("sessions, R@10", who, talk.name, share(needed, sessions[:10]))
    rows.add("sessions, any hit@5", who, talk.name, float(bool(needed & set(sessions[:5]))))


def measure_peers(rows: Rows, talk: Talk, peers: Mapping[str, quality_peers.Peer]) -> None:
    """Add what the peers find among the facts; of FTS5, also what it finds among everything."""
    told = evidence_of(talk.facts)
    by_id = {each.id: each for each in (*talk.facts, *talk.turns)}
    for who, peer in peers.items():
        rank = peer(talk.facts)
        for question in talk.questions:
            add_facts(rows, talk, who, question, [by_id[each] for each in rank(question.text)], told)
    rank, session = quality_peers.fts5((*talk.facts, *talk.turns)), {turn.id: turn.session for turn in talk.turns}
    for question in talk.questions:
        ranked = [by_id[each] for each in rank(question.text)]
        for budget in BUDGETS:
            left, chosen = budget, []
            for document in ranked:
                if (price := tokens_of(document)) <= left:
                    left -= price
                    chosen.append(document)
            rows.add(
                f"all evidence in {budget} tokens", "FTS5", talk.name, share(question.evidence, evidence_of(chosen))
            )
        add_turns(rows, talk, "FTS5", question, [each.id for each in ranked if each.kind == "turn"], session)


def measure_beam(rows: Rows, talk: Talk, who: str, find: Callable[[str], list[str]]) -> None:
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
    """Add the CPU time of ranking 500 facts and 5,000 turns by words, and what their index takes."""
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
    index = Index.of([*random.Random(SEED).sample(facts, min(500, len(facts))), *turns[:5000]])
    questions = [question.text for talk in talks for question in talk.questions]
    times = []
    for question in random.Random(SEED).sample(questions, min(200, len(questions))):
        started = time.process_time()
        index.rank(question)
        times.append(1000 * (time.process_time() - started))
    p95 = sorted(times)[round(0.95 * len(times)) - 1]
    held = f"{min(500, len(facts))} facts and {min(5000, len(turns)):,} past turns"
    rows.notes.append(
        f"Ranking {held} by words: {statistics.median(times):.1f} ms of CPU in the median, {p95:.1f} ms at p95 "
        f"(goal: at most 15 ms), n={len(times)}. Their index takes {index.size() / 1e6:.1f} MB beside the texts."
    )


def main() -> int:
    """Measure, print the tables, and return the exit code: 1 when a goal is missed, 0 also where there are no data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--embedder", default="local")
    parser.add_argument("--vectors", type=Path, default=Path(".palimpsest/bench-vectors.sqlite"))
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    talks = locomo(options.data)
    if not talks:
        print(f"Skipped: {options.data} holds no locomo/*.json. DATA=DIR names the folder with the conversations.")
        return 0
    shared_counter().tokenizer.warm_up()
    rows = Rows()
    embeddings = _embeddings(options.embedder, options.vectors, rows)
    peers = _peers(embeddings, rows)
    for number, talk in enumerate(talks):
        progress(f"{talk.name}: {len(talk.questions)} questions")
        measure_locomo(rows, talk, OURS, Recall((*talk.turns, *talk.facts), None))
        if embeddings is not None:
            measure_locomo(rows, talk, WITH, Recall((*talk.turns, *talk.facts), embeddings))
        asked = {who: peer for who, peer in peers.items() if number < SLOW_TALKS or who not in SLOW}
        measure_peers(rows, talk, asked)
        asyncio.run(measure_graph(rows, talk, BUDGETS))
    for talk in beam(options.data):
        progress(f"{talk.name}: {len(talk.questions)} questions")
        for who, inner in ((OURS, None), (WITH, embeddings)):
            if who == OURS or inner is not None:
                recall = Recall(talk.turns, inner)
                measure_beam(rows, talk, who, lambda question, recall=recall: with_standing(recall, question))  # type: ignore[misc]
        measure_beam(rows, talk, "FTS5", quality_peers.fts5(talk.turns))
    measure_cost(rows, talks)
    text = report(rows)
    print(text)
    if options.write:
        page = options.write.read_text("utf-8")
        options.write.write_text(_PLACE.sub(lambda found: f"{found[1]}{text}\n{found[2]}", page), "utf-8")
        means = {
            who: [rows.mean(f"facts' evidence in {budget} tokens", who) for budget in BUDGETS]
            for who in rows.values["facts' evidence in 500 tokens"]
        }
        options.write.with_suffix(".svg").write_text(plot(means, BUDGETS), "utf-8")
    return 1 if "| missed |" in text else 0


def _embeddings(name: str, vectors: Path, rows: Rows) -> Embeddings | None:
    embedder = embedder_of(Settings(embedder=name))
    if embedder is None:
        rows.notes.append("Without an embedder: `--embedder none`.")
        return None
    try:
        return KeptEmbeddings(embedder.name, embedder.start().result(), vectors)
    except Exception as error:
        rows.notes.append(f"Without an embedder: {error}.")
        return None


def _peers(embeddings: Embeddings | None, rows: Rows) -> dict[str, quality_peers.Peer]:
    peers = {"confidence order": quality_peers.by_confidence(SEED), "FTS5": quality_peers.fts5}
    if embeddings is None:
        rows.notes.append("InMemoryStore, langgraph-memory and mem0 need an embedder, and were not measured.")
        return peers
    peers["InMemoryStore"] = quality_peers.stores(embeddings)
    for who, package, peer in (
        ("langgraph-memory", "langgraph_memory", quality_peers.langgraph_memory(embeddings)),
        ("mem0, infer=False", "mem0", quality_peers.mem0(embeddings, len(embeddings.embed_query("dimensions")))),
    ):
        if reason := quality_peers.missing(package):
            rows.notes.append(f"{who} was not measured: {reason}.")
        else:
            peers[who] = peer
    return peers


if __name__ == "__main__":
    sys.exit(main())
