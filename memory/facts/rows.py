"""How an owner's facts are read from a store, and what changes of them is written back."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Final, NamedTuple

from langgraph.store.base import Item, Op

from memory.control import belongs, read_epoch
from memory.effects import StoreEffects, delete, put, read_many, scan, side_by_side
from memory.facts.confirmations import Confirmations, confirmation_puts
from memory.facts.fact import Fact, from_item, is_proper, to_item
from memory.facts.rules import FactSet, adopt, candidates, suspects, unite
from memory.namespaces import Owner
from memory.text import normalize

logger = logging.getLogger(__name__)

KEPT_HISTORY: Final = 1000
KEPT_DELETIONS: Final = 2000
KEPT_ANSWERS: Final = 2000
# How many ids of one content are looked up in history before a new fact of it is placed; more relearnings of one
# text than that never happened to anybody.
_CANDIDATES: Final = 4
# What keys of deletion records begin with: they stand among the revisions (`memory.facts.deletions`).
DELETION: Final = "gone."
# What keys of a person's answers about past messages begin with (`memory.facts.answers`).
ANSWER: Final = "asked."


def read_fact_set(owner: Owner, contents: Sequence[str] | None = None) -> StoreEffects[FactSet]:
    """Read an owner's facts; rows of other epochs, and those that are no facts, are skipped.

    Args:
        owner: Whose facts.
        contents: What is about to be added: facts that history holds for them are looked up, and how often each fact
            was said again, for the order in which they go at the limit.
    """
    epoch, rows = yield from side_by_side(read_epoch(owner), _read_rows(owner, contents))
    return _fact_set_of(owner, epoch, rows)


class _Rows(NamedTuple):
    """Items of an owner: facts, first revisions in history of what is about to be added, and confirmations."""

    facts: list[Item]
    history: Sequence[Item | None] = ()
    confirmations: Sequence[Item] = ()


def _read_rows(owner: Owner, contents: Sequence[str] | None) -> StoreEffects[_Rows]:
    if contents is None:
        return _Rows((yield from scan(owner.namespace("facts"))))
    ids = [new_id for content in contents for _, new_id in islice(candidates(_salt(owner), content), _CANDIDATES)]
    read = yield from side_by_side(
        scan(owner.namespace("facts")),
        # Whatever became of a fact, its first revision is in history as soon as it was changed or went.
        read_many(owner.namespace("history"), [history_key(fact_id, 1) for fact_id in ids]),
        scan(owner.namespace("confirmations")),
    )
    return _Rows(*read)


def _salt(owner: Owner) -> str:
    return f"{owner.segment}/{owner.agent_name}"


def _fact_set_of(owner: Owner, epoch: str, read: _Rows) -> FactSet:
    rows: dict[str, Fact] = {}
    by_hand = set()
    unreadable = []
    for item in read.facts:
        if not belongs(item.value, epoch):
            continue
        try:
            rows[item.key] = from_item(item.value, epoch=epoch, created_at=item.created_at.isoformat())
        except ValueError as error:
            unreadable.append(f"{item.key:.64} (bad {str(error).partition(' ')[0]})")
            continue
        if not is_proper(item.key, item.value):
            by_hand.add(item.key)
    if unreadable:
        logger.warning("skipped %d unreadable facts: %s", len(unreadable), ", ".join(unreadable[:5]))
    rows.update(suspects(rows))
    known = [item for item in read.confirmations if belongs(item.value, epoch)]
    history = [item for item in read.history if item]
    before = list(_revisions(history, epoch))
    fact_set = FactSet(
        _salt(owner),
        rows,
        frozenset(item.key.rpartition(".")[0] for item in history),
        said_again={item.key: Confirmations.from_json(item.value).count for item in known},
        evicted={normalize(fact.content): fact for fact in reversed(before) if fact.status == "evicted"},
        epoch=epoch,
    )
    return adopt(fact_set, by_hand)


def save(owner: Owner, old: FactSet, new: FactSet) -> StoreEffects[None]:
    """Write what makes the stored facts the new ones: rows put and deleted, revisions archived, repeats noted."""
    new = unite(new)
    facts, history = owner.namespace("facts"), owner.namespace("history")
    present = frozenset(fact.id for fact in new.rows.values())
    archived = new.archived[len(old.archived) :]
    gone = {fact.id for fact in old.rows.values()} - present - {fact.id for fact in new.archived}
    # What came back from history is no history any more.
    back = [fact for fact in old.evicted.values() if fact.id in present]
    operations: list[Op] = [
        *(
            put(facts, key, to_item(fact))
            for key, fact in new.rows.items()
            if old.rows.get(key) != fact or key in old.homes
        ),
        *(put(history, history_key(fact.id, fact.revision), to_item(fact)) for fact in archived),
        *(delete(facts, home) for key in old.rows if (home := old.homes.get(key, key)) not in new.rows),
        *(delete(history, history_key(fact.id, fact.revision)) for fact in back),
        *(delete(owner.namespace("confirmations"), fact_id) for fact_id in sorted(gone)),
        *(yield from confirmation_puts(owner, old.epoch, new.confirmations[len(old.confirmations) :], present)),
    ]
    if operations:
        yield operations
    if archived:
        yield from trim_history(owner)


def read_history(owner: Owner, epoch: str) -> StoreEffects[list[Fact]]:
    """Read the revisions that are no longer true, oldest first; they are never injected."""
    return revisions_of((yield from scan(owner.namespace("history"))), epoch)


def revisions_of(items: Iterable[Item], epoch: str) -> list[Fact]:
    """Return the revisions of this epoch among the items of history, oldest first."""
    return sorted(_revisions(items, epoch), key=lambda fact: (fact.updated_at, fact.id, fact.revision))


def still_evicted(fact_set: FactSet, history: Iterable[Fact]) -> list[Fact]:
    """Return what went at the limit and nothing became of since.

    An undo may have brought it back, and a person may have deleted it then: it stays in history, too.

    Args:
        fact_set: What is there.
        history: The revisions that are no longer true, oldest first.
    """
    last = {fact.id: fact for fact in history}
    present = {fact.id for fact in fact_set.rows.values()}
    said = {normalize(fact.content) for fact in fact_set.rows.values()}
    return [
        fact
        for fact in last.values()
        if fact.status == "evicted" and fact.id not in present and normalize(fact.content) not in said
    ]


def _revisions(items: Iterable[Item], epoch: str) -> Iterator[Fact]:
    for item in items:
        if not is_revision(item) or not belongs(item.value, epoch):
            continue
        try:
            yield from_item(item.value, epoch=epoch, created_at=item.created_at.isoformat())
        except ValueError:
            logger.warning("skipped an unreadable revision under key %.64s", item.key)


def trim_history(owner: Owner) -> StoreEffects[None]:
    """Delete the oldest revisions, deletion records and answers above their bounds; what lost its answer waits."""
    # By the store's time of the last write, which items of every kind have.
    items = sorted((yield from scan(owner.namespace("history"))), key=_written)
    evicted = [item for item in items if item.value.get("status") == "evicted"]
    revisions = [item for item in items if is_revision(item) and item.value.get("status") != "evicted"]
    deletions = [item for item in items if item.key.startswith(DELETION)]
    answers = [item for item in items if item.key.startswith(ANSWER)]
    surplus = [*evicted[:-KEPT_HISTORY], *revisions[:-KEPT_HISTORY], *deletions[:-KEPT_DELETIONS]]
    surplus += answers[:-KEPT_ANSWERS]
    if surplus:
        yield [delete(item.namespace, item.key) for item in surplus]


def _written(item: Item) -> tuple[datetime, str]:
    at = item.updated_at  # of some stores without a zone
    return at if at.tzinfo else at.replace(tzinfo=UTC), item.key


def is_revision(item: Item) -> bool:
    """Say whether an item of history is a fact's revision, not a record of what was deleted or answered."""
    return not item.key.startswith((DELETION, ANSWER))


def history_key(fact_id: str, revision: int) -> str:
    """Return the key under which history keeps one revision of a fact."""
    return f"{fact_id}.{revision}"
