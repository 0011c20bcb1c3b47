"""Memory as prompt text: escaped so that no content can forge structure, measured so that it fits. Pure."""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Self

from memory import prompts
from memory.config import CATEGORIES
from memory.context.tokens import count_tokens
from memory.facts.fact import Fact
from memory.screening.door import without_suspects
from memory.text import one_line

TextCounter = Callable[[str], int]

CUT_MARK: Final = "\n..."
_MOST_CHARS: Final = 300  # of one past message
_USER_LABELS: Final = {"work": "Work", "personal": "Personal", "topOfMind": "Current Focus"}
_HISTORY_LABELS: Final = {"recent": "Recent", "earlier": "Earlier", "background": "Background"}
# A content with `[goal | 0.90]` in it would look like two facts: it is shown as `(goal | 0.90)`.
_LABEL = re.compile(r"\[([^\[\]|]*\|[^\[\]]*)\]")
_ESCAPES = str.maketrans({"<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryData:
    """What may be injected.

    Attributes:
        user: Texts under `work`, `personal` and `topOfMind`.
        history: Texts under `recent`, `earlier` and `background`.
        facts: `Fact`s, or mappings with `content`, `category` and `confidence`; the order does not matter.
    """

    user: Mapping[str, object] = field(default_factory=dict)
    history: Mapping[str, object] = field(default_factory=dict)
    facts: Sequence[Fact | Mapping[str, object]] = ()

    @classmethod
    def of(cls, memory: Mapping[str, object]) -> Self:
        """Return what can be read of a mapping that anybody may have made."""
        user, history, facts = (memory.get(name) for name in ("user", "history", "facts"))
        return cls(
            user=user if isinstance(user, Mapping) else {},
            history=history if isinstance(history, Mapping) else {},
            facts=[fact for fact in facts if isinstance(fact, Fact | Mapping)] if isinstance(facts, Sequence) else (),
        )


def memory_data(facts: Iterable[Fact], texts: Mapping[str, str]) -> MemoryData:
    """Return facts, and section texts by name (`user.work`), as `format_memory_for_injection` takes them."""
    sides: dict[str, dict[str, str]] = {"user": {}, "history": {}}
    for name, text in texts.items():
        side, _, section = name.partition(".")
        sides[side][section] = text
    return MemoryData(user=sides["user"], history=sides["history"], facts=tuple(facts))


def format_memory_for_injection(
    memory: MemoryData | Mapping[str, object], max_tokens: int = 2000, token_counter: TextCounter = count_tokens
) -> str:
    """Return the text of the memory block, at most `max_tokens` long as `token_counter` measures it.

    "User Context:", "History:" and "Facts:", the facts sorted by confidence, highest first, one line each. When it
    is too long, facts go, the lowest confidence first; a fact that is too long by itself is skipped. Is it still
    too long, the text is cut and ends with a new line and three dots. It is empty where nothing fits.

    Args:
        memory: `MemoryData`, or a mapping with `user`, `history` and `facts` of the same shape.
        max_tokens: The budget, at least 0.
        token_counter: Tokens of a string.

    Raises:
        ValueError: If `max_tokens` is no whole number of at least 0.
    """
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 0:
        raise ValueError(f"max_tokens must be a whole number of at least 0, not {max_tokens!r}")
    data = memory if isinstance(memory, MemoryData) else MemoryData.of(memory)
    sections = _sections(data)
    active = [
        each
        for each in data.facts
        if (each.status if isinstance(each, Fact) else each.get("status", "active")) == "active"
    ]
    facts = sorted(map(_bounded, active), key=lambda fact: -fact[1])
    lines = [_line(*fact) for fact in facts if fact[2]]
    kept = [lines[place] for place in _fitting(sections, lines, max_tokens, token_counter)]
    # Without a section, the first fact is cut where no fact fits whole: a part of it is more than nothing.
    text = _join(sections, kept or (() if sections else lines[:1]))
    if token_counter(text) <= max_tokens:
        return text
    if token_counter(CUT_MARK) > max_tokens:
        return ""

    def is_too_long(chars: int) -> bool:
        return token_counter(text[:chars].rstrip() + CUT_MARK) > max_tokens

    return text[: bisect_left(range(1, len(text) + 1), True, key=is_too_long)].rstrip() + CUT_MARK


def render_memory_block(
    memory: MemoryData | Mapping[str, object], max_tokens: int, token_counter: TextCounter = count_tokens
) -> str:
    """Return the memory block as the model is sent it: fenced, with a sentence that says what it is.

    Fence and sentence count against `max_tokens`; where memory is empty or nothing of it fits, so is the block.
    """
    budget = max_tokens - token_counter(prompts.MEMORY_BLOCK.format(memory=""))
    while budget > 0:
        inner = format_memory_for_injection(memory, budget, token_counter)
        block = prompts.MEMORY_BLOCK.format(memory=inner)
        surplus = token_counter(block) - max_tokens
        if not inner.strip(".\n") or surplus <= 0:
            return block if inner.strip(".\n") else ""
        budget -= surplus  # tokens of joined texts do not add up exactly
    return ""


def fitting_facts(
    memory: MemoryData, max_tokens: int, token_counter: TextCounter = count_tokens
) -> list[Fact | Mapping[str, object]]:
    """Return so many of the facts, in the order given, as fit into the block together with its sections.

    A fact that is too long by itself is left out; of the others none is passed over for one that comes later.
    """
    room = max_tokens - token_counter(prompts.MEMORY_BLOCK.format(memory=""))
    fitting = _fitting(_sections(memory), [*map(fact_line, memory.facts)], room, token_counter)
    return [memory.facts[place] for place in fitting]


def fact_line(fact: Fact | Mapping[str, object]) -> str:
    """Return the one line of a fact, `- [{category} | {confidence:.2f}] {content}`."""
    return _line(*_bounded(fact))


def _line(category: str, confidence: float, content: str) -> str:
    return f"- [{category} | {confidence:.2f}] {content}"


def _bounded(fact: Fact | Mapping[str, object]) -> tuple[str, float, str]:
    """Return a fact as the block shows it: category and confidence within their bounds, the content escaped."""
    if isinstance(fact, Fact):
        return fact.category, fact.confidence, escape(fact.content)
    category, confidence, content = (fact.get(name) for name in ("category", "confidence", "content"))
    strength = 0.0
    # Infinities and NaN say nothing; a comparison takes whole numbers that are too long for a float.
    if isinstance(confidence, int | float) and not isinstance(confidence, bool) and abs(confidence) < math.inf:
        strength = float(min(1, max(0, confidence)))
    known = category if isinstance(category, str) and category in CATEGORIES else "context"
    return known, strength, escape(content) if isinstance(content, str) else ""


@lru_cache(maxsize=20_000)
def turn_line(day: str, speaker: str, text: str, most: int = _MOST_CHARS) -> str:
    """Return one past message as a dated line, without what must not stand in a prompt; empty if nothing is left."""
    shown = escape(without_suspects(text[: 2 * most], is_released=True)[0])
    return f"- {day} {speaker}: {shown[:most]}{'...' if len(shown) > most else ''}" if shown else ""


def escape(text: str) -> str:
    """Return text on one line that can forge neither a fact's label nor a tag."""
    return _LABEL.sub(r"(\1)", one_line(text)).translate(_ESCAPES)


def _sections(data: MemoryData) -> str:
    sides = [("User Context:", _USER_LABELS, data.user), ("History:", _HISTORY_LABELS, data.history)]
    parts = []
    for title, labels, texts in sides:
        lines = []
        for name, label in labels.items():
            value = texts.get(name)
            # Other programs keep {"summary": text}.
            text = value.get("summary") if isinstance(value, Mapping) else value
            if isinstance(text, str) and (shown := escape(text)):
                lines.append(f"- {label}: {shown}")
        if lines:
            parts.append("\n".join([title, *lines]))
    return "\n\n".join(parts)


def _join(sections: str, lines: Sequence[str]) -> str:
    facts = "\n".join(["Facts:", *lines]) if lines else ""
    return "\n\n".join(filter(None, [sections, facts]))


def _fitting(sections: str, lines: Sequence[str], max_tokens: int, token_counter: TextCounter) -> list[int]:
    """Return the places of the first lines that fit together with the sections, without those that do not alone."""
    room = left = max_tokens - token_counter(_join(sections, [""])) + 1  # no new line behind the last
    kept: list[int] = []
    for place, line in enumerate(lines):
        tokens = token_counter(line + "\n")
        if tokens <= left:
            kept.append(place)
            left -= tokens
        elif tokens <= room:
            break
    while kept and token_counter(_join(sections, [lines[place] for place in kept])) > max_tokens:
        kept.pop()  # tokens of joined texts do not add up exactly
    return kept
