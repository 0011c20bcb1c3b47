"""Run real conversations through extraction and print what was created and refused, with reasons.

    python -m benchmarks.extraction conversation.json --turns 40
    python -m benchmarks.extraction dataset.jsonl --texts 40

The model is the deployment's own (PALIMPSEST_MEMORY_MODEL or PALIMPSEST_MODEL); with PALIMPSEST_MODEL=local,
PALIMPSEST_LOCAL_BASE_URL says where `python -m graphs.local.server` listens.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.store.memory import InMemoryStore

from graphs.models import load_chat_model
from graphs.settings import Settings
from memory.config import Category
from memory.extraction.answer import ExtractionError
from memory.extraction.extraction import extract_facts
from memory.facts.changes import Extraction, Outcome
from memory.facts.profile import texts_of
from memory.facts.store import FactStore
from memory.facts.words import words
from memory.message import StoredMessage

# How the types of memories in MemPalace's set of 40 texts map to our categories.
CATEGORY_OF: Mapping[str, Category] = {
    "preference": "preference",
    "fact": "knowledge",
    "opinion": "preference",
    "decision": "context",
    "commitment": "goal",
}
FOUND = 0.5
"""A labelled memory counts as found when a fact holds this share of its words."""


@dataclass(frozen=True)
class Update:
    """Some messages that are extracted together, and what a reader would keep of them, by type."""

    name: str
    messages: list[StoredMessage]
    labels: list[tuple[str, str]]


def locomo(path: Path, turns: int, size: int) -> Iterator[Update]:
    """Yield a LoCoMo conversation in pieces; its first speaker is the user."""
    conversation = json.loads(path.read_text())["conversation"]
    user = conversation["speaker_a"]
    messages: list[StoredMessage] = []
    for number in range(1, 100):
        session = conversation.get(f"session_{number}")
        if session is None:
            break
        start = datetime.strptime(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        for at, turn in enumerate(session):
            when = (start + timedelta(minutes=at)).replace(tzinfo=UTC).isoformat()
            role = "user" if turn["speaker"] == user else "assistant"
            messages.append(StoredMessage(turn["dia_id"], role, turn["text"], when))  # type: ignore[arg-type]
    for first in range(0, min(turns, len(messages)), size):
        yield Update(f"turns {first}-{first + size - 1}", messages[first : first + size], [])


def texts(path: Path, count: int) -> Iterator[Update]:
    """Yield the texts of the set of 40, each as one message of the user, with its labels."""
    labels = {each["id"]: each["memories"] for each in lines(path.with_name("labels.jsonl"))}
    for each in islice(lines(path), count):
        message = StoredMessage(each["id"], "user", each["text"], "2026-05-08T10:00:00+00:00")
        yield Update(each["id"], [message], [(label["type"], label["content"]) for label in labels[each["id"]]])


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file with one JSON object a line."""
    for line in path.read_text().splitlines():
        if line.strip():
            yield json.loads(line)


def show(update: Update, extraction: Extraction, applied: Outcome, facts: FactStore, seconds: float) -> None:
    """Print what was said, and what became of it."""
    print(f"\n== {update.name} ({seconds:.0f} s)")
    for message in update.messages:
        print(f"   {message.role}: {message.text}")
    for fact_id in applied.created:
        fact = next((each for each in facts.list() if each.id == fact_id), None)
        print(f" + [{fact.category} | {fact.confidence:.2f}] {fact.content}" if fact else f" + {fact_id} (evicted)")
    print(f" = confirmed {len(applied.confirmed)}, superseded {len(applied.superseded)}")
    for refusal in applied.refused:
        print(f" - {refusal.reason}: {refusal.content}")
    for section in extraction.profile:
        print(f" ~ {section.name}: {section.text}")


def labels_found(update: Update, facts: FactStore, applied: Outcome) -> Iterator[tuple[bool, bool]]:
    """Yield for each label whether a fact says it, and whether that fact has its category."""
    created = [fact for fact in facts.list() if fact.id in applied.created]
    for kind, content in update.labels:
        wanted = words(content)
        best = max(created, key=lambda fact: len(words(fact.content) & wanted), default=None)
        found = best is not None and len(words(best.content) & wanted) >= FOUND * len(wanted)
        yield found, bool(found and best and best.category == CATEGORY_OF[kind])


def run(update: Update, model: BaseChatModel, facts: FactStore, timeout: float) -> tuple[Extraction, Outcome]:
    """Extract one update with what is known so far, and apply it."""
    known = facts.snapshot()
    config = replace(facts.config, model_timeout_seconds=timeout)
    profile = texts_of(known.profile)
    extraction = extract_facts(model, update.messages, existing=known.facts, profile=profile, config=config)
    applied = facts.apply(extraction, thread_id="t", epoch=known.epoch, now=datetime.now(UTC).isoformat())
    return extraction, applied


def counts(applied: Outcome) -> Counter[str]:
    """Return what one update did, in numbers."""
    done = {"created": applied.created, "confirmed": applied.confirmed, "superseded": applied.superseded}
    numbers = Counter({name: len(ids) for name, ids in done.items()})
    numbers.update(f"refused {refusal.reason}" for refusal in applied.refused)
    return numbers


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--turns", type=int, default=40, help="turns of a LoCoMo conversation")
    parser.add_argument("--size", type=int, default=8, help="turns extracted together")
    parser.add_argument("--texts", type=int, default=40, help="texts of the set of 40")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one call")
    return parser.parse_args()


def main() -> None:
    """Run every update and print the totals."""
    chosen = options()
    settings = Settings.from_environment()
    model = load_chat_model(settings.memory_model, settings, purpose="memory")
    is_set = chosen.path.suffix == ".jsonl"
    updates = texts(chosen.path, chosen.texts) if is_set else locomo(chosen.path, chosen.turns, chosen.size)
    store, totals, seconds = InMemoryStore(), Counter[str](), []
    for update in updates:
        facts = FactStore(store, update.name if is_set else "reader", config=settings.memory)
        started = time.perf_counter()
        try:
            extraction, applied = run(update, model, facts, chosen.timeout)
        except (ExtractionError, TimeoutError) as error:
            print(f"\n== {update.name}: {type(error).__name__}: {error}")
            totals["failed"] += 1
            continue
        seconds.append(time.perf_counter() - started)
        show(update, extraction, applied, facts, seconds[-1])
        totals += counts(applied)
        for found, has_category in labels_found(update, facts, applied):
            totals.update({"labels": 1, "labels found": found, "labels found with the category": has_category})
    print("\n" + "\n".join(f"{count:5} {name}" for name, count in sorted(totals.items())))
    print(f"{sum(seconds) / max(1, len(seconds)):5.1f} s an update, {len(seconds)} updates")


if __name__ == "__main__":
    main()
