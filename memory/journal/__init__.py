"""The daily tier: a dated journal of what was said, and what a reader of it needs to stay up to date."""

from memory.journal.entry import JournalEntry, day_of, entries_of
from memory.journal.journal import (
    JournalRevision,
    JournalView,
    append,
    prune,
    read_journal,
    read_view,
    redact,
)

__all__ = [
    "JournalEntry",
    "JournalRevision",
    "JournalView",
    "append",
    "day_of",
    "entries_of",
    "prune",
    "read_journal",
    "read_view",
    "redact",
]
