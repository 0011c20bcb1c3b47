"""A fact's chain: every fact that it corrected or that corrected it, with all their revisions. Pure.

Whoever erases one of them wants none of the others back: they say what the fact said before, or in its place. What
they say and said is found in other texts by its words.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import cache, cached_property, lru_cache
from typing import Final, NamedTuple, Self

from memory.facts.fact import Fact, known_day
from memory.facts.words import UNSPACED, WORD, words
from memory.message import StoredMessage
from memory.text import normalize

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


class _FactWords(NamedTuple):
    """What one fact says: normalized, its words as they are compared, and those that tell it from others."""

    phrase: str
    words: frozenset[str]
    telling: tuple[str, ...]


@dataclass(frozen=True)
class Chain:
    """Facts that an erase takes together, and the messages that tell of them.

    Attributes:
        revisions: By a fact's id its words now and before, newest last.
        sources: By thread the messages that the facts came from, or that said them again.
    """

    revisions: tuple[Fact, ...]
    sources: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, revisions: Iterable[Fact], said: Iterable[tuple[str, tuple[str, ...]]] = ()) -> Self:
        """Return the chain of these revisions, and of what said them: a thread and its messages each."""
        sources: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
        for thread_id, ids in said:
            if thread_id:
                sources[thread_id] |= frozenset(ids)
        return cls(tuple(sorted(revisions, key=by_time)), dict(sources))

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its facts."""
        return tuple(dict.fromkeys(fact.id for fact in self.revisions))

    @cached_property
    def _said(self) -> tuple[_FactWords, ...]:
        phrases = dict.fromkeys(normalize(fact.content) for fact in self.revisions)
        return tuple(_FactWords(each, words(each), tuple(dict.fromkeys(_telling(each)))) for each in phrases)

    def is_in(self, thread_id: str, message: StoredMessage) -> bool:
        """Say whether a message goes with the facts: by where they came from, or by what it says."""
        is_source = thread_id in self.sources
        return message.id in self.sources.get(thread_id, ()) or self.is_told_in(message.text, is_source=is_source)

    def is_told_in(self, text: str, *, is_source: bool = False) -> bool:
        """Say whether a text holds what the facts say or said: all telling words of one of them.

        Args:
            text: The text.
            is_source: Whether it stands where they came from. There one telling word is enough, and of a fact that has
                none, all words.
        """
        has, has_stem, folded = _searched(text)

        def is_told(one: _FactWords) -> bool:
            if one.telling and one.phrase not in folded:
                return any(map(has, one.telling)) if is_source else all(map(has, one.telling))
            return one.phrase in folded or (is_source and bool(one.words) and all(map(has_stem, one.words)))

        return any(map(is_told, self._said))


def by_time(fact: Fact) -> tuple[str, str, int]:
    """Return what revisions are sorted by, oldest first."""
    return (fact.updated_at, fact.id, fact.revision)


def _telling(phrase: str) -> Iterator[str]:
    for word in WORD.findall(phrase):
        if UNSPACED.search(word):
            yield from _RUNS.findall(word)
        elif len(word) > 1 and words(word) - _EVERYDAY:
            yield word


# Every text of a journal is asked for the same words.
_stems = lru_cache(maxsize=4096)(words)


def _searched(text: str) -> tuple[Callable[[str], bool], Callable[[str], bool], str]:
    """Return what says whether a text has a word, or its stem, and the text as it is compared."""
    folded = normalize(text)
    stems = cache(lambda: words(folded))  # it costs time, and is asked only where there is something to find

    def has_stem(stem: str) -> bool:
        return stem in folded and stem in stems()

    def has(word: str) -> bool:
        is_inside = len(word) >= _INSIDE or UNSPACED.search(word) is not None
        return (is_inside and word in folded) or any(map(has_stem, _stems(word)))

    return has, has_stem, folded


def with_ends(facts: Iterable[Fact], every: Iterable[Fact], zone: tzinfo | None) -> list[Fact]:
    """Return the facts, each that was corrected with the day until which it was held: on which the other was said.

    Args:
        facts: Some of an owner's facts.
        every: All of them, with their history.
        zone: The user's.
    """
    # Computed when it is read, and not stored, so that an undo restores the end that the fact had.
    since = {(fact.replaces, fact.id): fact.created_at for fact in every}

    def end(fact: Fact) -> str:
        said = since.get((fact.id, fact.replaced_by), "") if fact.status == "superseded" else ""
        if fact.valid_to or not said:
            return fact.valid_to
        # What corrects it may have been said before it, and once more now.
        return known_day(said if said > fact.created_at else fact.updated_at, zone)

    return [replace(fact, valid_to=end(fact)) for fact in facts]


def linked(every: Iterable[Fact], fact_ids: Iterable[str], *, by_words: bool = True) -> frozenset[str]:
    """Return the ids of facts, and of those that hang together with them; an id that no fact has is left out.

    Two hang together if one took the other's place, or, `by_words`, if both say the same at some time.
    """
    neighbours: defaultdict[str, set[str]] = defaultdict(set)
    known = set()
    for fact in every:
        known.add(fact.id)
        for other in (f"says {normalize(fact.content)}" if by_words else "", fact.replaced_by):
            if other:
                neighbours[fact.id].add(other)
                neighbours[other].add(fact.id)
    found: set[str] = set()
    waiting = known.intersection(fact_ids)
    while waiting:
        found |= waiting
        waiting = {other for each in waiting for other in neighbours[each]} - found
    return frozenset(found & known)
