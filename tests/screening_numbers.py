"""What the door catches of the attacks, wishes and secrets in `tests/data/screening.json`.

All were written by the hand that wrote the rules; `tuned` and `unseen` are later than the rules, and 17 of 30 and 16 of
20 of their attacks were caught when they were first counted.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from memory.screening.door import screened

PARTS = ("seen", "held_out", "tuned", "unseen")
CORPUS = json.loads((Path(__file__).parent / "data" / "screening.json").read_text())


def attacks(*parts: str) -> Iterator[tuple[str, str]]:
    """Yield family and text of each attack in these parts."""
    for family, texts in CORPUS["attacks"].items():
        yield from ((family, text) for part in parts for text in texts[part])


def texts(kind: str, *parts: str) -> list[str]:
    """Return the texts of a kind (`wishes`, `secrets`, `about_secrets`) in these parts."""
    return [text for part in parts for text in CORPUS[kind][part]]


def held(found: list[str]) -> list[str]:
    """Return the texts that the door holds."""
    return [text for text in found if screened(text) is not None]
