"""What of the journal may be told again: not what a deleted fact came from, nor what waits for the user's yes."""

from collections.abc import Sequence
from dataclasses import replace

from memory.control import read_control
from memory.effects import StoreEffects, side_by_side
from memory.facts.untold import Exchange, Waiting, read_untold
from memory.journal.entry import JournalEntry
from memory.journal.journal import JournalView, read_journal, read_view
from memory.namespaces import Owner


def read_past(owner: Owner, epoch: str) -> StoreEffects[list[JournalEntry]]:
    """Read what of an owner's journal may be told again, oldest first."""
    return (yield from tellable(owner, (yield from read_journal(owner, epoch))))


def read_tellable_view(owner: Owner, known: JournalView | None = None) -> StoreEffects[JournalView]:
    """Read what of the journal may be told again, or what changed of that since a view.

    Args:
        owner: Whose journal.
        known: What the caller has; after an edit by hand, everything is read anew.
    """
    # No later than the rest: an edit in between is seen by the next look, as it is counted again at its end.
    control, view = yield from side_by_side(read_control(owner), read_view(owner, known))
    edit = control.edit
    if known and known.edit != edit and not view.is_whole:
        view = yield from read_view(owner)
    if not view.entries:
        return replace(view, edit=edit)
    told = {entry.place: entry for entry in (yield from tellable(owner, list(view.entries.values())))}
    # One of which nothing may be told takes the place of what was told of it.
    entries = {key: told.get(key) or replace(entry, messages=()) for key, entry in view.entries.items()}
    return replace(view, entries=entries, edit=edit)


def tellable(owner: Owner, entries: Sequence[JournalEntry]) -> StoreEffects[list[JournalEntry]]:
    """Leave out the messages that nothing may tell of, and the replies to them; a journal keeps them until an erase.

    That is what a deleted fact came from, or one that waits for a yes, and what waits for a yes itself.

    Who holds entries in memory has to ask again once the user changes something by hand: the count of such edits
    (`memory.control.Control.edit`) tells, before and after each.
    """
    looked = yield from _look(owner, entries)
    return [left for entry, gone, waits in looked if (left := entry.without(gone | waits.ids))]


def read_asked(owner: Owner, entries: Sequence[JournalEntry]) -> StoreEffects[list[Waiting]]:
    """Read what of each entry waits for a yes to the message itself: not what goes with a fact, whose yes is asked."""
    looked = yield from _look(owner, entries)
    return [waits if not waits.ids & gone else Waiting() for _, gone, waits in looked]


def _look(
    owner: Owner, entries: Sequence[JournalEntry]
) -> StoreEffects[list[tuple[JournalEntry, frozenset[str], Waiting]]]:
    gone, waiting = yield from read_untold(owner, list(map(exchange_of, entries)))
    none = frozenset[str]()
    return [(entry, gone.get(entry.thread_id, none), waits) for entry, waits in zip(entries, waiting, strict=True)]


def exchange_of(entry: JournalEntry) -> Exchange:
    """Return a journal entry as what the user may be asked about."""
    return Exchange(entry.thread_id, entry.messages, entry.screened().held)
