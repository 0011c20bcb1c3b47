"""What of the journal may be told again: not what a deleted fact came from, nor what says the same."""

from collections.abc import Sequence

from memory.effects import StoreEffects
from memory.facts.deletions import read_gone
from memory.journal import JournalEntry, read_journal
from memory.namespaces import Owner


def read_past(owner: Owner, epoch: str) -> StoreEffects[list[JournalEntry]]:
    """Read what of an owner's journal may be told again, oldest first."""
    return (yield from tellable(owner, epoch, (yield from read_journal(owner, epoch))))


def tellable(owner: Owner, epoch: str, entries: Sequence[JournalEntry]) -> StoreEffects[list[JournalEntry]]:
    """Leave out the messages that nothing may tell of, and the replies to them; a journal keeps them until an erase.

    Who holds entries in memory has to ask again once the user changes something by hand: the count of such edits
    (`memory.control`, `EDIT_KEY`) tells.
    """
    gone = yield from read_gone(owner, epoch, [(entry.thread_id, entry.messages) for entry in entries])
    return [left for entry in entries if (left := entry.without(gone.get(entry.thread_id, ())))]
