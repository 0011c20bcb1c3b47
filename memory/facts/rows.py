"""How an owner's shelf is read from a store and the difference written back.

Every function here is a generator of store operations (`memory.storage`), shared by the sync and async doors.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from langgraph.store.base import GetOp, Item, Op

from memory.config import MemoryConfig
from memory.control import belongs, read_epoch
from memory.effects import StoreEffects, delete, put, read, read_many, scan, side_by_side
from memory.facts.fact import Fact, from_item, is_proper, to_item
from memory.facts.rules import Confirmation, FactSet, adopt, candidates, identify, limit, unite
from memory.namespaces import Kind, Owner
from memory.text import digest

logger = logging.getLogger(__name__)

KEPT_CONFIRMATIONS: Final = 32
KEPT_HISTORY: Final = 1000
KEPT_DELETIONS: Final = 2000
# How many ids of one content are looked up in history before a new fact of it is placed; more relearnings of one
# text than that never happened to anybody.
_CANDIDATES: Final = 4
# What keys of deletion records begin with: they stand among the revisions (`memory.facts.deletions`).
DELETION: Final = "gone."
# The item among the revisions that names the extractions applied last (`memory.facts.applying`).
APPLIED: Final = "applied"
# The item among the revisions that tells when facts were erased last (`memory.facts.deletions`).
ERASED: Final = "erased"


@dataclass(frozen=True, slots=True)
class Confirmations:
    """How often a fact was said again, and when (ISO 8601, oldest first, the newest 32)."""

    count: int = 0
    times: tuple[str, ...] = ()


def read_fact_set(owner: Owner, epoch: str, contents: Sequence[str] = ()) -> StoreEffects[FactSet]:
    """Read an owner's facts of this epoch; rows that are no facts are skipped and counted.

    Args:
        owner: Whose facts.
        epoch: The user's current epoch; rows of others do not count.
        contents: What is about to be added: ids that history holds for them are looked up.
    """
    items, retired = yield from _read_rows(owner, contents)
    return _fact_set_of(owner, epoch, items, retired)


def read_current_fact_set(owner: Owner, contents: Sequence[str] = ()) -> StoreEffects[tuple[str, FactSet]]:
    """Read the user's current epoch, and the owner's facts of it."""
    epoch, (items, retired) = yield from side_by_side(read_epoch(owner), _read_rows(owner, contents))
    return epoch, _fact_set_of(owner, epoch, items, retired)


def _read_rows(owner: Owner, contents: Sequence[str]) -> StoreEffects[tuple[list[Item], frozenset[str]]]:
    ids = [new_id for content in contents for _, new_id in islice(candidates(_salt(owner), content), _CANDIDATES)]
    items, found = yield from side_by_side(
        scan(owner.namespace("facts")),
        read_many(owner.namespace("history"), [history_key(fact_id, 1) for fact_id in ids]),
    )
    return items, frozenset(fact_id for fact_id, item in zip(ids, found, strict=True) if item is not None)


def _salt(owner: Owner) -> str:
    return f"{owner.segment}/{owner.agent_name}"


def _fact_set_of(owner: Owner, epoch: str, items: Sequence[Item], retired: frozenset[str]) -> FactSet:
    rows: dict[str, Fact] = {}
    unowned = set()
    broken = 0
    for item in items:
        if not belongs(item.value, epoch):
            continue
        try:
            rows[item.key] = from_item(item.value, epoch=epoch, written_at=item.created_at)
        except ValueError as error:
            broken += 1
            logger.warning("skipped an unreadable fact under key %.64s: bad %s", item.key, str(error).partition(" ")[0])
            continue
        if not is_proper(item.key, item.value):
            unowned.add(item.key)
    return identify(FactSet(_salt(owner), rows, retired, broken=broken, unowned=frozenset(unowned)))


def write_difference(owner: Owner, epoch: str, old: FactSet, new: FactSet) -> StoreEffects[dict[str, Fact]]:
    """Write what makes the stored shelf the new one: rows put and deleted, revisions archived, repeats noted.

    Returns:
        The rows that this overwrote or deleted though a person had edited them since the old shelf was read: no store
        has compare-and-swap, but one batch can read what it is about to write.
    """
    facts = owner.namespace("facts")
    history = owner.namespace("history")
    gone = [fact.id for key, fact in old.rows.items() if key not in new.rows and fact.id not in _ids(new)]
    operations: list[Op] = [
        put(facts, key, to_item(fact))
        for key, fact in new.rows.items()
        if old.rows.get(key) != fact or key in old.unowned
    ]
    operations += [
        put(history, history_key(fact.id, fact.revision), to_item(fact)) for fact in new.archived[len(old.archived) :]
    ]
    operations += [delete(facts, key) for key in old.rows if key not in new.rows]
    retired = {fact.id for fact in new.archived}
    operations += [delete(owner.namespace("confirmations"), fact_id) for fact_id in gone if fact_id not in retired]
    operations += yield from _confirmation_writes(owner, epoch, new.confirmations[len(old.confirmations) :], new)
    if not operations:
        return {}
    touched = [key for key, fact in old.rows.items() if new.rows.get(key) != fact]
    reads: list[Op] = [GetOp(facts, key, refresh_ttl=False) for key in touched]
    items = (yield [*reads, *operations])[: len(touched)]
    return {
        item.key: fact
        for item in items
        if item and (fact := _edited_since(old.rows[item.key], item, epoch)) is not None
    }


def _edited_since(known: Fact, item: Item, epoch: str) -> Fact | None:
    try:
        fact = from_item(item.value, epoch=epoch, written_at=item.created_at)
    except ValueError:
        return None
    is_newer = bool(fact.edited_at) and fact.id == known.id and fact.revision > known.revision
    return fact if is_newer and belongs(item.value, epoch) else None


def give_way(
    owner: Owner, epoch: str, wrong: FactSet, right: FactSet, edited: Mapping[str, Fact]
) -> StoreEffects[None]:
    """Write the right shelf in the place of one that was written though a person had edited these rows."""
    yield from put_back(owner, edited)
    yield from write_difference(owner, epoch, replace(wrong, archived=(), confirmations=()), right)


def put_back(owner: Owner, edited: Mapping[str, Fact]) -> StoreEffects[None]:
    """Write rows again that a person edited and somebody else overwrote or deleted."""
    if edited:
        yield [put(owner.namespace("facts"), key, to_item(fact)) for key, fact in edited.items()]


def _ids(fact_set: FactSet) -> set[str]:
    return {fact.id for fact in fact_set.rows.values()}


def _confirmation_writes(
    owner: Owner, epoch: str, confirmations: Sequence[Confirmation], fact_set: FactSet
) -> StoreEffects[list[Op]]:
    namespace = owner.namespace("confirmations")
    ids = sorted({confirmation.fact_id for confirmation in confirmations} & _ids(fact_set))
    items = yield from read_many(namespace, ids)
    writes: list[Op] = []
    for fact_id, item in zip(ids, items, strict=True):
        value = item.value if item and belongs(item.value, epoch) else {}
        for confirmation in confirmations:
            if confirmation.fact_id == fact_id:
                value = confirmed(value, confirmation)
        writes.append(put(namespace, fact_id, {**value, "epoch": epoch}))
    return writes


def confirmed(value: Mapping[str, object], confirmation: Confirmation) -> dict[str, object]:
    """Return the sibling item of a fact with one more confirmation; the same evidence counts once."""
    said = value.get("said")
    kept: list[object] = said if isinstance(said, list) else []
    counted = value.get("count")
    count = counted if isinstance(counted, int) else len(kept)
    evidence = digest("evidence", confirmation.evidence)[:16]
    if any(isinstance(entry, list) and entry[:1] == [evidence] for entry in kept):
        return dict(value)
    said_by = [confirmation.thread_id, list(confirmation.message_ids)]
    newest = [*kept, [evidence, confirmation.time, *said_by]][-KEPT_CONFIRMATIONS:]
    return {"id": confirmation.fact_id, "count": count + 1, "said": newest}


def read_confirmations(owner: Owner, fact_id: str) -> StoreEffects[Confirmations]:
    """Read how often and when a fact was said again."""
    item = yield from read(owner.namespace("confirmations"), fact_id)
    if item is None:
        return Confirmations()
    said = [entry for entry in item.value.get("said", []) if isinstance(entry, list) and len(entry) in (2, 4)]
    count = item.value.get("count")
    return Confirmations(count if isinstance(count, int) else len(said), tuple(str(entry[1]) for entry in said))


def read_provenance(owner: Owner, fact_ids: Sequence[str]) -> StoreEffects[list[tuple[str, tuple[str, ...]]]]:
    """Read in which threads facts were said again, and by which messages; what others than messages said has none."""
    items = yield from read_many(owner.namespace("confirmations"), fact_ids)
    return [
        (thread_id, tuple(map(str, ids)))
        for item in items
        if item is not None
        for _, _, thread_id, ids in filter(_has_provenance, item.value.get("said", []))
    ]


def without_thread(value: Mapping[str, Any], thread_id: str) -> Mapping[str, Any]:
    """Return the sibling item of a fact without the confirmations that were said in a thread."""
    said = value.get("said", [])
    kept = [entry for entry in said if not (_has_provenance(entry) and entry[2] == thread_id)]
    count = value.get("count")
    left = max(len(kept), (count if isinstance(count, int) else len(said)) - (len(said) - len(kept)))
    return value if kept == said else {**value, "said": kept, "count": left}


def _has_provenance(entry: object) -> bool:
    return isinstance(entry, list) and len(entry) == 4 and bool(entry[2]) and isinstance(entry[3], list)


def settle(owner: Owner, epoch: str, before: FactSet, config: MemoryConfig) -> StoreEffects[FactSet]:
    """Look again after writing: one row for each content, never more than the limit; return the shelf as it is now.

    No store has compare-and-swap, so the laws are enforced on what is there afterwards, in an order that every
    writer agrees on.

    Args:
        owner: Whose shelf was written.
        epoch: The epoch it was written under.
        before: The shelf as it was read.
        config: The limit, and which categories are protected.
    """
    after = yield from read_fact_set(owner, epoch)
    new = frozenset(after.rows) - frozenset(before.rows)
    settled = limit(unite(adopt(after, epoch)), config, new)
    edited = yield from write_difference(owner, epoch, after, settled)
    yield from put_back(owner, edited)
    return replace(settled, rows={**settled.rows, **edited})


def stands(owner: Owner, epoch: str) -> StoreEffects[bool]:
    """Say, as the last step of writing, whether the epoch is still the current one; if not, take back what it wrote."""
    if (yield from read_epoch(owner)) == epoch:
        return True
    yield from take_back(owner, epoch)
    return False


def take_back(owner: Owner, epoch: str) -> StoreEffects[None]:
    """Delete everything that still stands under an epoch that an erase has ended."""
    kinds: tuple[Kind, ...] = ("facts", "history", "confirmations", "profile")
    stale: list[Op] = []
    for kind in kinds:
        items = yield from scan(owner.namespace(kind))
        stale += [delete(item.namespace, item.key) for item in items if item.value.get("epoch") == epoch]
    if stale:
        yield stale
    logger.info("took back %d items written across an erase", len(stale))


def read_history(owner: Owner, epoch: str) -> StoreEffects[list[Fact]]:
    """Read the revisions that are no longer true, oldest first; they are never injected."""
    items = yield from scan(owner.namespace("history"))
    facts = []
    for item in items:
        if not _is_revision(item) or not belongs(item.value, epoch):
            continue
        try:
            facts.append(from_item(item.value, epoch=epoch, written_at=item.created_at))
        except ValueError:
            logger.warning("skipped an unreadable revision under key %.64s", item.key)
    return sorted(facts, key=lambda fact: (fact.updated_at, fact.id, fact.revision))


def trim_history(owner: Owner) -> StoreEffects[None]:
    """Delete the oldest revisions, and the oldest deletion records, above their bounds."""
    items = sorted((yield from scan(owner.namespace("history"))), key=lambda item: (item.updated_at, item.key))
    revisions = [item for item in items if _is_revision(item)]
    deletions = [item for item in items if item.key.startswith(DELETION)]
    surplus = [*revisions[:-KEPT_HISTORY], *deletions[:-KEPT_DELETIONS]]
    if surplus:
        yield [delete(item.namespace, item.key) for item in surplus]


def _is_revision(item: Item) -> bool:
    return item.key not in (APPLIED, ERASED) and not item.key.startswith(DELETION)


def history_key(fact_id: str, revision: int) -> str:
    """Return the key under which history keeps one revision of a fact."""
    return f"{fact_id}.{revision}"
