"""CPU of the core tier at 500 facts: the injection text, one fact created and deleted, five facts merged.

    python -m benchmarks.facts [--times 1]

Each is the best of several rounds, beside a baseline in the same process: what the same work costs when the whole
memory is one JSON document that is copied, changed and written, as agents commonly keep it. The exit code is 1 when a
ratio is more than so many `--times` its goal.
"""

import copy
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from benchmarks.measuring import Row, options, verdict
from memory.config import MemoryConfig
from memory.context.tokens import count_tokens
from memory.facts.applying import apply
from memory.facts.changes import Change, Extraction
from memory.facts.fact import Fact
from memory.facts.fact_set import FactSet
from memory.facts.store import FactStore
from memory.injection.block import format_memory_for_injection
from memory.namespaces import Owner

FACTS = 500
ROUNDS = 7
NOW = "2026-01-01T00:00:00+00:00"
CONFIG = MemoryConfig(max_facts=2 * FACTS)
ADA = Owner.of("ada")


def content(number: int) -> str:
    return f"User has been to harbour number {number}, liked the boats there and wants to go again in May {number}"


def filled(store: BaseStore) -> FactStore:
    facts = FactStore(store, "ada", config=CONFIG)
    for number in range(FACTS):
        facts.create(content(number), "knowledge", number / FACTS)
    return facts


def best(work: Callable[[], Any]) -> float:
    """Return the least milliseconds of CPU that the work took."""
    times = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        times.append(1000 * (time.process_time() - started))
    return min(times)


def format_all(facts: list[Fact]) -> Callable[[], Any]:
    return lambda: format_memory_for_injection({"facts": facts}, 2000, count_tokens)


def create_and_delete(facts: FactStore) -> Callable[[], Any]:
    return lambda: facts.delete(facts.create("User likes tea", "preference", 0.9).id)


def merge(facts: list[Fact]) -> Callable[[], Any]:
    rows = {fact.id: fact for fact in facts}
    changes = tuple(Change(action="new", content=f"User met captain {number}", sources=("m",)) for number in range(5))
    extraction = Extraction(changes=changes)
    return lambda: apply(FactSet(ADA, rows, config=CONFIG, now=NOW), extraction, "t")


def rewrite_document(path: Path, facts: list[Fact]) -> Callable[[], Any]:
    """The baseline: read the document, copy it, add and remove a fact, write it durably, twice."""
    path.write_text(json.dumps({"facts": [asdict(fact) for fact in facts]}))

    def once() -> None:
        for _ in range(2):
            document = copy.deepcopy(json.loads(path.read_text()))
            known = {fact["content"].casefold() for fact in document["facts"]}
            document["facts"] += [{"content": "User likes tea"}] if "user likes tea" not in known else []
            with path.open("w") as file:
                json.dump(document, file, indent=2)
                file.flush()
                os.fsync(file.fileno())

    return once


def main() -> int:
    """Measure, print the table, and return the exit code."""
    times = options(__doc__).parse_args().times
    in_memory = filled(InMemoryStore())
    facts = in_memory.list()
    count_tokens("load the tokenizer")
    with tempfile.TemporaryDirectory() as folder, SqliteStore.from_conn_string(f"{folder}/store.sqlite") as store:
        store.setup()
        on_disk = filled(store)
        rewritten = best(rewrite_document(Path(folder) / "memory.json", facts))
        copied = best(lambda: copy.deepcopy([asdict(fact) for fact in facts]))

        def row(measure: str, work: Callable[[], Any], baseline: float, goal: float) -> Row:
            ours, what = best(work), "rewritten" if baseline is rewritten else "copied"
            return Row(measure, f"{ours:.2f} ms", f"{baseline:.2f} ms ({what})", ours / baseline, goal)

        rows = [
            row("injection text, first time", format_all(facts), copied, 0.25),
            row("merge 5 facts, pure", merge(facts), copied, 0.35),
            row("create and delete, in memory", create_and_delete(in_memory), rewritten, 0.5),
            row("create and delete, SQLite", create_and_delete(on_disk), rewritten, 1.0),
        ]
    return verdict(rows, times)


if __name__ == "__main__":
    sys.exit(main())
