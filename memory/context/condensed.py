"""A summary that is too long, in fewer of its own sentences: those that name what no other sentence names."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

from memory.text import fold

_SENTENCE_END = re.compile(r"(?<=[.!?\u3002])\s+")
_LEAST_WORDS: Final = 3  # "Dr." and "J." end no sentence
_WORD = re.compile(r"\w+")
# Letters of scripts that put no spaces between words.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]+")
_LEAST_LETTERS: Final = 5
_NAMED: Final = 3.0
"""What a name or a number counts, where another word counts 1: nobody can guess it from the rest."""


def condensed(summary: str, is_too_long: Callable[[str], bool]) -> str:
    """Return the sentences of a summary that tell most, in their order, as many as fit; asks no model.

    One sentence after the other is taken: the one with the most words for its length that none of those taken has. A
    small model that is asked to write its summary shorter drops names and dates, and now and then nearly all of it.

    Args:
        summary: Sentences, on one line or several.
        is_too_long: Says whether a text still is.

    Returns:
        What fits; empty where not one sentence does.
    """
    sentences = [(line, said) for line, text in enumerate(summary.split("\n")) for said in _sentences(text)]
    order = _most_told_first([said for _, said in sentences])

    def of(most: int) -> str:
        return _joined([sentences[at] for at in sorted(order[:most])])

    return of(bisect_left(range(1, len(order) + 1), True, key=lambda most: is_too_long(of(most))))


def _most_told_first(sentences: Sequence[str]) -> list[int]:
    """Return the places of sentences that tell something, each by what it adds to those before it."""
    worth = [_named(said) for said in sentences]
    told: set[str] = set()

    def added(at: int) -> float:
        return sum(each for word, each in worth[at].items() if word not in told) / len(sentences[at])

    # What a sentence adds only ever gets less: most of them are looked at once or twice.
    waiting = [(-added(at), at) for at in range(len(sentences))]
    heapify(waiting)
    order = []
    while waiting:
        _, at = heappop(waiting)
        now = (-added(at), at)
        if waiting and now > waiting[0]:
            heappush(waiting, now)
        elif now[0] < 0:
            order.append(at)
            told.update(worth[at])
    return order


def _sentences(line: str) -> Iterator[str]:
    begun = ""
    for part in _SENTENCE_END.split(line):
        begun = f"{begun} {part}".strip()
        if len(begun.split()) >= _LEAST_WORDS or _UNSPACED.search(begun):
            yield begun
            begun = ""
    if begun:
        yield begun


def _named(sentence: str) -> dict[str, float]:
    """Return the words by which a sentence tells something, each with what it counts."""
    found: dict[str, float] = {}
    for at, word in enumerate(_WORD.findall(sentence)):
        form = fold(word)
        if _UNSPACED.search(word):
            found.update((form[pair : pair + 2], 1.0) for pair in range(max(1, len(form) - 1)))
        elif any(char.isdigit() for char in word) or (at and word[0].isupper()):
            found[form] = _NAMED
        elif len(word) >= _LEAST_LETTERS:
            found.setdefault(form, 1.0)
    return found


def _joined(sentences: list[tuple[int, str]]) -> str:
    lines: dict[int, list[str]] = {}
    for line, said in sentences:
        lines.setdefault(line, []).append(said)
    return "\n".join(" ".join(said) for said in lines.values())
