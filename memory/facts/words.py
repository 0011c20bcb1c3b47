"""Texts compared by their words, and which facts have to do with a text. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from math import log
from typing import Final

from memory.facts.fact import Fact
from memory.text import normalize

WORD = re.compile(r"\w+")
# Scripts without spaces between words are compared by pairs of characters.
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")
_COMMON_WORDS: Final = """
    a about also am an and any are as at be been but by can did do does for from had has have he her him his i if in
    is it its just me my not of on or our out she so that the their them they this to too up user us very was we were
    what when which who will with would you your
"""
_COMMON: Final = frozenset(_COMMON_WORDS.split())
_ENDINGS: Final = ("ing", "ed", "es", "s", "e")
# So many letters of a word stay at least: `red` is no form of `r`.
_LEAST: Final = 3
# So many letters are compared: `organizer` meets `organization`.
_STEM: Final = 6


def words(text: str) -> frozenset[str]:
    """Return the words of a text that tell it from others, shortened so that `lives` meets `lived`."""
    found: set[str] = set()
    for word in WORD.findall(normalize(text)):
        if UNSPACED.search(word):
            found.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif word not in _COMMON:
            found.add(_stem_of(word))
    return frozenset(found)


def _stem_of(word: str) -> str:
    """Return what an English word begins with in all its forms; other words as they are."""
    if not (word.isascii() and word.isalpha()):
        return word
    ending = next((each for each in _ENDINGS if word.endswith(each) and len(word) - len(each) >= _LEAST), "")
    return word.removesuffix(ending)[:_STEM]


def related(facts: Sequence[Fact], text: str, limit: int) -> list[Fact]:
    """Return the facts that share words with the text, the most related first.

    A shared word counts the more, the fewer facts have it; long facts do not win by length alone.

    Args:
        facts: What to choose from.
        text: What they should have to do with.
        limit: So many at most.
    """
    own = [(fact, words(fact.content)) for fact in facts]
    frequency = Counter(word for _, each in own for word in each)
    wanted = words(text)
    scores = {
        fact.id: sum(log(1 + len(own) / frequency[word]) for word in shared) / (len(each) + 2) ** 0.5
        for fact, each in own
        if (shared := each & wanted)
    }
    hits = sorted(
        (fact for fact in facts if fact.id in scores), key=lambda fact: (-scores[fact.id], -fact.confidence, fact.id)
    )
    return hits[:limit]
