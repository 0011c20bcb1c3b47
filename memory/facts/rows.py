"""How an owner's facts are read from a store, and what changes of them is written back."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate, chain, islice
from typing import Final

from langgraph.store.base import Item

from memory.control import belongs, read_epoch
from memory.door import StoreEffects, delete, read_many, scan, side_by_side
from memory.facts.chain import by_time
from memory.facts.confirmations import read_confirmations
from memory.facts.deletions import DELETION
from memory.facts.fact import Fact, fact_ids, from_item, is_fact_id, may_be_used, strongest_first
from memory.facts.profile import drop_sections_about
from memory.facts.rules import FactSet
from memory.namespaces import Owner

logger = logging.getLogger(__name__)

# How many ids of one content are looked up in history before a new fact of it is placed; more relearnings of one
# text than that never happened to anybody.
_CANDIDATES: Final = 4
# So much of what is active is judged, far more than any prompt shows: all of it could hold the event loop for seconds.
_JUDGED_CHARS: Final = 200_000
# What keys of a person's answers about past messages begin with (`memory.recall.past`).
ANSWER: Final = "asked."
_REVISION: Final = "revision"
_KEPT: Final = {_REVISION: 1000, "evicted": 1000, DELETION: 2000, ANSWER: 2000}


def read_fact_set(owner: Owner, contents: Sequence[str] | None = None, *, now: str = "") -> StoreEffects[FactSet]:
    """Read an owner's facts; rows of other epochs, and those that are no facts, are skipped.

    Args:
        owner: Whose facts.
        contents: What is about to be added: facts that history holds for them are looked up, and how often each fact
            was said again, for the order in which they go at the limit.
        now: When that is, ISO 8601.
    """
    if contents is None:
        epoch, rows = yield from side_by_side(read_epoch(owner), scan(owner.namespace("facts")))
        return _fact_set_of(owner, epoch, now, rows)
    ids = [each for content in contents for each in islice(fact_ids(owner.due_key, content), _CANDIDATES)]
    # Whatever became of a fact, its first revision is in history as soon as it was changed or went.
    return (
        yield from _read_with_past(owner, now, read_many(owner.namespace("history"), [f"{each}.1" for each in ids]))
    )


def read_fact_history(owner: Owner, *, now: str = "") -> StoreEffects[FactSet]:
    """Read an owner's facts with all that they said, what said them again, and records of what was deleted."""
    return _read_with_past(owner, now, scan(owner.namespace("history")))


def _read_with_past(owner: Owner, now: str, history: StoreEffects[Sequence[Item | None]]) -> StoreEffects[FactSet]:
    epoch, rows, items, said = yield from side_by_side(
        read_epoch(owner), scan(owner.namespace("facts")), history, read_confirmations(owner)
    )
    facts = _fact_set_of(owner, epoch, now, rows)
    found = [item for item in items if item and belongs(item.value, epoch)]
    facts.past = sorted((fact for _, fact in _read(filter(is_revision, found), epoch)), key=by_time)
    facts.notes = {item.key: item.value for item in found if not is_revision(item)}
    facts.said = said
    return facts


def _fact_set_of(owner: Owner, epoch: str, now: str, items: Sequence[Item]) -> FactSet:
    rows: dict[str, Fact] = {}
    homes: dict[str, str] = {}
    # Rows of our own writes first: where a hand copied one, the copy gets another id.
    ordered = sorted(items, key=lambda item: not is_fact_id(item.key))
    for item, fact in _read(ordered, epoch):
        own = item.key if is_fact_id(item.key) else fact.id
        ids = chain([own] if own else [], fact_ids(owner.due_key, fact.content))
        fact_id = next(each for each in ids if each not in rows)
        rows[fact_id] = fact if fact.id == fact_id else replace(fact, id=fact_id)
        if fact_id != item.key:
            homes[fact_id] = item.key
    # What a hand wrote that no prompt may show as it is, is quarantined: a person sees it, and decides.
    for fact in within_bound([fact for fact in rows.values() if fact.status == "active"]):
        if not may_be_used(fact):
            rows[fact.id] = replace(fact, status="quarantined")
    facts = FactSet(owner, rows, epoch=epoch, now=now)
    facts.homes = homes
    return facts


def within_bound(active: Sequence[Fact]) -> list[Fact]:
    """Return the facts that are judged and shown: the strongest, as many as keep the bound of characters."""
    strongest = strongest_first(active)
    read = accumulate(len(fact.content) for fact in strongest)
    return [fact for fact, chars in zip(strongest, read, strict=True) if chars <= _JUDGED_CHARS]


def _read(items: Iterable[Item], epoch: str) -> Iterator[tuple[Item, Fact]]:
    unreadable = []
    for item in items:
        try:
            if belongs(item.value, epoch):
                yield item, from_item(item.value, epoch=epoch, created_at=item.created_at.isoformat())
        except ValueError as error:
            unreadable.append(f"{item.key:.64} (bad {str(error).partition(' ')[0]})")
    if unreadable:
        logger.warning("skipped %d unreadable facts: %s", len(unreadable), ", ".join(unreadable[:5]))


def save(facts: FactSet, kept: Collection[str] = ()) -> StoreEffects[list[str]]:
    """Write what became of facts since they were read, and return the sections of the profile that go with it.

    Sections that tell of what is over would go on telling it; the next update writes them anew.

    Args:
        facts: The facts.
        kept: Sections to leave alone.
    """
    if writes := facts.writes():
        yield writes
    if facts.archived:
        yield from _trim_history(facts.owner)
    return (yield from drop_sections_about(facts.owner, facts.epoch, facts.over(), kept))


def _trim_history(owner: Owner) -> StoreEffects[None]:
    """Delete the oldest revisions, deletion records and answers above their bounds; what lost its answer waits."""
    kept: Counter[str] = Counter()
    surplus = []
    # By the store's time of the last write, which items of every kind have; the newest first.
    for item in sorted((yield from scan(owner.namespace("history"))), key=_written, reverse=True):
        kind = next((each for each in (DELETION, ANSWER) if item.key.startswith(each)), item.value.get("status"))
        kind = kind if kind in _KEPT else _REVISION
        kept[kind] += 1
        if kept[kind] > _KEPT[kind]:
            surplus.append(delete(item.namespace, item.key))
    if surplus:
        yield surplus


def _written(item: Item) -> tuple[datetime, str]:
    at = item.updated_at  # of some stores without a zone
    return at if at.tzinfo else at.replace(tzinfo=UTC), item.key


def is_revision(item: Item) -> bool:
    """Say whether an item of history is a fact's revision, not a record of what was deleted or answered."""
    return not item.key.startswith((DELETION, ANSWER))
