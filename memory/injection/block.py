"""Memory as prompt text: escaped so that no content can forge structure, measured so that it fits. Pure."""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Final

from memory import prompts
from memory.context.tokens import count_tokens
from memory.facts.fact import Fact
from memory.facts.words import words
from memory.forms import read_as
from memory.recall import Document
from memory.screening.door import without_suspects
from memory.text import one_line, sentences

TextCounter = Callable[[str], int]

CUT_MARK: Final = "\n..."
_MOST_CHARS: Final = 300  # of one past message
_LABELS: Final = {
    "User Context:": {"user.work": "Work", "user.personal": "Personal", "user.topOfMind": "Current Focus"},
    "History:": {"history.recent": "Recent", "history.earlier": "Earlier", "history.background": "Background"},
}
# A content with `[goal | 0.90]` in it would look like two facts: it is shown as `(goal | 0.90)`.
_LABEL = re.compile(r"\[([^\[\]|]*\|[^\[\]]*)\]")
_FRAME: Final = prompts.MEMORY_BLOCK.format(memory="")
_NEEDED: Final = ("content", "category", "confidence", "status")
_ESCAPES = str.maketrans({"<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, kw_only=True)
class MemoryData:
    """What may be injected.

    Attributes:
        user: Texts under `work`, `personal` and `topOfMind`.
        history: Texts under `recent`, `earlier` and `background`.
        facts: `Fact`s, or mappings with `content`, `category` and `confidence`; the order does not matter. What is no
            fact is left out.
    """

    user: Mapping[str, object] = field(default_factory=dict)
    history: Mapping[str, object] = field(default_factory=dict)
    facts: Sequence[Fact | Mapping[str, object]] = ()


def format_memory_for_injection(
    memory: MemoryData | Mapping[str, object], max_tokens: int = 2000, token_counter: TextCounter = count_tokens
) -> str:
    """Return the text of the memory block, at most `max_tokens` long as `token_counter` measures it.

    "User Context:", "History:" and "Facts:", the facts sorted by confidence, highest first, one line each. Facts
    that do not fit go, the lowest confidence first; one that is too long by itself is skipped. A text that is still
    too long is cut, and ends with a new line and three dots. It is empty where nothing fits.

    Args:
        memory: `MemoryData`, or a mapping with `user`, `history` and `facts` of the same shape.
        max_tokens: The budget, at least 0.
        token_counter: Tokens of a string.

    Raises:
        ValueError: If `max_tokens` is no whole number of at least 0.
    """
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 0:
        raise ValueError(f"max_tokens must be a whole number of at least 0, not {max_tokens!r}")
    # What cannot be read of it is left out.
    memory = vars(memory) if isinstance(memory, MemoryData) else memory
    texts = {
        f"{side}.{name}": text
        for side in ("user", "history")
        if isinstance(said := memory.get(side), Mapping)
        for name, text in said.items()
    }
    known, facts = memory.get("facts"), list[Fact]()
    for each in known if isinstance(known, Sequence) else ():
        with suppress(ValueError):
            facts.append(each if isinstance(each, Fact) else read_as(Fact, each, _NEEDED))
    return _block_text(_sections(texts), facts, max_tokens, token_counter)


def render_memory_block(
    texts: Mapping[str, object], facts: Iterable[Fact], max_tokens: int, token_counter: TextCounter
) -> str:
    """Return the memory block as the model is sent it: fenced, with a sentence that says what it is.

    Fence and sentence count against `max_tokens`; where memory is empty or nothing of it fits, so is the block.

    Args:
        texts: The profile's sections by their names, such as `user.work`.
        facts: In any order; the strongest are told first.
        max_tokens: The budget.
        token_counter: Tokens of a string.
    """
    budget, sections, known = max_tokens - token_counter(_FRAME), _sections(texts), [*facts]
    while budget > 0:
        inner = _block_text(sections, known, budget, token_counter)
        block = prompts.MEMORY_BLOCK.format(memory=inner) if inner.strip(".\n") else ""
        surplus = token_counter(block) - max_tokens
        if surplus <= 0:
            return block
        budget -= surplus  # tokens of joined texts do not add up exactly
    return ""


def fitting_facts(
    texts: Mapping[str, object], facts: Sequence[Fact], max_tokens: int, token_counter: TextCounter
) -> list[Fact]:
    """Return the first facts, in the order given, that fit into the block together with its sections.

    A fact that is too long by itself is left out.
    """
    room = max_tokens - token_counter(_FRAME)
    return [facts[at] for at in _fitting(_sections(texts), map(fact_line, facts), room, token_counter)]


def fact_line(fact: Fact) -> str:
    """Return the one line of a fact, `- [{category} | {confidence:.2f}] {content}`."""
    return _labelled(fact, escape(fact.content))


def _labelled(fact: Fact, shown: str) -> str:
    return f"- [{fact.category} | {fact.confidence:.2f}] {shown}"


@lru_cache(maxsize=20_000)
def turn_line(day: str, speaker: str, text: str, most: int = _MOST_CHARS) -> str:
    """Return one past message as a dated line, without what must not stand in a prompt; empty if nothing is left."""
    shown = escape(without_suspects(text[: 2 * most], is_released=True))
    return f"- {day} {speaker}: {shown[:most]}{'...' if len(shown) > most else ''}" if shown else ""


def escape(text: str) -> str:
    """Return text on one line that can forge neither a fact's label nor a tag."""
    return _LABEL.sub(r"(\1)", one_line(text)).translate(_ESCAPES)


def line_of(document: Document, query: str = "") -> str:
    """Return a past turn as a prompt shows it; empty if it must not be shown.

    Args:
        document: The turn.
        query: Of a long one the sentences are shown that share most words with this; without it, the first.
    """
    who, text = document.who or ("assistant" if document.is_reply else "user"), document.text
    if len(text) > _MOST_CHARS and (wanted := words(query) & words(text)):
        parts = sentences(text)
        rests = ["\n".join(parts[at:]) for at in reversed(range(len(parts)))]
        text = max(rests, key=lambda rest: len(wanted & words(rest[:_MOST_CHARS])))
    return turn_line(document.when[:10], who, text)


def _block_text(sections: str, facts: Iterable[Fact], max_tokens: int, token_counter: TextCounter) -> str:
    active = sorted((fact for fact in facts if fact.status == "active"), key=lambda fact: -fact.confidence)

    def lines() -> Iterator[str]:
        return (_labelled(fact, shown) for fact in active if (shown := escape(fact.content)))

    kept = _fitting(sections, lines(), max_tokens, token_counter).values()
    # Without sections, and where no fact fits whole, the first one is cut.
    text = _join(sections, kept or (() if sections else [*islice(lines(), 1)]))
    if token_counter(text) <= max_tokens:
        return text
    if token_counter(CUT_MARK) > max_tokens:
        return ""

    def is_too_long(chars: int) -> bool:
        return token_counter(text[:chars].rstrip() + CUT_MARK) > max_tokens

    return text[: bisect_left(range(1, len(text) + 1), True, key=is_too_long)].rstrip() + CUT_MARK


def _sections(texts: Mapping[str, object]) -> str:
    parts = []
    for title, labels in _LABELS.items():
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


def _join(sections: str, lines: Collection[str]) -> str:
    facts = "\n".join(["Facts:", *lines]) if lines else ""
    return "\n\n".join(filter(None, [sections, facts]))


def _fitting(sections: str, lines: Iterable[str], max_tokens: int, token_counter: TextCounter) -> dict[int, str]:
    """Return the first lines that fit beside the sections, by their places; one too long by itself is skipped."""
    room = left = max_tokens - token_counter(_join(sections, [""])) + 1  # no new line behind the last
    kept: dict[int, str] = {}
    for place, line in enumerate(lines):
        tokens = token_counter(line + "\n")
        if tokens <= left:
            kept[place] = line
            left -= tokens
        elif tokens <= room:
            break
    while kept and token_counter(_join(sections, kept.values())) > max_tokens:
        kept.popitem()  # tokens of joined texts do not add up exactly
    return kept
