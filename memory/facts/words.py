"""Texts compared by their words. Pure.

Which facts have to do with a text, and which say the same in nearly the same words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import log
from typing import Final

from memory.facts.fact import Fact
from memory.text import normalize, word_set

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
            found.add(stem(word))
    return frozenset(found)


def stem(word: str) -> str:
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


_WHOLEWORD = re.compile(r"\w+(?:['\u2019]\w+)*")
# Words that change nothing of what a sentence says. "Not", numbers and all that tells who, when and where stay.
_FILLERS: Final = word_set(
    "a an the user user's is are was were be been am do does did has have had very really also just currently now that"
    " which who of to in on at for with and as by their his her its it they he she"
)
# Whom a fact is about, at its beginning, in the six most used languages of the web besides English: no English sentence
# begins so.
_SUBJECT: Final = re.compile(
    r"^(?:(?:el|la) usuari[oa]|(?:der|die) (?:be)?nutzer(?:in)?|l['\u2019]utilisat(?:eur|rice)|[oa] usuári[oa]"
    r"|[oa] utilizadora?|пользовател(?:ь|ьница)|ユーザー(?:は|が)?)\s*",
    re.IGNORECASE,
)
_SHORT: Final = re.compile(r"['\u2019](?:s|re|ve|m|d|ll)$")


def without_repeats(facts: Iterable[Fact]) -> list[Fact]:
    """Return the facts, in their order, each of those that say the same once: the first of the strongest.

    A pinned one counts as the strongest.

    Two say the same if they have the same telling words, as often, and the names in the same order: "Ada likes Bob" and
    "Bob likes Ada" are two facts, and so are "likes tea" and "does not like tea".
    """
    ordered = list(facts)
    kept: dict[object, Fact] = {}
    for fact in ordered:
        said = _said(fact.content)
        other = kept.get(said)
        if other is None or (fact.pinned, fact.confidence) > (other.pinned, other.confidence):
            kept[said] = fact
    shown = {fact.id for fact in kept.values()}
    return [fact for fact in ordered if fact.id in shown]


@lru_cache(maxsize=1 << 14)  # a turn asks twice for each fact of its user: of 500 facts that was half of its work
def _said(content: str) -> object:
    """Return what a text says: equal for texts that say the same."""
    words = _WHOLEWORD.findall(_SUBJECT.sub("", content, count=1))
    names = tuple(normalize(_SHORT.sub("", word)) for word in words[1:] if word[:1].isupper() and word != "User")
    folded = (_SHORT.sub("", word) for word in map(normalize, words) if word not in _FILLERS)
    telling = Counter(
        "not" if word.endswith(("n't", "n\u2019t")) else stem(word) for word in folded if word not in _FILLERS
    )
    # Fillers alone tell facts apart where nothing else does.
    return (frozenset(telling.items()), names) if telling else normalize(content)
