"""What approval costs recall: how many messages wait for a yes, and how much of what answers questions is among them.

    python -m benchmarks.approval DATA

DATA holds public conversations (`locomo/`, `beam100k/`) as `benchmarks.quality_data` reads them. Messages are judged by
words, as the journal judges them, and a reply waits with what it answers. No fact is made and no yes said: a fact in
use would free its message, and one that waits would also hold back messages with its telling words. No model is asked.
"""

import argparse
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.quality_data import Talk, beam, locomo
from memory.config import NAMED_TOPICS, Topic
from memory.screening.topics import held_topics

CHOICES: tuple[tuple[Topic, ...], ...] = (*((topic,) for topic in NAMED_TOPICS), NAMED_TOPICS)


@dataclass(frozen=True, slots=True)
class Cost:
    """What waits of some conversations, as shares.

    Attributes:
        messages: Of all messages.
        evidence: Of the messages that answer a question; each counts once a question.
        touched: Of the questions, those of whose evidence any waits.
        lost: Of the questions, those of whose evidence all waits.
    """

    messages: float
    evidence: float
    touched: float
    lost: float


def waiting(talk: Talk, wanted: Collection[Topic]) -> Iterator[str]:
    """Yield the ids of the messages that wait."""
    is_asked = False
    for turn in talk.turns:
        is_held = bool(held_topics(turn.text, wanted))
        if is_held or (turn.is_reply and is_asked):
            yield turn.id
        if not turn.is_reply:
            is_asked = is_held


def cost(talks: Sequence[Talk], wanted: Collection[Topic]) -> Cost:
    """Return what waits where a user asks to be asked about these topics."""
    waits = {(talk.name, each) for talk in talks for each in waiting(talk, wanted)}
    asked = [{(talk.name, each) for each in question.evidence} for talk in talks for question in talk.questions]
    held = [len(evidence & waits) for evidence in asked]
    return Cost(
        messages=len(waits) / sum(len(talk.turns) for talk in talks),
        evidence=sum(held) / sum(map(len, asked)),
        touched=sum(map(bool, held)) / len(asked),
        lost=sum(some == len(evidence) for some, evidence in zip(held, asked, strict=True)) / len(asked),
    )


def table(sets: Sequence[tuple[str, Sequence[Talk]]]) -> str:
    """Return the costs as a table in Markdown."""
    rows = [
        "| conversations | asked about | messages that wait | evidence that waits | questions touched | wholly lost |",
        "|---|---|---|---|---|---|",
    ]
    for name, talks in sets:
        for wanted in CHOICES:
            found = cost(talks, wanted)
            shares = (found.messages, found.evidence, found.touched, found.lost)
            rows.append(f"| {name} | {', '.join(wanted)} | " + " | ".join(f"{share:.0%}" for share in shares) + " |")
    return "\n".join(rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    folder: Path = parser.parse_args().data
    sets = [(name, talks) for name, talks in (("LoCoMo", locomo(folder)), ("BEAM", beam(folder))) if talks]
    if not sets:
        raise SystemExit(f"no conversations in {folder}: it should hold locomo/ or beam100k/")
    print(table(sets))


if __name__ == "__main__":
    main()
