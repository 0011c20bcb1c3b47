"""Facts that say the same in nearly the same words: a prompt shows one of them. Pure."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from memory.facts.fact import Fact
from memory.facts.words import stem
from memory.text import normalize, word_set

_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
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
    words = _WORD.findall(_SUBJECT.sub("", content, count=1))
    names = tuple(normalize(_SHORT.sub("", word)) for word in words[1:] if word[:1].isupper() and word != "User")
    folded = (_SHORT.sub("", word) for word in map(normalize, words) if word not in _FILLERS)
    telling = Counter(
        "not" if word.endswith(("n't", "n\u2019t")) else stem(word) for word in folded if word not in _FILLERS
    )
    # Fillers alone tell facts apart where nothing else does.
    return (frozenset(telling.items()), names) if telling else normalize(content)
