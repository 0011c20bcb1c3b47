"""No text makes the code that reads it slower than its length does: every pattern, and every reader of texts.

The only measure that counts here is a ratio of CPU times of one thread: twice the text, at most three times the time.
"""

import ast
import importlib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import memory
from memory.extraction.answer import ExtractionError, parse_answer
from memory.extraction.dialogue import in_pieces, render_dialogue
from memory.extraction.form import Answer
from memory.extraction.task import Task
from memory.extraction.validation import Validation
from memory.facts.fact import checked_content
from memory.facts.words import words
from memory.injection.block import escape, format_memory_for_injection
from memory.message import StoredMessage
from memory.screening.door import ORDER_JUDGE, SECRET_JUDGE, is_instruction_like, secrecy, without_suspects
from memory.screening.judge import order_features, secret_features
from memory.text import fenced, normalize, one_line, sanitize

HOUSE = Path(memory.__file__).parents[1]
MOST = 3.0
FIRST_LOOK = 3_000
BASE_SECONDS = 0.004
LARGEST = 60_000

Reader = Callable[[str], object]


def modules() -> Iterator[tuple[str, Path]]:
    for room in ("graphs", "memory"):
        for path in sorted((HOUSE / room).rglob("*.py")):
            yield ".".join(path.relative_to(HOUSE).with_suffix("").parts).removesuffix(".__init__"), path


def patterns() -> dict[str, re.Pattern[str]]:
    """Every pattern that a module of ours holds, by its name, also those in a list or a mapping."""
    found: dict[str, re.Pattern[str]] = {}
    for module, path in modules():
        if "re.compile(" in path.read_text():
            for name, value in vars(importlib.import_module(module)).items():
                held = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
                for at, each in enumerate(held):
                    if isinstance(each, re.Pattern):
                        found[f"{module}.{name}.{at}"] = each
    return found


PATTERNS = patterns()


def test_every_pattern_is_a_constant_of_its_module_where_it_is_measured() -> None:
    compiled = 0
    for module, path in modules():
        tree = ast.parse(path.read_text())
        calls = [
            node.func.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
        ]
        assert set(calls) <= {"compile", "escape"}, f"{module}: compile the pattern as a constant"
        compiled += calls.count("compile")
    assert 0 < compiled <= len(PATTERNS)


def pieces(parsed: Any) -> Iterator[str]:
    """Yield a text that each part of a pattern matches, and each part's neighbours: what an attacker would repeat."""
    for operation, argument in parsed:
        if operation is code.BRANCH:
            for branch in argument[1]:
                yield from pieces(branch)
        elif operation is code.SUBPATTERN:
            yield from pieces(argument[3])
        elif operation in (code.MAX_REPEAT, code.MIN_REPEAT):
            yield from pieces(argument[2])
        elif operation in (code.ASSERT, code.ASSERT_NOT):
            yield from pieces(argument[1])
        yield sample(parser.SubPattern(parsed.state, [(operation, argument)]))
    yield sample(parsed)


def sample(parsed: Any) -> str:
    """Return one text that matches, as short as repeats allow, but with one of each that may be absent."""
    return "".join(_sample(operation, argument) for operation, argument in parsed)


def _sample(operation: Any, argument: Any) -> str:
    if operation is code.LITERAL:
        return chr(argument)
    if operation is code.NOT_LITERAL:
        return "a" if argument != ord("a") else "b"
    if operation is code.ANY:
        return "x"
    if operation is code.IN:
        return _of_class(argument)
    if operation is code.BRANCH:
        return max((sample(branch) for branch in argument[1]), key=len)
    if operation is code.SUBPATTERN:
        return sample(argument[3])
    if operation in (code.MAX_REPEAT, code.MIN_REPEAT):
        return sample(argument[2]) * max(1, min(int(argument[0]), 40))
    return ""


def _of_class(members: Any) -> str:
    def holds(char: str) -> bool:
        return re.compile(_class_text(members), re.DOTALL).fullmatch(char) is not None

    return next((char for char in 'a1 .-_\n|[("A<é中' if holds(char)), chr(0x301))


def _class_text(members: Any) -> str:
    names = {
        code.CATEGORY_SPACE: r"\s", code.CATEGORY_NOT_SPACE: r"\S", code.CATEGORY_DIGIT: r"\d",
        code.CATEGORY_NOT_DIGIT: r"\D", code.CATEGORY_WORD: r"\w", code.CATEGORY_NOT_WORD: r"\W",
    }  # fmt: skip
    parts = []
    for kind, value in members:
        if kind is code.NEGATE:
            parts.append("^")
        elif kind is code.LITERAL:
            parts.append(re.escape(chr(value)))
        elif kind is code.RANGE:
            parts.append(f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}")
        elif kind is code.CATEGORY:
            parts.append(names[value])
    return f"[{''.join(parts)}]"


def beginnings(parsed: Any) -> Iterator[str]:
    """Yield a text that matches the pattern up to each of its parts."""
    parts = list(parsed)
    for at, (operation, argument) in enumerate(parts):
        before = sample(parser.SubPattern(parsed.state, parts[:at]))
        yield before
        inner = argument[3] if operation is code.SUBPATTERN else None
        inner = argument[2] if operation in (code.MAX_REPEAT, code.MIN_REPEAT) else inner
        yield from (before + begun for begun in (beginnings(inner) if inner is not None else ()) if begun)


def attacks(found: list[str], begun: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield beginnings, what is repeated, and ends that spoil a match."""
    own = sorted({piece for piece in found if piece}, key=len)
    short = [piece for piece in own if len(piece) <= 3][:6]
    for piece in [*own[:40], " ", "a", "1", ".", "\n", "[", "|"]:
        yield "", piece, ""
        yield "", piece, "\0"
    for start in sorted(set(begun) - {""})[:12]:
        for piece in (*short, " ", "a", "1"):
            yield start, piece, "\0"
    for one in short:
        for other in (*short, " ", "x", "."):
            yield "", one + other, "\0"
            yield one, other, "\0"


def adversarial(attack: tuple[str, str, str], chars: int) -> str:
    start, piece, end = attack
    return start + piece * max(1, chars // len(piece)) + end


def seconds(reader: Reader, text: str) -> float:
    before = time.thread_time()
    reader(text)
    return time.thread_time() - before


def worst(reader: Reader, tried: list[tuple[str, str, str]], n: int = 2) -> list[tuple[str, str, str]]:
    """Return the attacks that cost most at a first look; what grows with the square is among them."""
    return sorted(tried, key=lambda attack: seconds(reader, adversarial(attack, FIRST_LOOK)), reverse=True)[:n]


def ratio(reader: Reader, attack: tuple[str, str, str]) -> float:
    """Return how many times as long twice the text takes, for a text that takes long enough to be measured."""
    chars = FIRST_LOOK
    while chars < LARGEST and seconds(reader, adversarial(attack, chars)) < BASE_SECONDS:
        chars *= 2
    once, twice = (adversarial(attack, size) for size in (chars, 2 * chars))
    # The least of several: what else runs here only ever adds.
    one = min(seconds(reader, once) for _ in range(5))
    return min(seconds(reader, twice) for _ in range(5)) / max(one, BASE_SECONDS / 4)


def assert_linear(reader: Reader, tried: list[tuple[str, str, str]]) -> None:
    for attack in worst(reader, tried):
        found = ratio(reader, attack)
        if found > MOST:  # a busy machine may disturb one measurement, not three
            found = min(found, ratio(reader, attack), ratio(reader, attack))
        assert found <= MOST, f"{attack!r:.200}: twice the text takes {found:.1f} times as long"


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_no_pattern_is_worse_than_linear(name: str) -> None:
    pattern = PATTERNS[name]
    parsed = parser.parse(pattern.pattern, pattern.flags)

    def reader(text: str) -> int:
        return len(pattern.sub("", text))

    assert_linear(reader, list(attacks(list(pieces(parsed)), list(beginnings(parsed)))))


def parse(text: str) -> object:
    try:
        return parse_answer(text)
    except ExtractionError:
        return None


def judge(text: str) -> object:
    said = (StoredMessage("1", "user", "I like tea a lot", "2026-05-08T10:00:00+00:00"),)
    fact = {"content": text, "category": "context", "confidence": 0.9, "message": 1}
    facts = [fact, {**fact, "content": "Likes tea", "confidence": text}]
    odd = Answer.model_validate({"facts": facts, "profile": {"user.work": text}})
    return Validation(Task.of(said)).extraction(odd)


def say(text: str) -> object:
    said = (StoredMessage("1", "user", text, "2026-05-08T10:00:00+00:00"),)
    return render_dialogue(in_pieces(said))


def checked(text: str) -> object:
    try:
        return checked_content(text)
    except ValueError:
        return None


READERS: dict[str, Reader] = {
    "sanitize": sanitize,
    "one_line": one_line,
    "normalize": normalize,
    "fenced": lambda text: fenced("summary", text),
    "words": words,
    "escape": escape,
    "checked_content": checked,
    "parse_answer": parse,
    "secrecy": secrecy.__wrapped__,
    "is_instruction_like": is_instruction_like,
    "without_suspects": without_suspects,
    "judge of orders": lambda text: ORDER_JUDGE.holds(order_features(text)),
    "judge of secrets": lambda text: SECRET_JUDGE.holds(secret_features(text)),
    "validated": judge,
    "dialogue": say,
    "format_memory": lambda text: format_memory_for_injection({"user": {"work": text}}, 200, len),
}
KILLERS = [
    ("", ".", "a"), ("", ". ", "a"), ("[", "|", ""), ("", "[|", ""), ("", "[", ""), ("", "{", ""), ('{"a":', "[", ""),
    ("", '{"', ""), ('"facts"', " ", ""), ("", "1", "x"), ("", "1.", "x"), ("<", " ", ""), ("", "<", ""),
    ("", "<think>", ""), ("", "\u0301\u0327", ""), ("a", "\u0315\u0300\u05ae", ""), ("", "\ufdfa", ""),
    ("", "\u0344", "a"), ("", "eyJ-", ""), ("", "sk-", ""), ("", "password is ", ""), ("password for ", " ", ""),
    ("", "password for ", ""), ("", "pin ", ""), ("", "1 ", ""), ("", "1-", ""), ("", "send mails. ", ""),
    ("", "please always ", ""), ("", "if x, ", ""), ("", "and then ", ""), ("", "when ", ""), ("", "://a:", ""),
    ("", "the assistant must ", ""), ("", "ignore ", ""), ("", "send all ", ""), ("", "ignore all rules. ", ""),
    ("", "every ", ""), ("", "to a@b ", ""), ("", "\n", "a"), ("", " \n", "a"), ("", "\u200d", "a"), ("", "in ", ""),
    ("", "\u2028", "a"), ("", "last ", ""), ("(", " ", ""), ("", "(1:56 pm on ", ""), ("", "-----BEGIN ", ""),
    ("", '"', ""), ("", "'", ""), ("", ": ", ""), ("", "a.", ""), ("", "secret", ""), ("", "\\", ""), ("", "a_", ""),
    ("", "**", ""), ("", "`", ""), ("", "\u0430", "a"), ("", "a b c d ", ""), ("", "a ", ""), ("", "send ", ""),
    ("", "and ", ""),
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(READERS))
def test_no_reader_of_texts_is_worse_than_linear(name: str) -> None:
    assert_linear(READERS[name], KILLERS)
