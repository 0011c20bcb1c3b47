"""What a model answered, read with tolerance: fences, prose, thinking, a bare list, a truncated end. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard

MAX_ANSWER_CHARS: Final = 200_000
MAX_OBJECTS: Final = 200
_LISTS: Final = ("facts", "newFacts", "memories")
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_OPENING = re.compile(r"[{\[]")
_FACT_LIST = re.compile(r'"(?:facts|newFacts|memories)"\s*:\s*\[')


class ExtractionError(ValueError):
    """The model's answer holds no JSON that could be facts; `raw` is the answer."""

    def __init__(self, raw: str) -> None:
        super().__init__(f"no facts could be read from an answer of {len(raw)} characters")
        self.raw = raw


@dataclass(frozen=True, slots=True)
class Answer:
    """The parts of an answer as they were found; nothing in them is validated yet."""

    facts: tuple[object, ...] = ()
    profile: tuple[tuple[str, str], ...] = ()


def parse_answer(raw: str) -> Answer:
    """Return the facts and the profile sections of an answer.

    Raises:
        ExtractionError: If there is no JSON in it that could hold facts.
    """
    text = _THINKING.sub("", raw[:MAX_ANSWER_CHARS])
    for value in _values(text):
        answer = _answer(value, text)
        if answer is not None:
            return answer
    salvaged = tuple(_salvage(text))
    if not salvaged:
        raise ExtractionError(raw)
    return Answer(salvaged)


def _values(text: str) -> Iterator[object]:
    """Yield the JSON values that start anywhere in the text, the outermost first; bounded work."""
    at = 0
    for _ in range(MAX_OBJECTS):
        opening = _OPENING.search(text, at)
        if opening is None:
            return
        value, end = _decode(text, opening.start())
        if value is not None:
            yield value
        at = end


def _decode(text: str, start: int) -> tuple[object, int]:
    """Return the value at a position and where it ends; `None` and the next position if there is none."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start + 1


def _number(digits: str) -> float:
    """Read a whole number of any length: Python refuses to convert more than 4,300 digits."""
    return float(digits[:400])


_DECODER: Final = json.JSONDecoder(parse_int=_number)


def _answer(value: object, text: str) -> Answer | None:
    """Return the answer that a JSON value is; `None` if it is only a part of one."""
    if not value:
        return None if '"content"' in text else Answer()
    if isinstance(value, list):
        return Answer(tuple(value)) if all(_is_fact(each) for each in value) else None
    if not isinstance(value, Mapping) or not any(name in value for name in (*_LISTS, "profile")):
        return None
    facts: list[object] = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), [])
    return Answer(tuple(facts), tuple(_sections(value.get("profile"))))


def _is_fact(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping) and "content" in value


def _sections(profile: object) -> Iterator[tuple[str, str]]:
    pairs: list[tuple[object, object]] = []
    if isinstance(profile, Mapping):
        pairs = list(profile.items())
    elif isinstance(profile, list):
        pairs = [(each.get("section"), each.get("text")) for each in profile if isinstance(each, Mapping)]
    for name, text in pairs[:MAX_OBJECTS]:
        if isinstance(name, str) and isinstance(text, str):
            yield name, text


def _salvage(text: str) -> Iterator[Mapping[str, object]]:
    """Yield the whole objects of a list of facts that broke off, or has a broken object in it."""
    opening = _FACT_LIST.search(text)
    at = opening.end() if opening else 0
    for _ in range(MAX_OBJECTS):
        start = text.find("{", at)
        if start < 0:
            return
        value, at = _decode(text, start)
        if _is_fact(value):
            yield value
