"""Conversations to replay: a plain list of turns with questions, or the JSON of the LoCoMo data set."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_EVIDENCE = re.compile(r"D:?(\d+):0*(\d+)")


@dataclass(frozen=True, slots=True)
class Question:
    """A question about what was said, and the answer that counts as right."""

    text: str
    answer: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """What one user said, turn by turn, and questions whose answers were among it."""

    user: str
    turns: tuple[str, ...]
    questions: tuple[Question, ...]


def read_conversation(path: Path, turns: int, questions: int = 3) -> Conversation:
    """Read the first turns of a conversation.

    Args:
        path: A JSON file: `{"user", "turns": [text], "questions": [{"text", "answer", "after"}]}`, `after` being the
            turn that a question needs, or a conversation of the LoCoMo data set (Maharana et al., 2024), of which the
            first speaker is taken as the user.
        turns: How many of the user's turns to take at most.
        questions: How many questions to take at most, and only those whose evidence was replayed.

    Raises:
        ValueError: If the file is neither; the message names it.
    """
    try:
        value = json.loads(path.read_text())
        if "conversation" in value:
            return _from_locomo(value, turns, questions)
        replayed = [question for question in value["questions"] if question.get("after", 0) <= turns]
        asked = tuple(Question(question["text"], question["answer"]) for question in replayed[:questions])
        return Conversation(value["user"], tuple(value["turns"][:turns]), asked)
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no conversation: {error}") from error


def _from_locomo(value: Mapping[str, Any], turns: int, questions: int) -> Conversation:
    talk = value["conversation"]
    user = talk["speaker_a"]
    said: list[str] = []
    replayed: set[str] = set()
    for date, turn in _locomo_turns(talk):
        if len(said) == turns:
            break
        if turn["speaker"] == user:
            said.append(f"({date}) {turn['text']}")
            replayed.add(turn["dia_id"])
    asked = [
        Question(entry["question"], str(entry["answer"]))
        for entry in value["qa"]
        if user in entry["question"] and "answer" in entry and _evidence(entry) and _evidence(entry) <= replayed
    ]
    return Conversation(user, tuple(said), tuple(asked[:questions]))


def _locomo_turns(talk: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every turn with the date of its session, in order."""
    number = 1
    while f"session_{number}" in talk:
        for turn in talk[f"session_{number}"]:
            yield talk[f"session_{number}_date_time"], turn
        number += 1


def _evidence(entry: Mapping[str, Any]) -> set[str]:
    """Return the turns an answer rests on; the data set writes some as "D8:6; D9:17" or "D30:05"."""
    found = _EVIDENCE.findall(" ".join(entry.get("evidence", [])))
    return {f"D{session}:{turn}" for session, turn in found}
