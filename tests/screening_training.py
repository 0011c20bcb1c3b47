"""Train the learned judges of the door, and measure them on writers that they did not learn from.

`python -m tests.screening_training` writes `memory/screening/judges.json` from the texts in `tests/data/screening`,
the same bytes each time. `python -m tests.screening_training --held-out` counts what the door as it is shipped holds of
other writers.
"""

import base64
import gzip
import hashlib
import json
import random
import re
import sys
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import Any, Final, NamedTuple

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
from memory.screening.judge import UNIT, Judge, order_features, secret_features

FOLDER: Final = Path(__file__).parent / "data" / "screening"
_MOST_GAP: Final = 255
_SEED: Final = 11
_FACTS: Final = 3000
_TALK: Final = 800
_NUMBERS: Final = 48_000
_BATCH: Final = 64
# How much a text of a source counts as an order or none, where that is not 1: what writers wrote more than what was put
# together from parts, and chats most, as the journal keeps them.
_COUNTED: Final = {
    **{f"writer_{n}": 3.2 for n in (*range(1, 7), 13)}, **{f"writer_{n}": 2.0 for n in range(7, 13)},
    **{f"writer_{n}": 3.0 for n in (*range(14, 36), 37, 38, 39)}, "writer_36": 2.0,
    "facts": 15.0, "templates": 5.0, "talk": 600.0, "django": 0.3, "chatterbot": 15.0, "udhr": 3.0, "python": 2.0,
    "docs": 3.0, "parts": 0.5, "parts talk": 40.0,
}  # fmt: skip
# Whose honest texts were asked to have numbers, or plain facts, in them.
_OF_NUMBERS: Final = {"facts", *(f"writer_{n}" for n in range(1, 15))}
_FACT_FORMS: Final = (
    "{who} {did} {tail}.", "{who} {does} {tail}.", "{who} {did} on {day}.", "{who} {does}",
    "{who} {did} and {does} {tail}.",
    "I {i} because {because}.", "{thing}: I {i}, since {because}.", "{event} {effect}.",
    "{event} {effect}, because {because}.", "{thing} {is}.", "{thing} {is}, and {who} {does}.",
)  # fmt: skip
# Who teaches the judge of orders alone: with more honest texts that tell no secret, the other one would hold fewer.
_OF_ORDERS: Final = {f"writer_{n}" for n in range(36, 40)}
_NAMES_TEXT: Final = """
    alex amara anna ben carla chen clara daniel david diego elena emma erik eva fatima gina grace hannah henry ida ivan
    jack jamal james jana john julia kim lara laura leo lily lina luca maria mark martin maya mila nick nina noah olga
    omar oscar peter rosa sam sara simon sven tim tom vera yusuf
"""
_NAMES: Final = _NAMES_TEXT.split()
_SHORT: Final = ("Has", "Needs", "Takes", "Likes", "Wants", "Owns", "Reads", "Keeps", "Uses", "Knows")
# What each of ten sentences with numbers is: which forms it takes, and which kind of value stands in it.
_TOLD: Final = (
    ("codes", "code"), ("codes", "code"), ("passwords", "password"), ("words", "phrase"), ("about", ""), ("about", ""),
    ("frames", "harmless"), ("frames", "harmless"), ("harmless", ""), ("harmless", ""),
)  # fmt: skip


class Example(NamedTuple):
    """A text, who wrote it, what it is, and in which language."""

    writer: str
    kind: str
    text: str
    language: str = "en"


class Task(NamedTuple):
    """What one judge learns, and how.

    Attributes:
        name: Of the judge.
        buckets: How many numbers features may have.
        seen: In how many parts of texts a feature must be.
        rounds: How often the texts are read.
        least: How much must speak for a weight that is kept (L1).
        rate: How fast is learned.
        scale: A weight of 1, before it is rounded to a whole number.
        threshold: As in `Judge`.
        read: The features of each part of a text.
        taught: The texts, from those that writers wrote, and how much each counts.
        wanted: The kind of texts to hold.
    """

    name: str
    buckets: int
    seen: int
    rounds: int
    least: float
    rate: float
    scale: float
    threshold: int
    read: Callable[[str], Iterator[list[str]]]
    taught: Callable[[list[Example]], Iterable[tuple[Example, float]]]
    wanted: str


def examples(folder: Path = FOLDER) -> list[Example]:
    """Return all texts that writers wrote, in the order of their files and lines."""
    return [
        Example(path.stem, each["kind"], each["text"], each.get("lang", "en"))
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


def numbers(learned: list[Example], n: int = _NUMBERS, folder: Path = FOLDER) -> Iterator[Example]:
    """Yield sentences about codes, numbers and secrets in eight languages, put together from parts.

    Four of ten tell a secret. A judge that learned few numbers but those of secrets takes a postcode for one. They are
    no evidence either. The words of passphrases are words that writers used.
    """
    written = json.loads((folder / "numbers.json").read_text("utf-8"))
    values = {kind: shapes.split(" | ") for kind, shapes in written["values"].items()}
    languages: dict[str, dict[str, Any]] = {
        language: {name: part.split("|") if isinstance(part, str) else part for name, part in own.items()}
        for language, own in written["languages"].items()
    }
    words = _words(learned)
    chance = random.Random(_SEED)
    for at in range(n):
        language = chance.choice([*languages, "en", "en"])
        own = languages[language]
        name, kind = _TOLD[at % len(_TOLD)]
        shape = chance.choice(values[kind]) if kind else ""
        picked = {part: chance.choice(own[part]) for part in ("noun", "code", "name", "thing")}
        more = {part.capitalize(): each[0].upper() + each[1:] for part, each in picked.items()}
        value = _value(shape, chance, words[language], own["digits"])
        form = chance.choice(own[name])
        text = (form if kind else _number(form, chance)).format(value=value, **picked, **more)
        beside = _number(chance.choice(own["harmless"]), chance)
        before, after = chance.choice(own["before"]), chance.choice(own["after"])
        # Told in passing, as people do, or beside something else.
        passing = f"{before} {text[0].lower()}{text[1:]}".rstrip(".\u3002") + f", {after}"
        pair = chance.sample([text, beside], 2)
        text = chance.choices([text, passing, ". ".join(each.rstrip(".") for each in pair)], [5, 3, 2])[0]
        yield Example("numbers", "secrets" if kind in ("code", "password", "phrase") else "wishes", text, language)


def _words(learned: list[Example]) -> dict[str, list[str]]:
    """Return the words that writers used, by language."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in learned:
        if each.kind != "attacks":
            word = r"[\u3400-\u9fff]{2,4}" if each.language == "zh" else r"[^\W\d_]{4,10}"
            found[each.language].update(map(str.lower, re.findall(word, each.text)))
    return {language: sorted(words) for language, words in found.items()}


def _number(text: str, chance: random.Random) -> str:
    """Return a text with digits for `#`, and letters for capitals and small ones beside it."""
    text = re.sub(r"A{2,}|A(?=[#-])", lambda found: "".join(chance.choices(ascii_uppercase, k=len(found[0]))), text)
    text = re.sub(r"(?<=[#\d-])a+|a+(?=#)", lambda found: "".join(chance.choices("abcdef", k=len(found[0]))), text)
    return re.sub("#", lambda _: chance.choice(digits), text)


def _value(shape: str, chance: random.Random, words: list[str], numerals: list[str]) -> str:
    """Return a value of a shape.

    A digit stands for `#`, a letter for `A` and `a`, a word for `W` and `w`, a small word for `s`, a numeral for `n`,
    a digit or a letter for `?`.
    """
    made = {
        "#": lambda: chance.choice(digits),
        "A": lambda: chance.choice(ascii_uppercase),
        "a": lambda: chance.choice(ascii_lowercase),
        "W": lambda: chance.choice(words).capitalize(),
        "w": lambda: chance.choice(words),
        "s": lambda: chance.choice(["on", "in", "of", "the", "and", "a"]),
        "n": lambda: chance.choice(numerals),
        "?": lambda: chance.choice(ascii_letters + digits),
    }
    return "".join(made[sign]() if sign in made else sign for sign in shape)


def short_facts(learned: list[Example], n: int = _FACTS) -> Iterator[Example]:
    """Yield facts of two words, of which a word that nobody wrote before makes no order."""
    words, chance = _words(learned)["en"], random.Random(_SEED)
    for _ in range(n):
        yield Example("templates", "wishes", f"{chance.choice(_SHORT)} {chance.choice(words)}")


def _order_texts(learned: list[Example]) -> Iterator[tuple[Example, float]]:
    for each in (*learned, *others(), *facts(), *short_facts(learned), *talk()):
        yield each, _COUNTED.get(each.writer, 1.0)


def _secret_texts(learned: list[Example]) -> Iterator[tuple[Example, float]]:
    learned = [each for each in learned if each.writer not in _OF_ORDERS]
    for each in learned:
        if each.kind != "attacks":
            yield each, 3.2 if "secrets" in each.kind else 1.7 if each.writer in _OF_NUMBERS else 0.9
    for at, each in enumerate(others()):
        if each.kind != "attacks" and at % 3 == 0:
            yield each, 0.5
    yield from ((each, 0.5) for each in facts(_FACTS // 2))
    yield from ((each, 1.2) for each in numbers(learned))


ORDERS: Final = Task(
    "orders", 1 << 21, 4, 8, 8.5e-7, 1.0, 0.7, 40, lambda text: order_features(as_seen(text)), _order_texts, "attacks"
)
SECRETS: Final = Task(
    "secrets",
    1 << 19,
    4,
    6,
    1.58e-6,
    1.0,
    6,
    160,
    lambda text: secret_features(compatible(text)),
    _secret_texts,
    "secrets",
)


def digest(folder: Path = FOLDER) -> str:
    """Return the digest of the texts."""
    paths = sorted(path for path in folder.iterdir() if path.suffix in (".jsonl", ".json", ".gz"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


class Parts(NamedTuple):
    """The parts of all texts that a judge learns from.

    Attributes:
        found: The numbers of their features, one part behind the other.
        begins: Where each part begins, and the end.
        values: What a feature of each part counts.
        texts: Of which text each is.
        counts: How much each counts.
        wanted: Whether each is of a text to hold: 1 or 0.
        hashes: The hash of each feature's number.
    """

    found: NDArray[np.int64]
    begins: NDArray[np.int64]
    values: NDArray[np.float64]
    texts: NDArray[np.int64]
    counts: NDArray[np.float64]
    wanted: NDArray[np.float64]
    hashes: NDArray[np.int64]

    def of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the features of some parts, for each of them the place of its part among these, and its value."""
        lengths = self.begins[rows + 1] - self.begins[rows]
        places = np.repeat(np.arange(len(rows)), lengths)
        shifted = np.arange(len(places)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return self.found[self.begins[rows][places] + shifted], places, self.values[rows][places]


def trained(task: Task, learned: list[Example]) -> Judge:
    """Return a judge: it learns that all parts of a text to hold are to hold, then the part alone that says so most."""
    read = _read(task, learned)
    shared = read.counts / np.where(read.wanted > 0, np.bincount(read.texts)[read.texts], 1)
    weights, bias = _descend(read, shared, task)
    weights, bias = _descend(read, read.counts * _telling(read, weights, bias), task)
    whole = np.zeros(task.buckets, dtype=int)
    np.add.at(whole, read.hashes % task.buckets, np.round(weights * task.scale).astype(int))
    return Judge(np.clip(whole, -127, 127).tolist(), round(bias * task.scale * UNIT), task.threshold)


def _read(task: Task, learned: list[Example]) -> Parts:
    rows, texts, counts, wanted = [], [], [], []
    for at, (each, count) in enumerate(task.taught(learned)):
        read = [sorted({zlib.crc32(name.encode()) for name in names}) for names in task.read(each.text)]
        for own in read:
            rows.append(np.array(own, dtype=np.int64))
            texts.append(at)
            counts.append(count)
            wanted.append(each.kind == task.wanted)
    hashes, found, seen = np.unique(np.concatenate(rows), return_inverse=True, return_counts=True)
    is_kept = (seen >= task.seen)[found]
    ends = np.concatenate([[0], np.cumsum(is_kept)])[np.cumsum([0, *map(len, rows)])]
    numbered = (np.cumsum(seen >= task.seen) - 1)[found[is_kept]]
    values = 1 / np.sqrt(np.maximum(1, np.array([len(own) for own in rows])))
    told = (np.array(counts), np.array(wanted, dtype=float))
    return Parts(numbered, ends, values, np.array(texts), *told, hashes[seen >= task.seen])


def _telling(read: Parts, weights: NDArray[np.float64], bias: float) -> NDArray[np.bool_]:
    """Return which parts are learned from: of a text to hold the one that says so most, of others all."""
    score = np.concatenate([
        bias + np.bincount(places, weights[found] * values, minlength=len(rows))
        for rows in np.array_split(np.arange(len(read.texts)), 100)
        for found, places, values in [read.of(rows)]
    ])  # fmt: skip
    best = np.full(read.texts.max() + 1, -np.inf)
    np.maximum.at(best, read.texts, score)
    told: NDArray[np.bool_] = (read.wanted == 0) | (score == best[read.texts])
    return told


def _descend(read: Parts, counts: NDArray[np.float64], task: Task) -> tuple[NDArray[np.float64], float]:
    """Learn by regularized dual averaging (AdaGrad, L1) on the logistic loss: most weights are none."""
    slopes, squares = np.zeros(len(read.hashes)), np.full(len(read.hashes), 1e-2)
    bias, bias_slope, bias_square, n = 0.0, 0.0, 1e-2, 0
    chance, some = np.random.default_rng(_SEED), np.flatnonzero(counts > 0)

    def weights(at: NDArray[np.int64]) -> NDArray[np.float64]:
        over = np.maximum(np.abs(slopes[at]) - task.least * n, 0)
        told: NDArray[np.float64] = -np.sign(slopes[at]) * over * task.rate / np.sqrt(squares[at])
        return told

    for _ in range(task.rounds):
        order = chance.permutation(some)
        for rows in np.array_split(order, len(order) // _BATCH + 1):
            n += len(rows)
            found, places, values = read.of(rows)
            score = bias + np.bincount(places, weights(found) * values, minlength=len(rows))
            slope = counts[rows] * (1 / (1 + np.exp(-np.clip(score, -30, 30))) - read.wanted[rows])
            own = slope[places] * values
            np.add.at(slopes, found, own)
            np.add.at(squares, found, own * own)
            bias_slope += float(slope.sum())
            bias_square += float((slope * slope).sum())
            bias = -bias_slope * task.rate / bias_square**0.5
    return weights(np.arange(len(slopes))), bias


def packed(judge: Judge) -> dict[str, str | int]:
    """Return a judge as JSON has it: how far it is from each weight to the next, and the weights."""
    gaps, own, last = bytearray(), array("b"), 0
    for at, weight in enumerate(judge.weights):
        if weight or at - last == _MOST_GAP:
            gaps.append(at - last)
            own.append(weight)
            last = at
    told = {"gaps": _compressed(bytes(gaps)), "weights": _compressed(own.tobytes())}
    return {"bias": judge.bias, "threshold": judge.threshold, "buckets": len(judge.weights), **told}


def _compressed(raw: bytes) -> str:
    """Return bytes as text. Nothing in them repeats but single bytes: whoever looks for more writes a tenth more."""
    shorter = zlib.compressobj(9, strategy=zlib.Z_HUFFMAN_ONLY)
    return base64.b85encode(shorter.compress(raw) + shorter.flush()).decode()


def written(folder: Path = FOLDER) -> str:
    """Return the file of the judges that learn from all texts."""
    learned = examples(folder)
    made = {task.name: packed(trained(task, learned)) for task in (ORDERS, SECRETS)}
    return json.dumps({"data": digest(folder), **made}, indent=1) + "\n"


def counted(own: list[Example], order: Judge, secret: Judge) -> dict[str, tuple[int, int]]:
    """Return how many of each kind are held, of how many."""
    held = Counter[str]()
    for _, kind, text, _ in own:
        composed = compatible(text)
        is_told = secrets.is_known_secret(composed) or secrets.is_made_by_machine(composed)
        held[kind] += is_told or secret.holds(secret_features(composed)) or is_instruction_like(text, order)
    return {kind: (held[kind], n) for kind, n in sorted(Counter(each.kind for each in own).items())}


def held_out() -> Iterator[tuple[str, dict[str, tuple[int, int]]]]:
    """Yield what the shipped door holds of each set that nothing was learned from."""
    found = examples(FOLDER / "held_out")
    for name in sorted({each.writer for each in found}):
        own = [each for each in found if each.writer == name]
        yield name, counted(own, ORDER_JUDGE, SECRET_JUDGE)


if __name__ == "__main__":
    if "--held-out" in sys.argv:
        sys.stdout.writelines(f"{name}: {counts}\n" for name, counts in held_out())
    else:
        JUDGES_FILE.write_text(written())
