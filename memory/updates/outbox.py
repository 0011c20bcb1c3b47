"""Pending updates, written down before the turn ends: entries and due markers.

An entry lives under its owner's own namespace; its due marker, in a shard that all users share, lets any process
find it.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from langgraph.store.base import Item, ListNamespacesOp, MatchCondition, PutOp

from memory.control import read_control
from memory.door import PAGE, StoreEffects, delete, put, read, read_many, scan, side_by_side, transaction
from memory.forms import plain, read_as
from memory.message import iso_time
from memory.namespaces import DUE, Kind, Owner, owner_of, thread_namespace
from memory.threads import erased_between, read_thread_erase
from memory.updates.entry import Entry
from memory.updates.late import Late
from memory.updates.transcript import ThreadView, without_edits

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Queued:
    """What became of a turn that was written down.

    Attributes:
        entry: Key of the pending update.
        due: When it runs at the latest, ISO 8601.
    """

    entry: str
    due: str


@transaction
def record(
    draft: Entry, view: ThreadView | None = None, *, thread_epoch: str = "", late: Late | None = None
) -> StoreEffects[Queued | None]:
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
    control, erase, stored, note, marker = yield from side_by_side(
        read_control(owner),
        read_thread_erase(draft.thread_id),
        read_entries(owner, [draft.key] if view is None else None),
        read(notes, owner.due_key),
        read(DUE, owner.due_key),
    )
    entry = replace(draft, epoch=draft.epoch or control.epoch)
    if entry.kind == "turn":  # of what a summary cuts nobody knows after which edits it was said
        messages = tuple(replace(message, edit=message.edit or control.edit) for message in entry.messages)
        entry = replace(entry, messages=messages)
    is_erased = entry.epoch != control.epoch or (thread_epoch and erased_between(thread_epoch, erase.epoch))
    is_refused = late and (late.is_noted(note) or not late.may_be_learned(draft.epoch, control, erase))
    if is_erased or is_refused or not control.learning:
        return None
    key = entry.key
    pending = {one.key: one for one in stored if one.thread_id == entry.thread_id}
    earlier = pending.pop(key, None)
    if earlier and earlier.contents == entry.contents:
        entry = earlier  # it keeps its attempts
    writes = [_put(entry)] if entry is not earlier else []
    if view is not None:
        edited = without_edits(oldest_first([*pending.values(), entry]), view, draft.created)
        writes += map(_put, edited)  # the entry itself may be one of them
        if edited:
            logger.info("thread %s: %d pending updates hold what it does not", entry.thread_id, len(edited))
    if late or not note:
        writes.append(put(notes, owner.due_key, late.noted(note) if late else {}))
    # With one more entry the marker is due no later than before.
    due = min(_due_of(marker, entry.due), entry.due)
    yield [*writes, put(DUE, owner.due_key, {"due": due})]
    return Queued(key, iso_time(entry.due))


def read_entries(owner: Owner, keys: Sequence[str] | None = None) -> StoreEffects[list[Entry]]:
    """Read the entries of an owner, all or those with the given keys, oldest first."""
    namespace = owner.namespace("outbox")
    items = (yield from scan(namespace)) if keys is None else (yield from read_many(namespace, keys))
    return oldest_first(entry for item in items if item and (entry := _entry(item)))


def oldest_first(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries in the order in which they were written down."""
    listed = list(entries)
    return sorted(listed, key=lambda entry: (entry.created, entry.key)) if len(listed) > 1 else listed


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


def _put(entry: Entry) -> PutOp:
    return put(entry.owner.namespace("outbox"), entry.key, plain(entry))


def change(
    owner: Owner, before: Collection[Entry], after: Collection[Entry], *, is_whole: bool = True
) -> StoreEffects[None]:
    """Write what differs between the entries that an owner had and has, and when what is left is due.

    Args:
        owner: Whose.
        before: What was read.
        after: What is to be there in its place.
        is_whole: Whether these are all of the owner's. Else the marker stays, and may be due too early.
    """
    was, now = ({entry.key: entry for entry in entries} for entries in (before, after))
    writes = [_put(entry) for key, entry in now.items() if was.get(key) != entry]
    writes += [delete(owner.namespace("outbox"), key) for key in was if key not in now]
    due = min((entry.due for entry in after if entry.state != "dead"), default=None)
    if is_whole and due is None:
        writes.append(delete(DUE, owner.due_key))
    elif is_whole:
        writes.append(put(DUE, owner.due_key, {"due": due}))
    if writes:
        yield [*writes]


def remove(owner: Owner, is_gone: Callable[[Entry], bool]) -> StoreEffects[list[Entry]]:
    """Delete an owner's entries that were cancelled or discarded, and return them."""
    entries = yield from read_entries(owner)
    gone = list(filter(is_gone, entries))
    yield from change(owner, entries, [entry for entry in entries if entry not in gone])
    return gone


def redact(owner: Owner, gone: Mapping[str, Collection[str]]) -> StoreEffects[None]:
    """Take messages, by thread, out of what is pending: whoever has asked a model about them finds them changed."""
    entries = yield from read_entries(owner)
    left: list[Entry] = []
    for entry in entries:
        message_ids = gone.get(entry.thread_id, ())
        kept = tuple(message for message in entry.messages if message.id not in message_ids)
        if kept == entry.messages:
            left.append(entry)
        elif any(not message.seen for message in kept):
            # It has another key, under which one that is there already stays.
            left.insert(0, replace(entry, messages=kept))
    yield from change(owner, entries, left)


@transaction
def retry_dead(owner: Owner, now: float, keys: Sequence[str] | None = None) -> StoreEffects[int]:
    """Give dead letters another chance, all or those with the given keys, and return how many."""
    entries = yield from read_entries(owner)
    dead = [entry for entry in entries if entry.state == "dead" and (keys is None or entry.key in keys)]
    again = [replace(entry, state="pending", attempts=0, due=now, error="") for entry in dead]
    yield from change(owner, entries, [*(entry for entry in entries if entry not in dead), *again])
    return len(dead)


@transaction
def discard_dead(owner: Owner, keys: Sequence[str] | None = None) -> StoreEffects[int]:
    """Delete dead letters, all or those with the given keys, and return how many."""
    return len((yield from remove(owner, lambda one: one.state == "dead" and (keys is None or one.key in keys))))


def _due_of(marker: Item | None, default: float) -> float:
    due = marker.value.get("due") if marker else None  # somebody may have edited it by hand
    return float(due) if isinstance(due, int | float) else default


def due_owners(now: float | None) -> StoreEffects[list[Owner]]:
    """Read the owners whose marker is due at `now` (seconds since the epoch); `None` reads all that have one."""
    markers = yield from scan(DUE)
    return _owners(item for item in markers if now is None or _due_of(item, 0.0) <= now)


def read_owners(thread_id: str) -> StoreEffects[list[Owner]]:
    """Read whose memory a thread fed."""
    return _owners((yield from scan(thread_namespace(thread_id))))


def _owners(items: Iterable[Item]) -> list[Owner]:
    """Return the owners that keys of due markers, or of a thread's notes, name."""
    found = []
    for item in items:
        try:
            found.append(Owner.from_due_key(item.key))
        except ValueError:
            logger.warning("%s %s names no owner and is left alone", item.namespace[0], item.key)
    return found


def owners_with(*kinds: Kind) -> StoreEffects[list[Owner]]:
    """Read every owner who has items of these kinds. It lists across all users: for once a day, not for a turn."""
    found: dict[Owner, None] = {}
    for kind in kinds:
        offset = 0
        while True:
            (page,) = yield [ListNamespacesOp((MatchCondition("suffix", (kind,)),), None, PAGE, offset)]
            found.update((owner, None) for owner in map(owner_of, page) if owner)
            if len(page) < PAGE:
                break
            offset += PAGE
    return list(found)
