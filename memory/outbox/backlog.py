"""What waits in a store, of all users together: for who looks after a deployment, never in a turn."""

from dataclasses import dataclass
from typing import Final

from memory.effects import StoreEffects
from memory.outbox.outbox import owners_with, read_entries

MOST_OWNERS: Final = 1_000
"""So many users and agents are looked at; with more, what is told is only a part."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits.

    Attributes:
        pending: Updates that are to be read.
        dead: Updates that failed for good.
        oldest: When the oldest pending one was written down, in seconds since the epoch; `None` if none is pending.
        is_partial: Whether there are more users than were looked at.
    """

    pending: int = 0
    dead: int = 0
    oldest: float | None = None
    is_partial: bool = False


def read_backlog(most: int = MOST_OWNERS) -> StoreEffects[Backlog]:
    """Read what waits, of at most so many owners. It lists across all users."""
    owners = yield from owners_with("outbox")
    pending = dead = 0
    oldest: float | None = None
    # One owner after another: entries hold the texts of turns, and a backlog may be long.
    for owner in owners[:most]:
        for entry in (yield from read_entries(owner)):
            if entry.state == "dead":
                dead += 1
            else:
                pending += 1
                oldest = entry.created if oldest is None else min(oldest, entry.created)
    return Backlog(pending, dead, oldest, len(owners) > most)
