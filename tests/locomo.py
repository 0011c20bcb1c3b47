"""Conversations of LoCoMo's public shape: hundreds of turns of two people over many dated sessions; and as JSONL.

The text is our own. `tests/e2e/test_backfill_years.py` takes the real ones too, where `--data` names their folder.
"""

import json
import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

_TIME = "%I:%M %p on %d %B, %Y"
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


def locomo_shaped(people: tuple[str, str], begun: datetime, *, sessions: int, turns: int, seed: int) -> dict[str, Any]:
    """Return a conversation of so many sessions, 11 days apart, of so many turns each.

    The first of the two says in every other turn of theirs what they like, each of it a word that nobody else says; a
    quarter of it is said again in the next session. The other turns have a word of their own too, but tell nothing.
    """
    drawn = random.Random(seed)
    used: set[str] = set()

    def word() -> str:
        while (made := "".join(drawn.choice(letters) for letters in (_CONSONANTS, _VOWELS) * 5)) in used:
            pass
        used.add(made)
        return made

    said: dict[str, Any] = {"speaker_a": people[0], "speaker_b": people[1]}
    again: list[str] = []
    for session in range(1, sessions + 1):
        said[f"session_{session}_date_time"] = (begun + timedelta(days=11 * (session - 1))).strftime(_TIME)
        repeated, again = again, []
        lines = []
        for turn in range(turns):
            speaker = people[turn % 2]
            text = f"Is that so, {people[0]}? Over here it was all about {word()}, as ever."
            if turn % 4 == 0:
                liked = repeated.pop() if turn % 16 == 0 and repeated else word()
                again += [liked] if turn % 16 == 4 else []
                text = f"I like {liked}. It made my whole week, I can tell you that!"
            elif turn % 2 == 0:
                text = f"So they talked about {word()} for an hour, and nobody knew why."
            lines.append({"speaker": speaker, "dia_id": f"D{session}:{turn + 1}", "text": text})
        lines[-1]["blip_caption"] = "a photo of a table with two cups"
        said[f"session_{session}"] = lines
    return {"sample_id": f"own-{seed}", "conversation": said, "qa": []}


def as_jsonl(name: str, data: Mapping[str, Any]) -> str:
    """Return a conversation of LoCoMo in lines that `palimpsest backfill` reads; its first speaker is the user."""
    return "".join(json.dumps({"conversation": name, **each}) + "\n" for each in _messages(data["conversation"]))


def _messages(said: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    numbers = sorted(
        int(name.split("_")[1]) for name in said if name.startswith("session_") and isinstance(said[name], list)
    )
    for number in numbers:
        begun = datetime.strptime(said[f"session_{number}_date_time"], _TIME).replace(tzinfo=UTC)
        for at, turn in enumerate(said[f"session_{number}"]):
            role = "user" if turn["speaker"] == said["speaker_a"] else "assistant"
            time = (begun + timedelta(minutes=at)).isoformat()
            yield {"id": turn["dia_id"], "role": role, "content": turn["text"], "time": time}
