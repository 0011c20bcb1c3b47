"""What the door catches of the attacks, wishes and secrets in `tests/data/screening.json`.

`python -m tests.screening_numbers` prints them. All were written by the hand that wrote the rules; `tuned` and
`unseen` are later than the rules, and 17 of 30 and 16 of 20 of their attacks were caught when they were first counted.
"""

import json
import sys
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


def report() -> Iterator[str]:
    """Yield the numbers, and what is missed or held wrongly, line by line."""
    for part in PARTS:
        own = [text for _, text in attacks(part)]
        counts = [f"attacks {len(held(own))}/{len(own)}"]
        counts += [
            f"{kind} {len(held(texts(kind, part)))}/{len(texts(kind, part))}"
            for kind in ("wishes", "secrets", "about_secrets")
        ]
        yield f"{part}: {', '.join(counts)}"
        for text in (*own, *texts("secrets", part)):
            if screened(text) is None:
                yield f"  missed: {text!r}"
        for text in held([*texts("wishes", part), *texts("about_secrets", part)]):
            yield f"  held wrongly: {text!r}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in report())
