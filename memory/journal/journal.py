"""The dated journal of what was said: one item an exchange, written when its update is applied.

An item is keyed by thread and first message, so that writing it down twice is the same as once, and holds the source
text, so that it can be read when the thread or its summary no longer tells. Whatever changes the journal changes its
revision in the same batch: an item of the user's control, which a turn reads anyway, so that what holds the journal in
memory can tell there whether it is current.
"""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import Final, Self

from langgraph.store.base import Item, Op, PutOp

from memory.control import belongs, read_epoch
from memory.effects import StoreEffects, delete, put, read, read_many, scan, side_by_side
from memory.forms import plain, read_as
from memory.journal.entry import JournalEntry, LineSource, entry_key, outdated, placed
from memory.namespaces import Owner

_KEPT: Final = 16
_MAX_KEYS: Final = 64
_PREFIX: Final = "journal."


@dataclass(frozen=True, slots=True)
class JournalRevision:
    """A random token, compared for equality, and what the newest changes before it wrote.

    Attributes:
        token: Empty for a journal that nobody ever wrote.
        changes: The newest 16, oldest first: the token before, the token after, and the keys of what was written or
            deleted.
    """

    token: str = ""
    changes: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    @classmethod
    def of_item(cls, item: Item | None) -> Self:
        """Return the revision that its item tells; a garbled one is none, and all is read again."""
        with suppress(KeyError, ValueError):
            if item:
                return read_as(cls, {**item.value, "token": item.value["revision"]})
        return cls()

    def changed(self, keys: Sequence[str]) -> Self:
        """Return the revision after one more change, which wrote or deleted the items of these keys.

        Of many keys it is told as several changes: each is as long as one may be.
        """
        now = self
        for start in range(0, len(keys), _MAX_KEYS):
            token = _token()
            change = (now.token, token, tuple(keys[start : start + _MAX_KEYS]))
            now = type(self)(token, (*now.changes, change)[-_KEPT:])
        return now

    def keys_since(self, token: str) -> frozenset[str] | None:
        """Return the keys of what was written or deleted since a revision; `None` if all has to be read again."""
        keys: set[str] = set()
        at = self.token
        for before, after, written in reversed(self.changes):
            if at == token:
                break
            if after != at:  # two writers at once: nobody can tell what the other one wrote
                return None
            keys.update(written)
            at = before
        return frozenset(keys) if at == token else None

    def write(self, owner: Owner) -> PutOp:
        """Return the write of the revision."""
        return put(owner.control, _key(owner), {"revision": self.token, "changes": plain(self)["changes"]})


def read_revision(owner: Owner) -> StoreEffects[JournalRevision]:
    """Read the journal's revision."""
    return JournalRevision.of_item((yield from read(owner.control, _key(owner))))


def revision_put(owner: Owner) -> PutOp:
    """Return the write of a revision that nobody knows how to get to: who holds the journal has to read all of it."""
    return JournalRevision(_token()).write(owner)


def revision_drop(owner: Owner) -> PutOp:
    """Return the write that drops the revision: the journal is gone."""
    return delete(owner.control, _key(owner))


def _key(owner: Owner) -> str:
    return _PREFIX + owner.agent_name  # a user's agents share their control


def _token() -> str:
    return uuid.uuid4().hex


ALL_SOURCES: frozenset[LineSource] = frozenset({"turn", "cut"})


@dataclass(frozen=True, slots=True)
class HeldJournal:
    """What is in the journal of the exchanges that an update is about to write down, and the journal's revision."""

    entries: Mapping[str, JournalEntry]
    revision: JournalRevision


def read_held(
    owner: Owner, epoch: str, thread_id: str, message_ids: Iterable[str], *, whole_thread: bool
) -> StoreEffects[HeldJournal]:
    """Read what the journal has of some messages, in one batch.

    Args:
        owner: Whose journal.
        epoch: The epoch under which it was written.
        thread_id: Their thread.
        message_ids: The messages. Of an exchange, one of them has to be the first.
        whole_thread: Read all that the journal has of the thread: a summary may cut between a message and its answer.
    """
    namespace = owner.namespace("journal")
    keys = [entry_key(thread_id, each) for each in message_ids]
    if whole_thread:
        items, revision = yield from side_by_side(scan(namespace, where={"thread_id": thread_id}), read_revision(owner))
    else:
        found, revision = yield from side_by_side(read_many(namespace, keys), read_revision(owner))
        items = [item for item in found if item]
    return HeldJournal(_entries(items, epoch), revision)


def writes_of(owner: Owner, held: HeldJournal, fresh: Iterable[JournalEntry]) -> list[Op]:
    """Return the writes after which the journal tells the fresh entries too, with its new revision; none if it does."""
    writes = placed(fresh, held.entries)
    puts: list[Op] = [put(owner.namespace("journal"), key, entry.to_json()) for key, entry in writes.items()]
    return [*puts, held.revision.changed(sorted(writes)).write(owner)] if writes else []


def append(owner: Owner, entries: Sequence[JournalEntry]) -> StoreEffects[None]:
    """Write the entries; one that is there already gains the messages that it lacks (`JournalEntry.joined`)."""
    namespace = owner.namespace("journal")
    items = yield from read_many(namespace, [entry.key for entry in entries])
    held = {item.key: entry for item in items if item and (entry := _readable(item))}
    writes = placed(entries, {key: entry for key, entry in held.items() if entry.epoch == entries[0].epoch})
    if writes:
        yield [*(put(namespace, key, entry.to_json()) for key, entry in writes.items()), revision_put(owner)]


def read_journal(owner: Owner, epoch: str, since: str = "") -> StoreEffects[list[JournalEntry]]:
    """Read the entries from the given day (ISO 8601) on, oldest first."""
    items = yield from scan(owner.namespace("journal"))
    found = [entry for entry in _entries(items, epoch).values() if entry.day >= since]
    return sorted(found, key=lambda entry: (entry.day, entry.messages[0].time, entry.key))


def read_entries(owner: Owner, epoch: str, keys: Sequence[str]) -> StoreEffects[list[JournalEntry]]:
    """Read the entries of these keys, in their order; those that are gone are left out."""
    items = yield from read_many(owner.namespace("journal"), keys)
    return entries_in(items, epoch)


@dataclass(frozen=True, slots=True)
class JournalView:
    """The journal of an owner, or what changed of it, as it was at one moment.

    Attributes:
        epoch: The user's epoch; entries of others are gone.
        revision: The journal's.
        entries: By key.
        is_whole: Whether these are all entries; if not, they take the place of those with their keys.
        edit: The number of the user's newest edit by hand before it was read, where that was asked for.
        gone: Of a view of what changed, the keys of the entries that are there no more.
    """

    epoch: str
    revision: JournalRevision
    entries: Mapping[str, JournalEntry]
    is_whole: bool
    edit: str = ""
    gone: frozenset[str] = frozenset()


def read_view(owner: Owner, known: JournalView | None = None) -> StoreEffects[JournalView]:
    """Read the journal, or only what was written since a view, where the journal still knows what that was.

    Args:
        owner: Whose journal.
        known: What the caller has. An epoch or a revision that cannot be followed reads everything.
    """
    epoch, now = yield from side_by_side(read_epoch(owner), read_revision(owner))
    keys = now.keys_since(known.revision.token) if known and known.epoch == epoch else None
    namespace = owner.namespace("journal")
    if keys is not None:
        items = yield from read_many(namespace, sorted(keys))
        entries = _entries(filter(None, items), epoch)
        return JournalView(epoch, now, entries, is_whole=False, gone=keys - entries.keys())
    # The revision is read no later than the entries: a newer one would hide that they are old.
    epoch, now, every = yield from side_by_side(read_epoch(owner), read_revision(owner), scan(namespace))
    return JournalView(epoch, now, _entries(every, epoch), is_whole=True)


def entries_in(items: Iterable[Item | None], epoch: str) -> list[JournalEntry]:
    """Return those items that are entries of this epoch."""
    return [*_entries(filter(None, items), epoch).values()]


def _entries(items: Iterable[Item], epoch: str) -> dict[str, JournalEntry]:
    """Return the entries of this epoch, by key."""
    mine = (item for item in items if belongs(item.value, epoch))
    return {item.key: entry for item in mine if (entry := _readable(item))}


def _readable(item: Item) -> JournalEntry | None:
    try:
        return replace(JournalEntry.from_json(item.value), place=item.key)
    except ValueError:
        return None


def prune(
    owner: Owner, today: str, days: int, max_bytes: float = inf, sources: Collection[LineSource] = ALL_SOURCES
) -> StoreEffects[int]:
    """Delete the entries that are kept no longer (`memory.journal.entry.outdated`), and return how many.

    Who holds the journal is told which ones: without that, the next turn of each process would recall no past turns.
    """
    known, items = yield from side_by_side(read_revision(owner), scan(owner.namespace("journal")))
    held = {item.key: entry for item in items if (entry := _readable(item))}
    gone = outdated(held, today, days, max_bytes, sources=sources)
    if gone:
        deletes = [delete(owner.namespace("journal"), key) for key in gone]
        yield [*deletes, known.changed(sorted(gone)).write(owner)]
    return len(gone)


def redact(owner: Owner, gone: Mapping[str, Collection[str]]) -> StoreEffects[list[JournalEntry]]:
    """Take messages, by thread, out of the journal, and entries that hold nothing else; return those that changed."""
    items = yield from scan(owner.namespace("journal"))
    taken: list[JournalEntry] = []
    writes: list[Op] = []
    for item, entry in ((item, _readable(item)) for item in items):
        left = entry.without(gone.get(entry.thread_id, ())) if entry else None
        if entry and left != entry:
            writes.append(put(item.namespace, item.key, left.to_json()) if left else delete(item.namespace, item.key))
            taken.append(entry)
    if writes:
        yield [*writes, revision_put(owner)]
    return taken
