"""Pending updates that failed for good: kept, visible, tried again or discarded by hand."""

from collections.abc import Sequence
from dataclasses import replace

from memory.namespaces import Owner
from memory.storage import Steps
from memory.updates.entry import Entry
from memory.updates.outbox import read_entries, remove, settle, write


def dead_letters(owner: Owner, keys: Sequence[str] | None = None) -> Steps[list[Entry]]:
    """Read the dead letters, all or those with the given keys, oldest first."""
    entries = yield from read_entries(owner, keys)
    return [entry for entry in entries if entry.state == "dead"]


def retry_dead(owner: Owner, now: float, keys: Sequence[str] | None = None) -> Steps[int]:
    """Give dead letters another chance, all or those with the given keys, and return how many."""
    dead = yield from dead_letters(owner, keys)
    yield from write(replace(entry, state="pending", attempts=0, due=now, lease=None, error="") for entry in dead)
    yield from settle(owner)
    return len(dead)


def discard_dead(owner: Owner, keys: Sequence[str] | None = None) -> Steps[int]:
    """Delete dead letters, all or those with the given keys, and return how many."""
    dead = yield from dead_letters(owner, keys)
    yield from remove(dead)
    return len(dead)
