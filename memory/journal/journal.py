"""The dated journal of what was said: one item an exchange, written when its update is applied.

An item is keyed by thread and first message, so that writing it down twice is the same as once, and holds the source
text, so that it can be read when the thread or its summary no longer tells. Whatever changes the journal changes its
revision in the same batch.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from langgraph.store.base import Item, Op

from memory.control import belongs, control_get, epoch_in
from memory.effects import StoreEffects, delete, put, read_many, scan, side_by_side
from memory.journal.entry import JournalEntry, JournalLine, LineSource, entry_key, lines_of, outdated, placed
from memory.journal.revision import JournalRevision, read_revision, revision_get, revision_put
from memory.namespaces import Owner

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
    return list(_entries(filter(None, items), epoch).values())


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
    controls: list[Op] = [control_get(owner), revision_get(owner)]
    epoch, now = yield from _read_controls(controls)
    keys = now.keys_since(known.revision.token) if known and known.epoch == epoch else None
    namespace = owner.namespace("journal")
    if keys is not None:
        items = yield from read_many(namespace, sorted(keys))
        entries = _entries(filter(None, items), epoch)
        return JournalView(epoch, now, entries, is_whole=False, gone=keys - entries.keys())
    # The revision is read no later than the entries: a newer one would hide that they are old.
    (epoch, now), every = yield from side_by_side(_read_controls(controls), scan(namespace))
    return JournalView(epoch, now, _entries(every, epoch), is_whole=True)


def lines_in(items: Iterable[Item | None], epoch: str) -> list[JournalLine]:
    """Return the messages of those items that are entries of this epoch."""
    entries = _entries((item for item in items if item), epoch)
    return [line for entry in entries.values() for line in lines_of(entry)]


def _read_controls(controls: list[Op]) -> StoreEffects[tuple[str, JournalRevision]]:
    control, revision = yield controls
    return epoch_in(control), JournalRevision.of_item(revision)


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
    # Read no later than the entries: what is written meanwhile is seen when the revision is overwritten.
    known, items = yield from side_by_side(read_revision(owner), scan(owner.namespace("journal")))
    held = {item.key: entry for item in items if (entry := _readable(item))}
    gone = outdated(held, today, days, max_bytes, sources=sources)
    if gone:
        now = known.changed(sorted(gone)).write(owner)
        deletes = [delete(owner.namespace("journal"), key) for key in gone]
        overwritten = (yield [revision_get(owner), *deletes, now])[0]
        if JournalRevision.of_item(overwritten).token != known.token:
            # Somebody else wrote in between, and this revision does not name what.
            yield [revision_put(owner)]
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
