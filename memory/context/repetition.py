"""Loops that small models fall into when they write a summary, cut out of what they wrote. Pure."""

import re
from itertools import pairwise
from typing import Final

from memory.text import normalize

# So many words at most make the phrase that a loop repeats, and so often in a row makes a loop.
_LONGEST_PHRASE: Final = 12
_LOOP: Final = 4
# Shorter sentences ("He agreed.") may be meant twice.
_LEAST_WORDS: Final = 5
_WORD = re.compile(r"\S+\s*")
_SENTENCE_END = re.compile(r"(?<=[.!?\u3002\n])(?=\s)")


def without_loops(text: str) -> str:
    """Return a text without sentences that stood in it before, and with a phrase that repeats itself in a row once."""
    return _without_repeated_sentences(_without_repeated_phrases(text))


def _without_repeated_phrases(text: str) -> str:
    parts = _WORD.findall(text)
    words = [part.strip().casefold() for part in parts]
    dropped = [False] * len(words)
    for length in range(1, _LONGEST_PHRASE + 1):
        same = 0  # words in a row that equal those one phrase before
        for at in range(length, len(words) + 1):
            if at < len(words) and words[at] == words[at - length]:
                same += 1
                continue
            if same >= length * (_LOOP - 1):
                dropped[at - same : at] = [True] * same
            same = 0
    if not any(dropped):
        return text
    return "".join(part for part, is_repeated in zip(parts, dropped, strict=True) if not is_repeated).rstrip()


def _without_repeated_sentences(text: str) -> str:
    ends = [0, *(found.start() for found in _SENTENCE_END.finditer(text)), len(text)]
    kept, seen = [], set[str]()
    for start, end in pairwise(ends):
        sentence = normalize(text[start:end])
        if sentence not in seen or len(sentence.split()) < _LEAST_WORDS:
            kept.append(text[start:end])
        seen.add(sentence)
    return "".join(kept)
