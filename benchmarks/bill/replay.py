"""A public conversation as turns of one user: what is said, when, what a model would answer and learn.

It is read from a folder, never copied. One speaker is the user, the other the assistant. What the user says without an
answer in between is one message; what the assistant says before the user's first word of a session is left out. The
days are those of the data. Within a session every turn comes a fixed time after the one before, because the data do not
say when.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import chain, cycle, groupby, islice
from pathlib import Path
from typing import Any

from benchmarks.quality_data import session_names, session_time

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_FILLER = (
    "Thank you for telling me. That sounds like a lot to think about, and I am glad that you see it so clearly. Let me "
    "know how it goes on, and whether there is something that I can look up, write down or compare for you meanwhile. "
    "If you want, we can go through it step by step: first what matters most to you, then what it takes, and in the "
    "end what you would do on a day on which everything goes wrong."
)


@dataclass(frozen=True, slots=True)
class ReplayTurn:
    """One message of the user.

    Attributes:
        text: What the user says.
        answer: What the chat model answers: the other speaker's words, made as long as all answers are.
        facts: What a memory model would learn from the message, as sentences about "User".
        at: When it is said, in seconds since 1970.
    """

    text: str
    answer: str
    facts: tuple[str, ...]
    at: float


def read_replay(path: Path, *, turns: int, answer_words: int, pace: float) -> list[ReplayTurn]:
    """Return the first turns of a LoCoMo conversation.

    Args:
        path: The conversation's file.
        turns: How many at most.
        answer_words: How long each answer is.
        pace: Seconds between two turns of a session.
    """
    data = json.loads(path.read_text("utf-8"))
    said, user = data["conversation"], data["conversation"]["speaker_a"]
    found: list[ReplayTurn] = []
    for name in session_names(said):
        begins = session_time(said, name).replace(tzinfo=UTC).timestamp()
        learned = _learned(data["observation"].get(f"{name}_observation", {}).get(user, ()), user)
        for number, (mine, theirs) in enumerate(_exchanges(said[name], user)):
            facts = (fact for each in mine for fact in learned.get(each["dia_id"], ()))
            found.append(
                ReplayTurn(
                    " ".join(map(_text, mine)),
                    fixed_length(" ".join(map(_text, theirs)), answer_words),
                    tuple(dict.fromkeys(facts)),
                    begins + number * pace,
                )
            )
    return found[:turns]


def _exchanges(session: Sequence[Mapping[str, Any]], user: str) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield what the user said in one go, and what was answered."""
    spoken = [(is_user, list(said)) for is_user, said in groupby(session, key=lambda turn: turn["speaker"] == user)]
    for place, (is_user, said) in enumerate(spoken):
        if is_user:
            yield said, spoken[place + 1][1] if place + 1 < len(spoken) else []


def _text(turn: Mapping[str, Any]) -> str:
    photo = f" [photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['text']}{photo}"


def _learned(observed: Sequence[Any], user: str) -> dict[str, list[str]]:
    """Return what was observed of the user, by the id of the turn that tells it."""
    found: dict[str, list[str]] = {}
    for text, source in observed:
        written = [source] if isinstance(source, str) else source
        for session, turn in [place for each in written for place in _EVIDENCE.findall(each)][:1]:
            found.setdefault(f"D{int(session)}:{int(turn)}", []).append(re.sub(rf"\b{re.escape(user)}\b", "User", text))
    return found


def fixed_length(text: str, words: int) -> str:
    """Return a text with exactly so many words: cut, or gone on with sentences that any assistant says."""
    return " ".join(islice(chain(text.split(), cycle(_FILLER.split())), words))
