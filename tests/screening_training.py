"""Train the learned judges of the door, and measure them on writers that they did not learn from.

`python -m tests.screening_training` writes `memory/screening/judges.json` from the texts in `tests/data/screening`,
the same bytes each time. `python -m tests.screening_training --cross-validate` leaves out each writer in turn, and
counts what the door (rules and judges) holds of that one's texts; `--texts` shows what is missed and held wrongly.
`python -m tests.screening_training --held-out` counts what the door as it is shipped holds of two writers more.
"""

import base64
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

from memory.screening import secrets
from memory.screening.door import (
    JUDGES_FILE,
    ORDER_JUDGE,
    SECRET_JUDGE,
    compatible,
    is_instruction_like,
    plain,
)
from memory.screening.judge import UNIT, Judge, features, parts, tokens

FOLDER: Final = Path(__file__).parent / "data" / "screening"
# A word is known if it stands in so many texts, a feature counts if it does.
_COMMON: Final = 4
_SEEN: Final = 4
_ROUNDS: Final = 12
_RATE: Final = 0.4
_DECAY: Final = 0.001
_SCALE: Final = 25
_SEED: Final = 11
_FACTS: Final = 3000
_TALK: Final = 1500
_NUMBERS: Final = 30_000
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
    """What one judge learns: which texts to hold, in which form it reads them, and how many features it may have."""

    name: str
    wanted: str
    cased: bool
    buckets: int
    threshold: int
    plain: int
    others: tuple[str, ...]
    form: Callable[[str], str]
    made: Callable[[], Iterator[Example]]


def examples(folder: Path = FOLDER) -> list[Example]:
    """Return all texts, in the order of their files and lines."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            each = json.loads(line)
            found.append(Example(path.stem, each["kind"], each["text"]))
    return found


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


ORDERS: Final = Task(
    "orders", "attacks", False, 1 << 16, -1500, 14000, ("wishes", "secrets", "not_secrets"), plain, talk
)
SECRETS: Final = Task(
    "secrets", "secrets", True, 1 << 17, -2000, 0, ("wishes", "attacks", "not_secrets"), compatible, numbers
)


def digest(folder: Path = FOLDER) -> str:
    """Return the digest of the texts."""
    paths = [*sorted(folder.glob("*.jsonl")), folder / "talk.json", folder / "numbers.json"]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def trained(task: Task, learned: Iterable[Example]) -> Judge:
    """Return a judge by stochastic gradient descent (AdaGrad) on the logistic loss."""
    labelled = list(_labelled(task, [*learned, *facts(), *task.made()]))
    spread = Counter(word for found, _ in labelled for word in set(found) if word[0].isalpha())
    common = frozenset(word for word, n in spread.items() if n >= _COMMON)
    rows = [(sorted(features(found, common, task.buckets)), wanted) for found, wanted in labelled]
    seen = Counter(at for row, _ in rows for at in row)
    weights, bias = _descend(
        [([at for at in row if seen[at] >= _SEEN], 1 / max(1, len(row)) ** 0.5, wanted) for row, wanted in rows],
        task.buckets,
    )
    rounded = (max(-127, min(127, round(weight * _SCALE))) for weight in weights)
    whole = [weight if abs(weight) > 1 else 0 for weight in rounded]  # what says next to nothing takes its room
    return Judge(whole, round(bias * _SCALE * UNIT), task.threshold, task.plain, common)


def _labelled(task: Task, learned: Iterable[Example]) -> Iterator[tuple[list[str], bool]]:
    """Yield the tokens to learn from: what is wanted as a whole, all else also by its sentences."""
    for _, kind, text in learned:
        line, wanted = task.form(text), kind == task.wanted
        if kind not in (task.wanted, *task.others):
            continue
        for form in _with_names(line):
            yield from ((tokens(part, cased=task.cased), wanted) for part in ([form] if wanted else parts(form)))


def _with_names(text: str) -> Iterator[str]:
    """Yield a text, and if it tells of the user, also with a name in that place: facts tell of other people, too."""
    yield text
    for begin in ("the user", "user", "The user", "User"):
        if text.startswith((f"{begin} ", f"{begin}'s ")):
            yield _NAMES[zlib.crc32(text.encode()) % len(_NAMES)] + text[len(begin) :]
            return


def _descend(rows: list[tuple[list[int], float, bool]], buckets: int) -> tuple[list[float], float]:
    weights, squares = [0.0] * buckets, [1e-3] * buckets
    bias, bias_square = 0.0, 1e-3
    order, chance = list(range(len(rows))), random.Random(_SEED)
    for _ in range(_ROUNDS):
        chance.shuffle(order)
        for at in order:
            row, value, wanted = rows[at]
            score = bias + value * sum(weights[n] for n in row)
            slope = 1 / (1 + math.exp(-max(-30.0, min(30.0, score)))) - wanted
            bias_square += slope * slope
            bias -= _RATE * slope / bias_square**0.5
            for n in row:
                step = slope * value + _DECAY * weights[n]
                squares[n] += step * step
                weights[n] -= _RATE * step / squares[n] ** 0.5
    return weights, bias


def packed(judge: Judge) -> dict[str, object]:
    """Return a judge as JSON has it."""
    raw = zlib.compress(array("b", judge.weights).tobytes(), 9)
    return {
        "bias": judge.bias,
        "threshold": judge.threshold,
        "plain": judge.plain,
        "common": " ".join(sorted(judge.common)),
        "weights": base64.b85encode(raw).decode(),
    }


def written(folder: Path = FOLDER) -> str:
    """Return the file of the judges that learn from all texts."""
    learned = examples(folder)
    made = {"orders": packed(trained(ORDERS, learned)), "secrets": packed(trained(SECRETS, _in_english(learned)))}
    return json.dumps({"data": digest(folder), **made}, indent=1) + "\n"


def _in_english(found: list[Example]) -> list[Example]:
    """Return the texts without those of eleven languages, which tell no values: with them, more secrets are missed."""
    return [each for each in found if each.writer != "writer_7"]


def cross_validated(found: list[Example]) -> Iterator[tuple[str, dict[str, tuple[int, int]], list[str]]]:
    """Yield for each writer what the door holds if it learned from the others: counts by kind, and what went wrong."""
    for writer in sorted({each.writer for each in _in_english(found) if each.writer.startswith("writer")}):
        others = [each for each in found if each.writer != writer]
        order, secret = trained(ORDERS, others), trained(SECRETS, _in_english(others))
        own = [each for each in found if each.writer == writer]
        yield writer, *counted(own, order, secret)


def counted(own: list[Example], order: Judge, secret: Judge) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """Return how many of each kind are held, and lines about what is missed or held wrongly."""
    held, wrong = Counter[str](), []
    for _, kind, text in own:
        composed = compatible(text)
        is_told = secrets.is_known_secret(composed) or secrets.may_hold_secret(composed)
        is_held = is_told or secret.holds(composed, cased=True) or is_instruction_like(text, order)
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
