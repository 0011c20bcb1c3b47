"""What a person may want to look at in their facts: over, stale, contradicting, nearly the same, secret. Pure.

No model is asked. Only facts that share a word which few others have are compared, so that many facts stay cheap.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memory.facts.fact import Fact, is_over, may_be_used, moment
from memory.facts.waiting import is_negated, is_newer_form, names_in, numbers_in
from memory.facts.words import words
from memory.screening.door import screened
from memory.text import normalize

Kind = Literal["secret", "order", "over", "contradiction", "repeat", "stale"]
KINDS: Final[tuple[Kind, ...]] = ("secret", "order", "over", "contradiction", "repeat", "stale")

STALE_DAYS: Final = 180
# A word that more facts than this share tells too little to compare them all with each other.
_RARE: Final = 20
# Of the words of two facts together, those that repeat each other share so many.
_ALIKE: Final = 0.6
# What a person has one of, or is one of, at a time. What stands before the value is the subject.
_SINGLE = re.compile(
    r"^(?P<subject>.{0,80}?\b(?:lives in|is living in|works (?:at|for|as)|"
    r"'s (?:name|birthday|job|favou?rite [\w ]{1,30}?) is|is called|was born (?:in|on)|is from|is married to|"
    r"is engaged to|studies at|drives an?|"
    r"(?:prefers?|wants?) (?:answers|replies) in))\s+(?P<value>.{1,200})$",
    re.IGNORECASE,
)
_AGE = re.compile(r"^(?P<subject>.{0,80}?\bis) (?P<value>\d{1,3}) years old", re.IGNORECASE)
_DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class FactIssue:
    """Something to look at.

    Attributes:
        kind: What it is.
        facts: One fact, or those that contradict or repeat each other, the newest first.
    """

    kind: Kind
    facts: tuple[Fact, ...]


def check(
    facts: Iterable[Fact], said: Mapping[str, str], now: float, *, stale_days: int = STALE_DAYS
) -> tuple[FactIssue, ...]:
    """Return what there is to look at, the most pressing first; a fact stands in one finding of a kind at most.

    Args:
        facts: The active ones, and what waits as it may hold a secret or reads as an order, though nobody put it aside.
        said: When each was said again last, by its id, ISO 8601.
        now: Seconds since 1970.
        stale_days: So many days without a word of it make a fact stale; a pinned one never is.
    """
    newest = sorted(facts, key=lambda fact: (fact.updated_at, fact.id), reverse=True)
    found: dict[Kind, list[FactIssue]] = {kind: [] for kind in KINDS}
    for fact in newest:
        verdict = screened(fact.content)
        if verdict and not may_be_used(fact):
            kind: Kind = "order" if verdict == "instruction_like" else "secret"
            found[kind].append(FactIssue(kind, (fact,)))
        if is_over(fact, now):
            found["over"].append(FactIssue("over", (fact,)))
        elif not fact.pinned and _days_since(fact, said.get(fact.id, ""), now) >= stale_days:
            found["stale"].append(FactIssue("stale", (fact,)))
    current = [fact for fact in newest if not is_over(fact, now)]
    against, alike = _compared(current)
    found["contradiction"] = [FactIssue("contradiction", each) for each in _groups(current, against)]
    found["repeat"] = [FactIssue("repeat", each) for each in _groups(current, alike - against)]
    return tuple(finding for kind in KINDS for finding in found[kind])


def _days_since(fact: Fact, said: str, now: float) -> float:
    times = [at.timestamp() for text in (fact.created_at, fact.updated_at, said) if (at := moment(text))]
    return (now - max(times)) / _DAY if times else 0.0


Pair = tuple[int, int]


def _compared(facts: Sequence[Fact]) -> tuple[set[Pair], set[Pair]]:
    """Return the pairs of places that contradict each other, and those that say nearly the same."""
    told = [words(fact.content) for fact in facts]
    against, alike = _of_one_subject(facts), set[Pair]()
    for first, second in worth_comparing(told):
        one, other = facts[first], facts[second]
        if is_newer_form(one.content, other.content) and _differs(one.content, other.content):
            against.add((first, second))
        elif len(told[first] & told[second]) >= _ALIKE * len(told[first] | told[second]) and not _is_apart(one, other):
            alike.add((first, second))
    return against, alike


def worth_comparing(told: Sequence[frozenset[str]]) -> set[Pair]:
    """Return the pairs of places that share a word which few others have: with each word, a bounded number.

    Args:
        told: The words of each fact.
    """
    places: defaultdict[str, list[int]] = defaultdict(list)
    for at, own in enumerate(told):
        for word in own:
            places[word].append(at)
    return {
        (first, second)
        for sharing in places.values()
        # Facts that say the same share all of their words: some of these are rare, unless very many facts say it.
        if len(sharing) <= _RARE
        for nth, first in enumerate(sharing)
        for second in sharing[nth + 1 :]
    }


def _differs(one: str, other: str) -> bool:
    """Say whether of two forms of one statement only one can be true: one denies it, or tells another number."""
    mine, its = numbers_in(one), numbers_in(other)
    return is_negated(one) != is_negated(other) or (bool(mine) and bool(its) and mine != its)


def _is_apart(one: Fact, other: Fact) -> bool:
    """Say whether two facts tell of other people, places or numbers, whatever words they share."""
    return names_in(one.content) != names_in(other.content) or numbers_in(one.content) != numbers_in(other.content)


def _of_one_subject(facts: Sequence[Fact]) -> set[Pair]:
    """Return the pairs that tell two values of what has one at a time: where somebody lives, what they are called."""
    values: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for at, fact in enumerate(facts):
        if is_negated(fact.content):
            continue
        match = _SINGLE.match(fact.content) or _AGE.match(fact.content)
        if match:
            values[normalize(match["subject"])].append((at, normalize(match["value"])))
    # Each only with the newest: of hundreds that say so, one is kept anyway.
    return {
        (first, at)
        for (first, newest), *older in values.values()
        for at, value in older[:_RARE]
        if not (words(value) <= words(newest) or words(newest) <= words(value))
    }


def _groups(facts: Sequence[Fact], pairs: Iterable[Pair]) -> list[tuple[Fact, ...]]:
    """Return the facts that hang together by pairs, the newest first."""
    leader = list(range(len(facts)))

    def lead(at: int) -> int:
        while leader[at] != at:
            leader[at] = at = leader[leader[at]]
        return at

    together = set[int]()
    for first, second in pairs:
        one, other = sorted((lead(first), lead(second)))
        leader[other] = one
        together |= {first, second}
    groups: defaultdict[int, list[Fact]] = defaultdict(list)
    for at in sorted(together):
        groups[lead(at)].append(facts[at])
    return [tuple(group) for group in groups.values()]
