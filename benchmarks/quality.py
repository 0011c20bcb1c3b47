"""How much of what answers a question recall finds, beside peers; no model is asked, and nothing is judged.

    python -m benchmarks.quality DATA [--embedder local|none] [--write measured/recall.md]

DATA holds public conversations (`benchmarks.quality_data`). Every row has its n, its goal and a bootstrap 95 % interval
over questions. The parameters of recall were chosen on the first three LoCoMo conversations and the first four BEAM
chats; the last table shows the others apart. A run that was stopped goes on where it was: what is done is kept in
`.palimpsest/bench-quality.sqlite` until the data or a source that decides it change.
"""

import argparse
import asyncio
import random
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import quality_peers
from benchmarks.measuring import keep, why_not_counted
from benchmarks.quality_data import Talk, beam, locomo
from benchmarks.quality_graph import measure_cached, measure_prompts
from benchmarks.quality_kept import KeptEmbeddings, KeptParts, fingerprint
from benchmarks.quality_measures import (
    BUDGETS,
    measure_all,
    measure_chat,
    measure_chat_fts5,
    measure_cost,
    measure_facts,
    measure_fts5,
    measure_peer,
)
from benchmarks.quality_plot import plot
from benchmarks.quality_report import OURS, SEED, WITH, Rows, report
from benchmarks.quality_turns import measure_chat_turns, measure_peer_turns, measure_silence, measure_turns, unrelated
from graphs.process.embedders import embedder_of
from graphs.settings import Settings
from memory.context.tokens import Tokenizer, shared_counter

# It takes minutes a talk: asked about the first two, as its n says.
SLOW = {"mem0, infer=False"}
SLOW_TALKS = 2
STRANGERS = 20  # so many questions of others are asked of each chat
_HOUSE = Path(__file__).parents[1]
_OURS = (
    "memory/recall",
    "memory/injection",
    "memory/screening",
    "graphs/process/recalling.py",
    "graphs/turn/prompt.py",
)
"""What decides what is found and shown."""
_MEASURES = [_HOUSE / "benchmarks" / f"quality_{name}.py" for name in ("measures", "turns")]


class Part(NamedTuple):
    """A part of a run, measured by itself; that of a peer does not change with our sources."""

    name: str
    work: Callable[[Rows], object]
    is_peer: bool = False


def parts_of(
    talks: Sequence[Talk],
    chats: Sequence[Talk],
    embeddings: KeptEmbeddings | None,
    peers: Mapping[str, quality_peers.Peer],
) -> Iterator[Part]:
    """Return the parts of a run, those that are quick first."""
    ours = [(OURS, None), *([(WITH, embeddings)] if embeddings else [])]
    for number, talk in enumerate(talks):
        for who, inner in ours:
            yield Part(f"facts of {talk.name}, {who}", partial(measure_facts, talk=talk, who=who, embeddings=inner))
            yield Part(f"all of {talk.name}, {who}", partial(measure_all, talk=talk, who=who, embeddings=inner))
        for who, peer in peers.items():
            if number < SLOW_TALKS or who not in SLOW:
                yield Part(f"facts of {talk.name}, {who}", partial(measure_peer, talk=talk, who=who, peer=peer), True)
        yield Part(f"all of {talk.name}, FTS5", partial(measure_fts5, talk=talk), True)
        yield from _turns_of(talk, embeddings, unrelated(chats)[number :: len(talks)])
    questions = [each.text for talk in talks for each in talk.questions]
    strangers = random.Random(SEED).sample(questions, min(STRANGERS * len(chats), len(questions)))
    for number, talk in enumerate(chats):
        for who, inner in ours:
            yield Part(f"{talk.name}, {who}", partial(measure_chat, talk=talk, who=who, embeddings=inner))
            turns = partial(measure_chat_turns, talk=talk, who=who, embeddings=inner, budget=BUDGETS[-1])
            work = partial(_finished, partial(turns, others=strangers[number :: len(chats)]))
            yield Part(f"turns of {talk.name}, {who}", work)
        yield Part(f"{talk.name}, FTS5", partial(measure_chat_fts5, talk=talk), True)
    for talk in talks:
        for who, inner in ours:
            for kind, with_turns in (("facts", False), ("everything", True)):
                prompts = partial(measure_prompts, talk=talk, who=who, embeddings=inner, budgets=BUDGETS)
                work = partial(_finished, partial(prompts, with_turns=with_turns))
                yield Part(f"prompts of {talk.name}, {kind}, {who}", work)
            cached = partial(measure_cached, talk=talk, who=who, embeddings=inner)
            yield Part(f"cached prompts of {talk.name}, {who}", partial(_finished, cached))
    yield Part("cost", partial(measure_cost, talks=talks))


def _turns_of(talk: Talk, embeddings: KeptEmbeddings | None, others: Sequence[str]) -> Iterator[Part]:
    """Return the parts that ask the shipped graph about a talk between a user and an assistant, and peers."""
    for who, inner in ((OURS, None), *([(WITH, embeddings)] if embeddings else [])):
        turns = partial(measure_turns, talk=talk, who=who, embeddings=inner, budgets=BUDGETS)
        yield Part(f"turns of {talk.name}, {who}", partial(_finished, turns))
        silence = partial(measure_silence, talk=talk, who=who, embeddings=inner, others=others)
        yield Part(f"silence beside {talk.name}, {who}", partial(_finished, silence))
    peers: dict[str, quality_peers.Peer] = {"FTS5": quality_peers.fts5}
    if embeddings:
        stores = quality_peers.stores(embeddings)
        peers |= {
            "InMemoryStore": stores,
            "FTS5 and InMemoryStore": quality_peers.reciprocal_ranks(*peers.values(), stores),
        }
    for who, peer in peers.items():
        work = partial(measure_peer_turns, talk=talk, who=who, peer=peer, budgets=BUDGETS)
        yield Part(f"turns of {talk.name}, {who}", work, True)


def _finished(measure: Callable[[Rows], Awaitable[None]], rows: Rows) -> None:
    async def work() -> None:
        await measure(rows)

    asyncio.run(work())


def main(arguments: Sequence[str] | None = None, tokenizer: Tokenizer | None = None) -> int:
    """Measure and print the tables.

    Args:
        arguments: As on the command line, where they are read by default.
        tokenizer: What counts; by default that of this process.

    Returns:
        The exit code: 1 when a goal is missed, 2 where tokens cannot be counted, 0 also where there are no data.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--embedder", default="local")
    parser.add_argument("--kept", type=Path, default=Path(".palimpsest"), help="the folder of what is done")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(arguments)
    talks, chats = locomo(options.data), beam(options.data)
    if not talks:
        print(f"Skipped: {options.data} holds no locomo/*.json. DATA=DIR names the folder with the conversations.")
        return 0
    if reason := why_not_counted(tokenizer or shared_counter().tokenizer):
        print(reason, file=sys.stderr)
        return 2
    rows = Rows()
    embeddings = _embeddings(options.embedder, options.kept / "bench-vectors.sqlite", rows)
    peers = _peers(embeddings, rows)
    data = fingerprint([*options.data.glob("locomo/*.json"), *options.data.glob("beam100k/*.json")], options.embedder)
    of_peers = fingerprint([*_MEASURES, *_HOUSE.glob("benchmarks/quality_[dp]*.py")], data)
    of_ours = fingerprint([*(_HOUSE / each for each in _OURS), *_HOUSE.glob("benchmarks/quality_*.py")], data)
    parts = list(parts_of(talks, chats, embeddings, peers))
    kept = KeptParts(options.kept / "bench-quality.sqlite", len(parts))
    for part in parts:
        kept.measure(rows, part.name, of_peers if part.is_peer else of_ours, part.work)
    text = report(rows)
    print(text)
    if options.write:
        keep(options.write, text)
        means = {
            who: [rows.mean(f"all evidence, turns, {budget} tokens", who) for budget in BUDGETS]
            for who in rows.values[f"all evidence, turns, {BUDGETS[0]} tokens"]
        }
        options.write.with_suffix(".svg").write_text(plot(means, BUDGETS), "utf-8")
    return 1 if "| missed |" in text else 0


def _embeddings(name: str, vectors: Path, rows: Rows) -> KeptEmbeddings | None:
    embedder = embedder_of(Settings(embedder=name))
    if embedder is None:
        rows.notes.append("Without an embedder: `--embedder none`.")
        return None
    try:
        return KeptEmbeddings(embedder.name, embedder.start().result(), vectors)
    except Exception as error:
        rows.notes.append(f"Without an embedder: {error}.")
        return None


def _peers(embeddings: KeptEmbeddings | None, rows: Rows) -> dict[str, quality_peers.Peer]:
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
