"""A fact's chain: every fact that it corrected or that corrected it, with all their revisions. Pure but for reading.

Whoever erases one of them wants none of the others back: they say what the fact said before, or in its place.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from langgraph.store.base import Item

from memory.effects import StoreEffects, scan, side_by_side
from memory.facts.confirmations import Confirmations
from memory.facts.fact import Fact, FactNotFound, checked_period
from memory.facts.rows import read_fact_set, revisions_of
from memory.facts.rules import Confirmation, FactSet
from memory.facts.words import Wording
from memory.message import StoredMessage
from memory.namespaces import Owner
from memory.text import normalize


@dataclass(frozen=True, slots=True)
class Chain:
    """What goes together.

    Attributes:
        revisions: All that each fact says and said, newest last.
        sources: The messages that they came from, or that said them again, by thread. The threads still hold them.
        wording: Finds what they say and said in other texts.
        keys: The store keys of those that are no history.
        only_echoes: Whether only what assistants said of them elsewhere goes: what a person said there stays.
    """

    revisions: tuple[Fact, ...]
    sources: Mapping[str, frozenset[str]]
    wording: Wording
    keys: tuple[str, ...] = ()
    only_echoes: bool = False

    @classmethod
    def of(
        cls, revisions: Iterable[Fact], confirming: Iterable[tuple[str, tuple[str, ...]]], keys: Iterable[str] = ()
    ) -> Self:
        """Return the chain of these revisions and of what confirmed them: a thread and its messages each."""
        facts = tuple(sorted(revisions, key=lambda fact: (fact.updated_at, fact.id, fact.revision)))
        sources: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
        for thread_id, ids in (*((fact.thread_id, fact.message_ids) for fact in facts), *confirming):
            if thread_id:
                sources[thread_id] |= frozenset(ids)
        return cls(facts, dict(sources), Wording.of(fact.content for fact in facts), tuple(keys))

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
        if self.only_echoes and message.role != "assistant":
            return False
        return message.id in self.sources.get(thread_id, ()) or self.is_told_in(thread_id, message.text)

    def is_told_in(self, thread_id: str, text: str) -> bool:
        """Say whether a text of a thread holds what the facts say or said (the rule is that of `Wording`)."""
        is_source = thread_id in self.sources
        return self.wording.is_mentioned_in(text) if is_source else self.wording.is_told_in(text)


@dataclass(frozen=True, slots=True)
class FactHistory:
    """An owner's facts with all that they said.

    Attributes:
        facts: What is there.
        past: The revisions that are no longer true, oldest first.
        said_again: What said each fact again, by its id.
        items: The items of history, with records of what was deleted and answered.
    """

    facts: FactSet
    past: Sequence[Fact]
    said_again: Mapping[str, Sequence[Confirmation]]
    items: Sequence[Item]

    @property
    def every(self) -> tuple[Fact, ...]:
        """All revisions, those that are no longer true first."""
        return (*self.past, *self.facts.rows.values())

    def chain_of(self, revisions: Collection[Fact]) -> Chain:
        """Return these revisions as what goes together."""
        ids = {fact.id for fact in revisions}
        again = [(each.thread_id, each.message_ids) for one in sorted(ids) for each in self.said_again.get(one, ())]
        return Chain.of(revisions, again, [key for key, fact in self.facts.rows.items() if fact.id in ids])

    def chain_with(self, fact_id: str) -> Chain:
        """Return the chain of a fact, also of one that is only history; `FactNotFound` if none has or had the id."""
        ids = linked(self.every, fact_id)
        if not ids:
            raise FactNotFound(fact_id)
        return self.chain_of([fact for fact in self.every if fact.id in ids])

    def first_said_in(self, thread_id: str) -> Chain:
        """Return the facts that were first said in a thread, as what its echoes elsewhere are found by."""
        said = Chain.of([fact for fact in self.every if fact.thread_id == thread_id], ())
        return replace(said, only_echoes=True)


def read_fact_history(owner: Owner) -> StoreEffects[FactHistory]:
    """Read an owner's facts with all that they said."""
    facts, past, again = yield from side_by_side(
        read_fact_set(owner), scan(owner.namespace("history")), scan(owner.namespace("confirmations"))
    )
    said = {item.key: Confirmations.from_json(item.value).said for item in again}
    return FactHistory(facts, revisions_of(past, facts.epoch), said, past)


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
        # What corrects it may have been said before it, and once more now.
        return fact.valid_to or (said and checked_period((said if said > fact.created_at else fact.updated_at)[:10]))

    return [replace(fact, valid_to=end(fact)) for fact in facts]


def corrections(facts: Collection[Fact], fact_id: str) -> list[Fact]:
    """Return all revisions of a fact, of those that it corrected and that corrected it; oldest first, what is now last.

    Args:
        facts: All facts of an owner, those of history first.
        fact_id: Which fact; none is returned if no fact has the id.
    """
    ids = linked(facts, fact_id, by_words=False)
    found = [fact for fact in facts if fact.id in ids]
    is_past = ("superseded", "ended", "evicted")
    return sorted(
        with_ends(found, facts),
        key=lambda fact: (fact.status not in is_past, fact.updated_at, fact.created_at, fact.revision),
    )


def linked(facts: Iterable[Fact], fact_id: str, *, by_words: bool = True) -> frozenset[str]:
    """Return the ids of the facts that hang together with one; none if no fact has the id.

    Two hang together if one took the other's place, or, `by_words`, if both say the same at some time.
    """
    neighbours: defaultdict[str, set[str]] = defaultdict(set)
    known = set()
    for fact in facts:
        known.add(fact.id)
        for other in (f"says {normalize(fact.content)}" if by_words else "", fact.replaced_by):
            if other:
                neighbours[fact.id].add(other)
                neighbours[other].add(fact.id)
    if fact_id not in known:
        return frozenset()
    found, waiting = {fact_id}, [fact_id]
    while waiting:
        fresh = neighbours[waiting.pop()] - found
        found |= fresh
        waiting.extend(fresh)
    return frozenset(found & known)


def dormant(facts: Collection[Fact], fact_ids: Iterable[str]) -> frozenset[str]:
    """Return the ids of facts and of what hangs together with them, but for those with one that is active."""
    # One that is active says it again, and a person wants that one.
    active = {fact.id for fact in facts if fact.status == "active"}
    chains = (linked(facts, fact_id) for fact_id in fact_ids)
    return frozenset[str]().union(*(chain for chain in chains if not chain & active))
