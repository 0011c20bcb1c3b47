"""Texts compared by their words. Pure.

Which facts have to do with a text, which say the same in nearly the same words, and where erased words stand.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import log
from typing import Final, Self

from memory.facts.fact import Fact
from memory.text import normalize, word_set

_WORD = re.compile(r"\w+")
# Scripts without spaces between words are compared by pairs of characters.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")
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
    for word in _WORD.findall(normalize(text)):
        if _UNSPACED.search(word):
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


_RUNS = re.compile(r"[\u30a1-\u30ff]{2,}|[\u3400-\u9fff\uf900-\ufaff]+")
# Words of so many letters are also found inside others: compounds hold them.
_INSIDE: Final = 5
_EVERYDAY: Final = words(
    """
    able afraid again ago ai all almost already always answer anything app area around ask assistant away back bad be
    become before began begin being believe best better between big both bring brother build business busy buy call
    came car change chat child children city class close come company computer conversation cook could country course
    currently daily daughter day days different done down during each early easy eat else end english enjoy enough
    even evening ever every everything family far fast father favorite favourite feel felt few find first five food
    former found four free friend full game gave get girl give go goal going gone good got great group grow had half
    hand happy hard hate hear held hello help here high him hold home hope hour house how husband idea important
    information interested into job keep kept kid kind knew know knowledge known language large last late later learn
    leave left less let life like list little live long look lot love made main make man many may maybe mean meet
    member message might mind money month months more morning most mother move much must name near need never new next
    nice night nothing now number off office often ok okay old once one online only open order other our over own
    owner parents part partner past people person phone place plan play please prefer preference previous problem
    project put question quite ready real really recently remember reply right room run said same saw say school
    second see seen set several shall share should show since sister six sleep small some someone something
    sometimes son soon speak spend start state stay still stop study such sure system take talk team tell than thank
    thanks then there thing things think those though thought three through time today together told tomorrow tonight
    too took town tree try turn twice two under understand until use used usually very visit wait walk want watch way
    week weekend weeks well went where whether while whole whose why wife without woman word work world worry would
    write year years yes yesterday yet young zero aren cannot couldn didn doesn don hadn hasn haven isn ll re shouldn ve
    wasn weren won wouldn
    """
)


@dataclass(frozen=True, slots=True)
class _Said:
    """What one fact says: normalized, its words as they are compared, and those that tell it from others."""

    phrase: str
    words: frozenset[str]
    telling: tuple[str, ...]


# Every text of a journal is asked for the same words.
_stems = lru_cache(maxsize=4096)(words)


@dataclass(frozen=True, slots=True)
class Wording:
    """What facts said, in all their revisions."""

    said: tuple[_Said, ...]

    @classmethod
    def of(cls, contents: Iterable[str]) -> Self:
        """Return the wording of these contents."""
        phrases = [normalize(content) for content in dict.fromkeys(contents)]
        return cls(tuple(_Said(each, words(each), tuple(dict.fromkeys(_telling(each)))) for each in phrases))

    def is_mentioned_in(self, text: str) -> bool:
        """Say whether a text has one telling word of the facts: enough in a thread that they came from.

        Of a fact that has none, it has to have all words.
        """
        has, has_stem, folded = _searched(text)
        return any(
            any(map(has, one.telling))
            or (not one.telling and (one.phrase in folded or (bool(one.words) and all(map(has_stem, one.words)))))
            for one in self.said
        )

    def is_told_in(self, text: str) -> bool:
        """Say whether a text has all telling words of one of the facts: enough anywhere."""
        has, _, folded = _searched(text)
        return any(one.phrase in folded or (bool(one.telling) and all(map(has, one.telling))) for one in self.said)


def _telling(phrase: str) -> Iterable[str]:
    for word in _WORD.findall(phrase):
        if _UNSPACED.search(word):
            yield from _RUNS.findall(word)
        elif len(word) > 1 and words(word) - _EVERYDAY:
            yield word


def _searched(text: str) -> tuple[Callable[[str], bool], Callable[[str], bool], str]:
    """Return what says whether a text has a word, or its stem, and the text as it is compared."""
    folded = normalize(text)
    stems = cache(lambda: words(folded))  # it costs time, and is asked only where there is something to find

    def has_stem(stem: str) -> bool:
        return stem in folded and stem in stems()

    def has(word: str) -> bool:
        is_inside = len(word) >= _INSIDE or _UNSPACED.search(word) is not None
        return (is_inside and word in folded) or any(map(has_stem, _stems(word)))

    return has, has_stem, folded


_WHOLE_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
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
    words = _WHOLE_WORD.findall(_SUBJECT.sub("", content, count=1))
    names = tuple(normalize(_SHORT.sub("", word)) for word in words[1:] if word[:1].isupper() and word != "User")
    folded = (_SHORT.sub("", word) for word in map(normalize, words) if word not in _FILLERS)
    telling = Counter(
        "not" if word.endswith(("n't", "n\u2019t")) else stem(word) for word in folded if word not in _FILLERS
    )
    # Fillers alone tell facts apart where nothing else does.
    return (frozenset(telling.items()), names) if telling else normalize(content)
