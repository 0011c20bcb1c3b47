"""Train the learned judges of the door, and measure them on writers that they did not learn from.

`python -m tests.screening_training` writes `memory/screening/judges.json` from the texts in `tests/data/screening`,
the same bytes each time. `python -m tests.screening_training --cross-validate` leaves out each writer in turn, and
counts what the door (rules and judges) holds of that one's texts; `--texts` shows what is missed and held wrongly.
`python -m tests.screening_training --held-out` counts what the door as it is shipped holds of other writers.
"""

import base64
import gzip
import hashlib
import json
import math
import random
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.screening import secrets
from memory.screening.door import (
    JUDGES_FILE,
    ORDER_JUDGE,
    SECRET_JUDGE,
    as_seen,
    compatible,
    is_instruction_like,
)
from memory.screening.judge import UNIT, Judge, order_features, parts, secret_features, tokens

FOLDER: Final = Path(__file__).parent / "data" / "screening"
# A word is known if it stands in so many texts.
_COMMON: Final = 4
_RATE: Final = 0.4
_MOST_GAP: Final = 255
_SEED: Final = 11
_FACTS: Final = 3000
_TALK: Final = 800
_NUMBERS: Final = 30_000
# The judge of secrets learned English from these; with the others' texts it would miss more.
_OF_SECRETS: Final = {"facts", *(f"writer_{n}" for n in range(1, 7))}
# How much a text of a source counts as an order or none, where that is not 1: what English writers wrote more than the
# many of eight languages, and chats most, as the journal keeps them.
_COUNTED: Final = {
    **{f"writer_{n}": 1.5 for n in (1, 2, 3, 4, 5, 6, 13)},
    "facts": 0.5, "templates": 0.1, "talk": 7.0, "django": 0.3, "chatterbot": 2.5, "udhr": 0.5, "python": 0.3,
    "docs": 0.5, "parts": 0.5, "parts talk": 5.0,
}  # fmt: skip
_FACT_FORMS: Final = (
    "{who} {did} {tail}.", "{who} {does} {tail}.", "{who} {did} on {day}.", "{who} {does}",
    "{who} {did} and {does} {tail}.",
    "I {i} because {because}.", "{thing}: I {i}, since {because}.", "{event} {effect}.",
    "{event} {effect}, because {because}.", "{thing} {is}.", "{thing} {is}, and {who} {does}.",
)  # fmt: skip
_NAMES_TEXT: Final = """
    alex amara anna ben carla chen clara daniel david diego elena emma erik eva fatima gina grace hannah henry ida ivan
    jack jamal james jana john julia kim lara laura leo lily lina luca maria mark martin maya mila nick nina noah olga
    omar oscar peter rosa sam sara simon sven tim tom vera yusuf
"""
_NAMES: Final = _NAMES_TEXT.split()


class Example(NamedTuple):
    """A text, who wrote it, and what it is."""

    writer: str
    kind: str
    text: str


class Task(NamedTuple):
    """What one judge learns, and how.

    Attributes:
        name: Of the judge.
        cased: As in `Judge`.
        buckets: How many numbers features may have.
        apart: By how many numbers features are told apart when they are counted.
        seen: In how many texts a feature must be.
        rounds: How often the texts are read.
        decay: How fast a weight that nothing supports goes.
        scales: Of a feature's value, by the first letter of its name.
        scale: A weight of 1, as a whole number.
        nothing: A weight of so much is left out.
        threshold: As in `Judge`.
        read: What is learned from a text: parts of it, and how much each counts.
        taught: The texts, from those that writers wrote.
        wanted: The kind of texts to hold.
    """

    name: str
    cased: bool
    buckets: int
    apart: int
    seen: int
    rounds: int
    decay: float
    scales: dict[str, float]
    scale: int
    nothing: int
    threshold: int
    read: Callable[[Example], Iterator[tuple[str, float]]]
    taught: Callable[[list[Example]], Iterable[Example]]
    wanted: str


def examples(folder: Path = FOLDER) -> list[Example]:
    """Return all texts that writers wrote, in the order of their files and lines."""
    return [
        Example(path.stem, each["kind"], each["text"])
        for path in sorted(folder.glob("*.jsonl"))
        for each in map(json.loads, path.read_text("utf-8").splitlines())
    ]


def others() -> Iterator[Example]:
    """Yield harmless texts of public sources, and orders and wishes put together from parts, for learning alone."""
    with gzip.open(FOLDER / "others.jsonl.gz", "rt", encoding="utf-8") as lines:
        for each in map(json.loads, lines):
            yield Example(each["from"], each["kind"], each["text"])


def facts(n: int = _FACTS, folder: Path = FOLDER) -> Iterator[Example]:
    """Yield plain facts about people and things, put together from parts: most of what memory is told is of that kind.

    They are no evidence, so nothing is ever measured on them.
    """
    part = json.loads((folder / "templates.json").read_text())
    chance = random.Random(_SEED)
    for at in range(n):
        picked = {name: chance.choice(some) for name, some in part.items()}
        who = chance.choice([*_NAMES, "she", "he", "they", "user", "the user"]).capitalize()
        form = _FACT_FORMS[at % len(_FACT_FORMS)]
        day = f"{chance.randint(1990, 2030)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
        yield Example("templates", "wishes", form.format(who=who, day=day, **picked))


def talk(n: int = _TALK, folder: Path = FOLDER) -> Iterator[Example]:
    """Yield what people say to each other in a chat, put together from parts: the journal keeps that, too.

    It addresses somebody, asks and wishes, and orders nothing of an assistant. It is no evidence either.
    """
    written = json.loads((folder / "talk.json").read_text("utf-8"))
    chance = random.Random(_SEED)
    for at in range(n):
        picked = {name: chance.choice(some) for name, some in written["parts"].items()}
        more = {f"{name}2": chance.choice(written["parts"][name]) for name in ("tell", "ask")}
        form = written["forms"][at % len(written["forms"])]
        yield Example("talk", "wishes", form.format(who=chance.choice(_NAMES).capitalize(), **picked, **more))


def numbers(n: int = _NUMBERS, folder: Path = FOLDER) -> Iterator[Example]:
    """Yield sentences with numbers in them, put together from parts: one of three tells a secret.

    A judge that learned few numbers but those of secrets takes a postcode for one. They are no evidence either.
    """
    written = json.loads((folder / "numbers.json").read_text("utf-8"))
    chance = random.Random(_SEED)
    secret = ("code", "password", "phrase")
    shapes = [shape for kind, some in written["values"].items() if kind not in secret for shape in some]
    for at in range(n):
        language = chance.randrange(len(written["secrets"]))
        if at % 3 == 0:
            own, kind = written["secrets"][language], chance.choice(secret)
            form, shape = chance.choice(own[f"{kind}s"]), chance.choice(written["values"][kind])
        elif at % 6 == 1:
            language, own = 0, written["secrets"][0]
            form, shape = chance.choice(written["about"]), ""
        else:
            own = written["harmless"][language]
            form, shape = chance.choice(own["frames"]), chance.choice(shapes)
        picked = {
            name: chance.choice(own[name].split(",")) for name in ("noun", "code", "name", "thing") if name in own
        }
        more = {name.capitalize(): part[0].upper() + part[1:] for name, part in picked.items()}
        text = form.format(value=_value(shape, chance), **picked, **more)
        text = _value(text, chance, "#") if not shape else text
        # Told in passing, as people do, as often as alone.
        around = [chance.choice(written["around"][side][language]) for side in ("before", "after")]
        text = " ".join([around[0], text[0].lower() + text[1:].rstrip(".") + ",", around[1]]) if at % 2 else text
        yield Example("numbers", "wishes" if at % 3 else "secrets", text)


def _value(shape: str, chance: random.Random, signs: str = "#AawW?") -> str:
    """Return a value of a shape: a digit for `#`, a letter for `A` and `a`, a word for `W` and `w`, either for `?`."""
    made = {
        "#": lambda: str(chance.randint(0, 9)),
        "A": lambda: chance.choice(ascii_uppercase),
        "a": lambda: chance.choice(ascii_lowercase),
        "W": lambda: chance.choice(_NAMES).capitalize(),
        "w": lambda: chance.choice(_NAMES),
        "?": lambda: chance.choice(ascii_letters + digits),
    }
    return "".join(made[sign]() if sign in signs and sign in made else sign for sign in shape)


def _order_parts(each: Example) -> Iterator[tuple[str, float]]:
    """Yield the parts of a text that the judge of orders learns from: of an order the longest, of all else each."""
    line = as_seen(each.text)
    read = list(dict.fromkeys(parts(line)))
    if each.kind == "attacks":
        read = [max(read, key=len, default="")]
    yield from ((part, _COUNTED.get(each.writer, 1.0) / len(read) ** 0.5) for part in read)


def _secret_parts(each: Example) -> Iterator[tuple[str, float]]:
    """Yield the parts of a text that the judge of secrets learns from: of a secret all in one, of all else each."""
    for form in _with_names(compatible(each.text)):
        yield from ((part, 1.0) for part in ([form] if each.kind == "secrets" else parts(form)))


def _with_names(text: str) -> Iterator[str]:
    """Yield a text, and if it tells of the user, also with a name in that place: facts tell of other people, too."""
    yield text
    for begin in ("the user", "user", "The user", "User"):
        if text.startswith((f"{begin} ", f"{begin}'s ")):
            yield _NAMES[zlib.crc32(text.encode()) % len(_NAMES)] + text[len(begin) :]
            return


ORDERS: Final = Task(
    "orders", False, 1 << 19, 1 << 32, 5, 7, 0.0014, {"4": 0.5, "2": 0.7, "3": 0.7}, 2, 0, -50,
    _order_parts, lambda learned: [*learned, *others(), *facts(), *talk()], "attacks",
)  # fmt: skip
SECRETS: Final = Task(
    "secrets", True, 1 << 17, 1 << 17, 4, 12, 0.001, {}, 25, 1, -2000,
    _secret_parts,
    lambda learned: [*(each for each in learned if each.writer in _OF_SECRETS), *facts(), *numbers()], "secrets",
)  # fmt: skip


def digest(folder: Path = FOLDER) -> str:
    """Return the digest of the texts."""
    paths = sorted(path for path in folder.iterdir() if path.suffix in (".jsonl", ".json", ".gz"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


class Row(NamedTuple):
    """What is learned from a text or a part of one: its features, their values, how much it counts, what it is."""

    found: NDArray[np.int64]
    values: NDArray[np.float64]
    counts: float
    wanted: bool


def trained(task: Task, learned: list[Example]) -> Judge:
    """Return a judge by stochastic gradient descent (AdaGrad) on the logistic loss."""
    read = [
        (tokens(part, cased=task.cased), counts, each.kind == task.wanted)
        for each in task.taught(learned)
        for part, counts in task.read(each)
    ]
    spread = Counter(word for found, _, _ in read for word in set(found) if task.cased and word[0].isalpha())
    common = frozenset(word for word, n in spread.items() if n >= _COMMON)
    scales, hashed = np.ones(task.buckets), []
    for found, counts, wanted in read:
        names = secret_features(found, common) if task.cased else order_features(found)
        kinds = {zlib.crc32(name.encode()) % task.apart: name[0] for name in names}
        hashed.append((kinds, counts, wanted))
    seen = Counter(number for kinds, _, _ in hashed for number in kinds)
    rows = []
    for kinds, counts, wanted in hashed:
        kept = {number % task.buckets: kind for number, kind in kinds.items() if seen[number] >= task.seen}
        for at, kind in kept.items():
            scales[at] = task.scales.get(kind, 1.0)
        own = np.array(sorted(kept), dtype=np.int64)
        rows.append(Row(own, scales[own] / max(1, len(kinds)) ** 0.5, counts, wanted))
    weights, bias = _descend(rows, task)
    whole = np.clip(np.round(weights * scales * task.scale), -127, 127).astype(int)
    whole[np.abs(whole) <= task.nothing] = 0  # what says next to nothing takes its room
    return Judge(whole.tolist(), round(bias * task.scale * UNIT), task.threshold, task.cased, common)


def _descend(rows: list[Row], task: Task) -> tuple[NDArray[np.float64], float]:
    weights, squares = np.zeros(task.buckets), np.full(task.buckets, 1e-3)
    bias, bias_square = 0.0, 1e-3
    order, chance = list(range(len(rows))), random.Random(_SEED)
    for _ in range(task.rounds):
        chance.shuffle(order)
        for at in order:
            found, values, counts, wanted = rows[at]
            own = weights[found]
            score = bias + float((own * values).sum())
            slope = counts * (1 / (1 + math.exp(-max(-30.0, min(30.0, score)))) - wanted)
            bias_square += slope * slope
            bias -= _RATE * slope / bias_square**0.5
            step = slope * values + counts * task.decay * own
            squares[found] += step * step
            weights[found] = own - _RATE * step / np.sqrt(squares[found])
    return weights, bias


def packed(judge: Judge) -> dict[str, str | int]:
    """Return a judge as JSON has it: how far it is from each weight to the next, the weights, and its words."""
    gaps, own, last = bytearray(), array("b"), 0
    for at, weight in enumerate(judge.weights):
        if weight or at - last == _MOST_GAP:
            gaps.append(at - last)
            own.append(weight)
            last = at
    raw = {"gaps": bytes(gaps), "weights": own.tobytes(), "common": " ".join(sorted(judge.common)).encode()}
    told = {name: base64.b85encode(zlib.compress(each, 9)).decode() for name, each in raw.items()}
    numbers = {"bias": judge.bias, "threshold": judge.threshold, "cased": judge.cased, "buckets": len(judge.weights)}
    return {**numbers, **told}


def written(folder: Path = FOLDER) -> str:
    """Return the file of the judges that learn from all texts."""
    learned = examples(folder)
    made = {task.name: packed(trained(task, learned)) for task in (ORDERS, SECRETS)}
    return json.dumps({"data": digest(folder), **made}, indent=1) + "\n"


def cross_validated(found: list[Example]) -> Iterator[tuple[str, dict[str, tuple[int, int]], list[str]]]:
    """Yield for each writer what the door holds if it learned from the others: counts by kind, and what went wrong."""
    for writer in sorted({each.writer for each in found if each.writer.startswith("writer")}):
        rest = [each for each in found if each.writer != writer]
        order, secret = trained(ORDERS, rest), trained(SECRETS, rest)
        own = [each for each in found if each.writer == writer]
        yield writer, *counted(own, order, secret)


def counted(own: list[Example], order: Judge, secret: Judge) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """Return how many of each kind are held, and lines about what is missed or held wrongly."""
    held, wrong = Counter[str](), []
    for _, kind, text in own:
        composed = compatible(text)
        is_told = secrets.is_known_secret(composed) or secrets.may_hold_secret(composed)
        is_held = is_told or secret.holds(composed) or is_instruction_like(text, order)
        held[kind] += is_held
        if is_held != (kind in ("attacks", "secrets")):
            wrong.append(f"  {kind}: {text!r}")
    return {kind: (held[kind], n) for kind, n in sorted(Counter(each.kind for each in own).items())}, wrong


def report() -> Iterator[str]:
    """Yield the counts of the cross-validation, by writer and of all, line by line."""
    held, of = Counter[str](), Counter[str]()
    for writer, counts, wrong in cross_validated(examples()):
        for kind, (some, n) in counts.items():
            held[kind] += some
            of[kind] += n
        yield f"{writer}: {_line(counts)}"
        yield from (wrong if "--texts" in sys.argv else ())
    yield f"all: {_line({kind: (held[kind], n) for kind, n in sorted(of.items())})}"


def held_out() -> Iterator[tuple[str, dict[str, tuple[int, int]]]]:
    """Yield what the shipped door holds of each set that nothing was learned from."""
    found = examples(FOLDER / "held_out")
    for name in sorted({each.writer for each in found}):
        own = [each for each in found if each.writer == name]
        yield name, counted(own, ORDER_JUDGE, SECRET_JUDGE)[0]


def _line(counts: dict[str, tuple[int, int]]) -> str:
    return ", ".join(f"{kind} {some}/{n}" for kind, (some, n) in counts.items())


if __name__ == "__main__":
    if "--cross-validate" in sys.argv:
        sys.stdout.writelines(f"{line}\n" for line in report())
    elif "--held-out" in sys.argv:
        sys.stdout.writelines(f"{name}: {_line(counts)}\n" for name, counts in held_out())
    else:
        JUDGES_FILE.write_text(written())
