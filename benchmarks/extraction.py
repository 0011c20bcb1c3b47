"""Run real conversations through extraction and print what was created and refused, with reasons.

    python -m benchmarks.extraction benchmarks/dialogues.jsonl
    python -m benchmarks.extraction extraction40/
    python -m benchmarks.extraction conversation.json --turns 40
    python -m benchmarks.extraction benchmarks/held_out.jsonl --answers answers.json

The first are six dialogues of our own, with facts that must come of them and words that must not stand in one together;
`benchmarks/texts.jsonl` has short texts with labels in the same form. Prompts and rules were made with these two.
`benchmarks/held_out.jsonl` has texts and dialogues that they were not made with. `benchmarks/two_clauses.jsonl` has
sentences that tell of two subjects. The second is the set of 40 texts of MemPalace (`dataset.jsonl`) with its labels
(`labels.jsonl`), the third a conversation of LoCoMo.

`--answers` keeps what the model answered. Rules are then measured again without the model, prompts are not. The model
is the deployment's own (PALIMPSEST_MEMORY_MODEL or PALIMPSEST_MODEL). Without one it is the local model, which is
started unless PALIMPSEST_LOCAL_BASE_URL says where it listens.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.store.memory import InMemoryStore

from benchmarks.answered import AnsweredModel
from graphs.cli.dev import server_environment, wants_local
from graphs.cli.local import start_local_model
from graphs.process.models import load_chat_model
from graphs.settings import Settings, environment
from memory.config import Category, MemoryConfig
from memory.extraction.answer import ExtractionError
from memory.extraction.extraction import extract_facts
from memory.facts.changes import Extraction, Outcome, Refusal
from memory.facts.fact import Fact
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
RATIOS = (
    ("coverage", "labels found", "labels"),
    ("unmatched", "facts that no label tells", "facts"),
    ("category", "labels found with the category", "labels found"),
    ("coverage", "expected found", "expected"),
    ("untrue", "said that must not be", "facts"),
)
FOUND = 0.5
"""A labelled memory counts as found when a fact holds this share of its words, and a fact as labelled the other way
round."""
WHEN = "2026-05-08T10:00:00+00:00"


@dataclass(frozen=True)
class Update:
    """Some messages that are extracted together, and what a reader would keep of them.

    Attributes:
        name: What it is called in the output.
        messages: What was said.
        labels: Memories with their types.
        expected: Words that must stand together in one fact.
        never: Words that must not.
    """

    name: str
    messages: list[StoredMessage]
    labels: list[tuple[str, str]] = field(default_factory=list)
    expected: list[list[str]] = field(default_factory=list)
    never: list[list[str]] = field(default_factory=list)

    @property
    def is_alone(self) -> bool:
        """Whether it is a reader's of its own, who knows nothing of the other updates."""
        return bool(self.labels or self.expected or self.never)


def dialogues(path: Path) -> Iterator[Update]:
    """Yield the dialogues of a file in the form of `benchmarks/dialogues.jsonl`."""
    for each in lines(path):
        said = [StoredMessage(f"{at}", role, text, WHEN) for at, (role, text) in enumerate(each["messages"])]
        labels = [(kind, content) for kind, content in each.get("labels", ())]
        yield Update(each["name"], said, labels, each.get("expected", []), each.get("never", []))


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
        yield Update(f"turns {first}-{first + size - 1}", messages[first : first + size])


def texts(path: Path, count: int) -> Iterator[Update]:
    """Yield the texts of the set of 40, each as one message of the user, with its labels."""
    labels = {each["id"]: each["memories"] for each in lines(path.with_name("labels.jsonl"))}
    for each in islice(lines(path), count):
        message = StoredMessage(each["id"], "user", each["text"], WHEN)
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


def _why_missed(wanted: frozenset[str], facts: Sequence[Fact], refused: Sequence[Refusal]) -> str:
    """Return into which class a label falls that no fact tells."""
    for refusal in refused:
        if len(words(refusal.content) & wanted) >= FOUND * len(wanted):
            return f"missed: refused as {refusal.reason}"
    told = frozenset[str]().union(*(words(fact.content) for fact in facts)) & wanted
    if len(told) >= FOUND * len(wanted):
        return "missed: told by several facts together"
    return "missed: lost detail" if told else "missed: not extracted"


def scores(update: Update, facts: Sequence[Fact], refused: Sequence[Refusal]) -> Counter[str]:
    """Return how many of the labels and expected facts were found, why others were not, and how many are extra."""
    counted = Counter({"facts": len(facts)})
    for kind, content in update.labels:
        wanted, category = words(content), CATEGORY_OF[kind]
        counted["labels"] += 1
        best = max(facts, key=lambda fact: len(words(fact.content) & wanted), default=None)
        if best is None or len(words(best.content) & wanted) < FOUND * len(wanted):
            counted[_why_missed(wanted, facts, refused)] += 1
            continue
        has_category = best.category == category
        counted.update({"labels found": 1, "labels found with the category": has_category})
        counted[f"{category} taken for {best.category}"] += not has_category
    labels = [words(content) for _, content in update.labels]
    for fact in facts:
        own = words(fact.content)
        is_labelled = any(len(own & label) >= FOUND * min(len(own), len(label)) for label in labels)
        counted["facts that no label tells"] += bool(labels) and not is_labelled
    contents = [fact.content.casefold() for fact in facts]
    for together in update.expected:
        found = any(all(word in content for word in together) for content in contents)
        counted.update({"expected": 1, "expected found": found})
        if not found:
            print(f" ! missing: {', '.join(together)}")
    for together in update.never:
        wrong = sum(all(word in content for word in together) for content in contents)
        counted.update({"never": 1, "said that must not be": wrong})
        if wrong:
            print(f" ! must not be: {', '.join(together)}")
    return counted


def run(update: Update, model: BaseChatModel, facts: FactStore, config: MemoryConfig) -> tuple[Extraction, Outcome]:
    """Extract one update with what is known so far, and apply it."""
    known = facts.snapshot()
    profile = texts_of(known.profile)
    extraction = extract_facts(model, update.messages, existing=known.facts, profile=profile, config=config)
    applied = facts.apply(extraction, thread_id="t", epoch=known.control.epoch, now=datetime.now(UTC).isoformat())
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
    parser.add_argument("paths", type=Path, nargs="+", metavar="path")
    parser.add_argument("--turns", type=int, default=40, help="turns of a LoCoMo conversation")
    parser.add_argument("--size", type=int, default=8, help="turns extracted together")
    parser.add_argument("--texts", type=int, default=40, help="texts of the set of 40")
    parser.add_argument("--answers", type=Path, help="a JSON file that keeps what the model answered")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one call")
    return parser.parse_args()


def updates_of(path: Path, chosen: argparse.Namespace) -> Iterator[Update]:
    """Yield what a path holds: a folder with the set of 40, our dialogues, or a conversation of LoCoMo."""
    if (path / "dataset.jsonl").exists():
        return texts(path / "dataset.jsonl", chosen.texts)
    return dialogues(path) if path.suffix == ".jsonl" else locomo(path, chosen.turns, chosen.size)


def measure(path: Path, chosen: argparse.Namespace, settings: Settings) -> None:
    """Run every update of a path and print the totals."""
    asked = load_chat_model(settings.memory_model, settings, purpose="memory")
    model = AnsweredModel.of(asked, chosen.answers)
    store, totals, seconds = InMemoryStore(), Counter[str](), []
    for update in updates_of(path, chosen):
        facts = FactStore(store, update.name if update.is_alone else "reader", config=settings.memory)
        started = time.perf_counter()
        try:
            extraction, applied = run(
                update, model, facts, replace(settings.memory, model_timeout_seconds=chosen.timeout)
            )
        except (ExtractionError, TimeoutError) as error:
            print(f"\n== {update.name}: {type(error).__name__}: {error}")
            totals["failed"] += 1
            continue
        seconds.append(time.perf_counter() - started)
        show(update, extraction, applied, facts, seconds[-1])
        totals += counts(applied)
        totals += scores(update, facts.list(), applied.refused)
    print(f"\n{path}\n" + "\n".join(f"{count:5} {name}" for name, count in sorted(totals.items()) if count))
    for name, part, whole in RATIOS:
        if totals[whole]:
            print(f"{totals[part] / totals[whole]:5.2f} {name}")
    print(f"{sum(seconds) / max(1, len(seconds)):5.1f} s an update, {len(seconds)} updates")
    print(model.told())


def main() -> None:
    """Measure each path, with the local model where no other is configured."""
    chosen = options()
    environ = environment(Path(".env"))
    settings, local = Settings.from_environment(environ), None
    if wants_local(settings):
        local = start_local_model(settings.local_model)
        settings = Settings.from_environment(server_environment(environ, local))
    try:
        for path in chosen.paths:
            measure(path, chosen, settings)
    finally:
        if local:
            local.process.terminate()


if __name__ == "__main__":
    main()
