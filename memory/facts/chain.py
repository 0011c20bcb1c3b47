"""A fact's chain: every fact that it corrected or that corrected it, with all their revisions. Pure.

Whoever erases one of them wants none of the others back: they say what the fact said before, or in its place.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from memory.facts.fact import Fact
from memory.facts.words import Wording
from memory.message import StoredMessage
from memory.text import normalize


@dataclass(frozen=True, slots=True)
class Chain:
    """What goes together.

    Attributes:
        revisions: All that each fact says and said, newest last.
        sources: The messages that they came from, or that said them again, by thread. The threads still hold them.
        wording: Finds what they say and said in other texts.
    """

    revisions: tuple[Fact, ...]
    sources: Mapping[str, frozenset[str]]
    wording: Wording

    @classmethod
    def of(cls, revisions: Iterable[Fact], said: Iterable[tuple[str, tuple[str, ...]]]) -> Self:
        """Return the chain of these revisions, and of what said them: a thread and its messages each."""
        facts = tuple(sorted(revisions, key=by_time))
        sources: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
        for thread_id, ids in said:
            if thread_id:
                sources[thread_id] |= frozenset(ids)
        return cls(facts, dict(sources), Wording.of(fact.content for fact in facts))

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its facts."""
        return tuple(dict.fromkeys(fact.id for fact in self.revisions))

    @property
    def contents(self) -> tuple[str, ...]:
        """What its facts say and said."""
        return tuple(dict.fromkeys(fact.content for fact in self.revisions))

    def is_in(self, thread_id: str, message: StoredMessage) -> bool:
        """Say whether a message goes with the facts: by where they came from, or by what it says."""
        return message.id in self.sources.get(thread_id, ()) or self.is_told_in(thread_id, message.text)

    def is_told_in(self, thread_id: str, text: str) -> bool:
        """Say whether a text of a thread holds what the facts say or said (the rule is that of `Wording`)."""
        is_source = thread_id in self.sources
        return self.wording.is_mentioned_in(text) if is_source else self.wording.is_told_in(text)


def by_time(fact: Fact) -> tuple[str, str, int]:
    """Return what revisions are sorted by, oldest first."""
    return (fact.updated_at, fact.id, fact.revision)


def with_ends(facts: Iterable[Fact], every: Iterable[Fact]) -> list[Fact]:
    """Return the facts, each that was corrected with the day until which it was held: on which the other was said.

    Args:
        facts: Some of an owner's facts.
        every: All of them, with their history.
    """
    # Found when asked for, and not stored: an undo gives a fact back as it was, with its own end or none.
    since = {(fact.replaces, fact.id): fact.created_at for fact in every}

    def end(fact: Fact) -> str:
        said = since.get((fact.id, fact.replaced_by), "") if fact.status == "superseded" else ""
        if fact.valid_to or not said:
            return fact.valid_to
        # What corrects it may have been said before it, and once more now.
        return (said if said > fact.created_at else fact.updated_at)[:10]

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
