"""Pending updates, written down before the turn ends: entries and due markers.

An entry lives under its owner's own namespace; its due marker, in a shard that all users share, lets any process
find it.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from langgraph.store.base import Item, ListNamespacesOp, MatchCondition, Op, PutOp

from memory.control import read_control
from memory.door import transaction
from memory.effects import PAGE, StoreEffects, delete, put, read, read_many, scan, side_by_side
from memory.forms import plain, read_as
from memory.namespaces import Kind, Owner, due_namespaces, owner_of, thread_namespace
from memory.threads import erased_between, read_thread_erase
from memory.updates.entry import Entry
from memory.updates.late import Late
from memory.updates.transcript import ThreadView, without_edits

logger = logging.getLogger(__name__)

_ID: Final = attrgetter("id")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of a turn that was written down.

    Attributes:
        key: The entry's key.
        due: When the sweep takes it at the latest, in seconds since the epoch.
    """

    key: str
    due: float


@transaction
def record(
    draft: Entry, view: ThreadView | None = None, *, thread_epoch: str = "", late: Late | None = None
) -> StoreEffects[Recorded | None]:
    """Write down an update: whose thread it is, the entry, its due marker. Writing it down twice changes nothing.

    Nothing is written, and the value is `None`, if everything was erased since the draft's epoch, if the thread was
    erased since the thread's epoch, or while the user has learning paused.

    Args:
        draft: The entry; without an epoch it gets the user's current one.
        view: What the thread holds now: in entries of earlier turns, the messages that the user edited away are named
            as such. `None` leaves those entries as they are.
        thread_epoch: The thread's epoch when the turn began; empty if nobody read it.
        late: When it was said, of a turn that is written down after it ended: once, whatever became of it since, and
            only if it certainly may be.
    """
    owner, notes = draft.owner, thread_namespace(draft.thread_id)
    control, erase, pending, note, marker = yield from side_by_side(
        read_control(owner),
        read_thread_erase(draft.thread_id),
        read_entries(owner, [draft.key] if view is None else None),
        read(notes, owner.due_key),
        read(owner.due_namespace, owner.due_key),
    )
    messages = draft.messages
    if draft.kind == "turn":  # of what a summary cuts nobody knows after which edits it was said
        messages = tuple(replace(message, edit=message.edit or control.edit) for message in messages)
    entry = replace(draft, messages=messages, epoch=draft.epoch or control.epoch)
    is_erased = entry.epoch != control.epoch or (thread_epoch and erased_between(thread_epoch, erase.epoch))
    is_refused = late and (late.is_noted(note) or not late.may_be_learned(draft.epoch, control, erase))
    if is_erased or is_refused or not control.learning:
        return None
    # With one more entry the marker is due no later than before.
    due = min(_due_of(marker, entry.due), entry.due)
    writes = [put(owner.due_namespace, owner.due_key, {"due": due})]
    if late or not note:
        writes.append(put(notes, owner.due_key, late.noted(note) if late else {}))
    # What is written down already keeps its attempts.
    others = {(one.kind, *map(_ID, one.messages)): one for one in pending if one.thread_id == entry.thread_id}
    earlier = others.pop((entry.kind, *map(_ID, entry.messages)), None)
    if earlier and earlier.contents == entry.contents:
        entry = earlier
    else:
        writes.append(entry_put(entry))
    yield [*writes]
    if view is not None:
        changed = without_edits(oldest_first([*others.values(), entry]) if others else [entry], view, draft.created)
        yield from write(changed)
        if changed:
            logger.info("thread %s: %d pending updates hold what it does not", entry.thread_id, len(changed))
    return Recorded(entry.key, entry.due)


def read_owners(thread_id: str) -> StoreEffects[list[Owner]]:
    """Read whose memory a thread fed."""
    return list(_owners((yield from scan(thread_namespace(thread_id)))))


def _due_of(marker: Item | None, default: float) -> float:
    due = marker.value.get("due") if marker else None  # somebody may have edited it by hand
    return float(due) if isinstance(due, int | float) else default


def read_entries(owner: Owner, keys: Sequence[str] | None = None) -> StoreEffects[list[Entry]]:
    """Read the entries of an owner, all or those with the given keys, oldest first."""
    namespace = owner.namespace("outbox")
    items = (yield from scan(namespace)) if keys is None else (yield from read_many(namespace, keys))
    entries = [entry for entry in map(_entry, filter(None, items)) if entry]
    return oldest_first(entries)


def oldest_first(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries in the order in which they were written down."""
    return sorted(entries, key=lambda entry: (entry.created, entry.key))


def _entry(item: Item) -> Entry | None:
    try:
        entry = read_as(Entry, item.value)
    except ValueError:
        entry = None
    # What stands under a key that is not its own could never be deleted once it is done.
    if entry is None or entry.key != item.key:
        logger.warning("outbox item %s is no entry and is left alone", item.key)
        return None
    return entry


def entry_put(entry: Entry) -> PutOp:
    """Return the write of an entry."""
    return put(entry.owner.namespace("outbox"), entry.key, plain(entry))


def write(entries: Iterable[Entry]) -> StoreEffects[None]:
    """Write the entries' new states."""
    operations = [entry_put(entry) for entry in entries]
    if operations:
        yield operations


def remove(entries: Iterable[Entry]) -> StoreEffects[None]:
    """Delete the entries: they were applied, cancelled, or discarded."""
    operations = [delete(entry.owner.namespace("outbox"), entry.key) for entry in entries]
    if operations:
        yield operations


def redact(owner: Owner, gone: Mapping[str, Collection[str]]) -> StoreEffects[None]:
    """Take messages, by thread, out of what is pending: whoever has asked a model about them finds them changed."""
    entries = yield from read_entries(owner)
    there = {entry.key for entry in entries}
    for entry in entries:
        message_ids = gone.get(entry.thread_id, ())
        kept = tuple(message for message in entry.messages if message.id not in message_ids)
        if kept != entry.messages:
            # An entry without them has another key.
            shorter = replace(entry, messages=kept)
            is_new = any(not message.seen for message in kept)
            yield from remove([entry])
            yield from write([shorter] if is_new and shorter.key not in there else [])
    yield from settle(owner)


def without_dead(entries: Iterable[Entry]) -> list[Entry]:
    """Return those that do not wait for a hand."""
    return [entry for entry in entries if entry.state != "dead"]


def settle(owner: Owner) -> StoreEffects[list[Entry]]:
    """Bring the due marker in line with what is left, and return what that is, dead letters aside."""
    entries = yield from read_entries(owner)
    yield [due_marker(owner, entries)]
    return without_dead(entries)


def settle_thread(owner: Owner, thread_id: str) -> StoreEffects[None]:
    """Bring the due marker in line after a thread was erased; drop its note, unless a turn of it is pending again."""
    left = yield from settle(owner)
    if all(entry.thread_id != thread_id for entry in left):
        yield [delete(thread_namespace(thread_id), owner.due_key)]


def due_marker(owner: Owner, entries: Iterable[Entry]) -> Op:
    """Return the write of when an owner's entries are due, dead letters aside; without any, there is no marker."""
    left = without_dead(entries)
    if not left:
        return delete(owner.due_namespace, owner.due_key)
    return put(owner.due_namespace, owner.due_key, {"due": min(entry.due for entry in left)})


def due_owners(now: float | None) -> StoreEffects[list[Owner]]:
    """Read the owners whose marker is due at `now` (seconds since the epoch); `None` reads all that have one."""
    shards = yield from side_by_side(*map(scan, due_namespaces()))
    return list(_owners(item for items in shards for item in items if now is None or _due_of(item, 0.0) <= now))


def _owners(items: Iterable[Item]) -> Iterable[Owner]:
    """Yield the owners that keys of due markers, or of a thread's notes, name."""
    for item in items:
        try:
            yield Owner.from_due_key(item.key)
        except ValueError:
            logger.warning("%s %s names no owner and is left alone", item.namespace[0], item.key)


def owners_with(kind: Kind) -> StoreEffects[list[Owner]]:
    """Read every owner who has items of a kind. It lists across all users: for once a day, not for a turn."""
    found: dict[Owner, None] = {}
    offset = 0
    while True:
        (page,) = yield [ListNamespacesOp((MatchCondition("suffix", (kind,)),), None, PAGE, offset)]
        found.update((owner, None) for owner in map(owner_of, page) if owner)
        if len(page) < PAGE:
            return list(found)
        offset += PAGE


def dead_letters(owner: Owner, keys: Sequence[str] | None = None) -> StoreEffects[list[Entry]]:
    """Read the dead letters, all or those with the given keys, oldest first."""
    entries = yield from read_entries(owner, keys)
    return [entry for entry in entries if entry.state == "dead"]


@transaction
def retry_dead(owner: Owner, now: float, keys: Sequence[str] | None = None) -> StoreEffects[int]:
    """Give dead letters another chance, all or those with the given keys, and return how many."""
    dead = yield from dead_letters(owner, keys)
    yield from write(replace(entry, state="pending", attempts=0, due=now, error="") for entry in dead)
    yield from settle(owner)
    return len(dead)


@transaction
def discard_dead(owner: Owner, keys: Sequence[str] | None = None) -> StoreEffects[int]:
    """Delete dead letters, all or those with the given keys, and return how many."""
    dead = yield from dead_letters(owner, keys)
    yield from remove(dead)
    return len(dead)
