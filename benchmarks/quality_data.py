"""Public conversations for `benchmarks.quality`, as documents and questions. They are read from a folder, never copied.

LoCoMo's facts are its gold observations, each with the turns that it was taken from, and its content ends with the day
on which it was said. Its evidence is written in several ways ("D8:6; D9:17", "D:11:26", "D30:05"); questions without
any, and those of category 5, which have no answer, are left out.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memory.recall import Document

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_UNANSWERABLE = 5


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the ids of the turns that answer it."""

    text: str
    evidence: frozenset[str]
    kind: str


@dataclass(frozen=True, slots=True)
class Talk:
    """One long conversation: what was said, the facts taken from it, and questions about it."""

    name: str
    turns: tuple[Document, ...]
    facts: tuple[Document, ...]
    questions: tuple[Question, ...]


def locomo(folder: Path) -> list[Talk]:
    """Return the LoCoMo conversations of a data folder."""
    return [_locomo(json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("locomo/*.json"))]


def _locomo(data: Mapping[str, Any]) -> Talk:
    said = data["conversation"]
    turns: list[Document] = []
    facts: list[Document] = []
    for name in session_names(said):
        when = session_time(said, name).isoformat()
        for turn in said[name]:
            photo = f" [photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            turns.append(
                Document(
                    id=turn["dia_id"],
                    text=turn["text"] + photo,
                    when=when,
                    who=turn["speaker"],
                    session=name,
                    place=f"{len(turns):05}",
                    kind="turn",
                )
            )
        known = {turn.id for turn in turns}
        for observed in data["observation"].get(f"{name}_observation", {}).values():
            for text, source in observed:
                facts.append(
                    Document(
                        id=f"fact-{len(facts)}",
                        text=f"{text} ({when[:10]})",
                        when=when,
                        session=name,
                        place=f"{len(facts):05}",
                        sources=_evidence([source] if isinstance(source, str) else source, known),
                    )
                )
    ids = {turn.id for turn in turns}
    questions = [
        Question(str(each["question"]), frozenset(_evidence(each["evidence"], ids)), str(each["category"]))
        for each in data["qa"]
        if each["category"] != _UNANSWERABLE
    ]
    return Talk(data["sample_id"], tuple(turns), tuple(facts), tuple(each for each in questions if each.evidence))


def session_names(said: Mapping[str, Any]) -> list[str]:
    """Return the names of a LoCoMo conversation's sessions, oldest first."""
    return sorted((name for name in said if re.fullmatch(r"session_\d+", name)), key=lambda name: int(name[8:]))


def session_time(said: Mapping[str, Any], name: str) -> datetime:
    """Return when a session of a LoCoMo conversation began; it has no time zone."""
    return datetime.strptime(said[f"{name}_date_time"], "%I:%M %p on %d %B, %Y")


def _evidence(written: Sequence[str], known: set[str]) -> tuple[str, ...]:
    found = (f"D{int(session)}:{int(turn)}" for text in written for session, turn in _EVIDENCE.findall(text))
    return tuple(dict.fromkeys(each for each in found if each in known))


def beam(folder: Path) -> list[Talk]:
    """Return the BEAM chats of a data folder, which hold no facts; questions without evidence are left out."""
    return [_beam(path.stem, json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("beam100k/*.json"))]


def _beam(name: str, data: Mapping[str, Any]) -> Talk:
    turns = tuple(
        Document(
            id=str(message["id"]),
            text=message["content"],
            session="chat",
            place=f"{place:05}",
            kind="turn",
            is_reply=message["role"] != "user",
        )
        for place, message in enumerate(data["messages"])
    )
    ids = {turn.id for turn in turns}
    questions = (
        Question(probe["question"], frozenset(map(str, probe["evidence"])) & ids, probe["ability"])
        for probe in data["probes"]
    )
    return Talk(name, turns, (), tuple(each for each in questions if each.evidence))
