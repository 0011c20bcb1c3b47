"""Texts compared by their words. Pure."""

import re
from typing import Final

from memory.text import normalize, word_set

WORD = re.compile(r"\w+")
# Scripts without spaces between words are compared by pairs of characters.
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")
_COMMON: Final = word_set("""
    a about also am an and any are as at be been but by can did do does for from had has have he her him his i if in
    is it its just me my not of on or our out she so that the their them they this to too up user us very was we were
    what when which who will with would you your
""")
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
