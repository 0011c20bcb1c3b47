"""What becomes of preferences that people change: lost, over the limit, or still there though they are over.

    python -m benchmarks.updates DATA

DATA holds `halumem/preference_updates.jsonl`: persons, each with changes of preferences (before, after, and whether it
is a deletion). Every change is said in a message and goes through extraction and its checks. The model is a script: it
notes down what the message says, and names the known fact that it corrects or ends where the prompt shows it, so that
the rules are measured and no model's ability. Exit code 1 when a goal is missed.
"""

import argparse
import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.store.memory import InMemoryStore

from memory.config import MemoryConfig
from memory.control import INITIAL_EPOCH
from memory.extraction.extraction import extract_facts
from memory.facts.store import FactStore
from memory.message import StoredMessage, iso_time
from memory.text import normalize
from tests.fakes import RecordingModel

SEED = 7
DRAWS = 2000
GOALS = {"lost": 0.0, "over the limit": 0.0, "stale": 0.01}
_KNOWN = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Update:
    """A preference that changed; `after` is empty where it was given up."""

    before: str
    after: str
    reason: str


def read_updates(folder: Path) -> Iterator[list[Update]]:
    """Yield the updates of each person."""
    for line in (folder / "halumem" / "preference_updates.jsonl").read_text("utf-8").splitlines():
        yield [
            Update(
                _preference(event["before_preference"]),
                "" if event["update_direction"] == "Delete" else _preference(event["after_preference"]),
                event["update_reason"],
            )
            for event in json.loads(line)["event_list"]
        ]


def _preference(value: dict[str, Any]) -> str:
    (point,) = value["memory_points"]
    return f"{point['type_description']}: {point['specific_item']}"


class Person:
    """One person's memory, and what it is told."""

    def __init__(self, config: MemoryConfig) -> None:
        self.config, self.now = config, 1_760_000_000.0
        self.facts = FactStore(InMemoryStore(), "ada", config=config, clock=lambda: self.now)
        self._noted: dict[str, Any] = {}
        self._wrong = ""
        self._model = RecordingModel(respond=self._answer)

    def learn(self, content: str, reason: str, wrong: str = "") -> None:
        """Say something, which may correct what is wrong; without content, what is wrong is only over."""
        self.now += 60
        self._noted = {"message": 1, "content": content, "category": "preference", "confidence": 0.9}
        self._wrong = wrong
        said = f"{reason} {content or f'No longer true: {wrong}'}"
        message = StoredMessage(f"m{self.now:.0f}", "user", said, iso_time(self.now))
        found = extract_facts(self._model, [message], existing=self.facts.list(), config=self.config)
        self.facts.apply(found, thread_id="t", epoch=INITIAL_EPOCH, now=iso_time(self.now))

    def _answer(self, messages: list[BaseMessage]) -> str:
        shown = {normalize(text): int(number) for number, text in _KNOWN.findall(messages[-1].text)}
        known = shown.get(normalize(self._wrong), 0)
        over = "corrects" if self._noted["content"] else "ends"
        facts = [{**self._noted, "action": over if known else "new", "known": known}]
        return json.dumps({"facts": facts if known or self._noted["content"] else [], "profile": []})


def measure(persons: Sequence[Sequence[Update]], config: MemoryConfig) -> dict[str, list[list[float]]]:
    """Return 1.0 for each update that was lost, exceeded the limit, or left a stale fact, else 0.0; by person."""
    rows: dict[str, list[list[float]]] = {name: [] for name in GOALS}
    for updates in persons:
        person, own = Person(config), {name: list[float]() for name in GOALS}
        for update in updates:
            there = {normalize(fact.content) for fact in person.facts.list()}
            if normalize(update.before) not in there:
                person.learn(update.before, "Let me tell you about me.")
            person.learn(update.after, update.reason, update.before)
            facts = [normalize(fact.content) for fact in person.facts.list()]
            is_changed = normalize(update.before) != normalize(update.after)
            own["lost"].append(float(bool(update.after) and normalize(update.after) not in facts))
            own["stale"].append(float(is_changed and normalize(update.before) in facts))
            own["over the limit"].append(float(len(facts) > config.max_facts))
        for name, values in own.items():
            rows[name].append(values)
    return rows


def interval(persons: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Return the mean over all updates, and its bootstrap 95 % interval over persons."""

    def mean(drawn: Sequence[Sequence[float]]) -> float:
        return sum(map(sum, drawn)) / sum(map(len, drawn))

    chance = random.Random(SEED)
    means = sorted(mean(chance.choices(persons, k=len(persons))) for _ in range(DRAWS))
    return mean(persons), means[round(0.025 * DRAWS)], means[round(0.975 * DRAWS) - 1]


def main() -> int:
    """Measure, print the rows, and return the exit code; 0 also where there are no data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    folder = parser.parse_args().data
    if not (folder / "halumem").is_dir():
        sys.stdout.write(f"skipped: {folder} has no halumem/preference_updates.jsonl\n")
        return 0
    persons = list(read_updates(folder))
    missed = 0
    for config in (MemoryConfig(), MemoryConfig(max_facts=10)):
        count = sum(map(len, persons))
        sys.stdout.write(f"{len(persons)} persons, n={count} updates, max_facts={config.max_facts}, seed {SEED}\n")
        for name, values in measure(persons, config).items():
            found, low, high = interval(values)
            missed += found > GOALS[name]
            sys.stdout.write(f"  {name:<15}{found:.3f} [{low:.3f}, {high:.3f}]  goal ≤ {GOALS[name]:g}\n")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
