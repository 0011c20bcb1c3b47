"""One process at a time updates a user, where something can promise that; elsewhere leases on entries do what they can.

Over a store that is not ours, workers of two processes that claim an entry at the same moment may both take themselves
for its worker, and ask a model twice. A lock spares the second call, and is not what keeps memory right.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from typing import Final, Protocol

from memory.effects import in_daemon_thread, tolerated
from memory.namespaces import Owner

logger = logging.getLogger(__name__)

_SECONDS: Final = 20.0  # longer than a database may take to accept a connection
_LOOK_SECONDS: Final = 0.5
_UNKNOWN: Final = "no lock could be asked for to update %s: leases alone keep others away"


class Locks(Protocol):
    """Names that one process at a time has. All calls block."""

    def take(self, name: str) -> bool:
        """Have a name, and say whether this process has it now; `False` if another one does."""

    def give_back(self, name: str) -> None:
        """Give a name back, as often as it was taken; a process that ends, however it does, has none any more."""

    def close(self) -> None:
        """Give all names back."""


@contextmanager
def held(locks: Locks | None, owner: Owner) -> Iterator[bool]:
    """Yield whether this process may work on a user now. Blocks: for a thread, not for an event loop."""
    if locks is None:
        yield True
        return
    taking = _take(locks, owner)
    try:
        is_held = True  # where nobody can tell
        with tolerated(logger, _UNKNOWN, owner.due_key):
            is_held = taking.result(_SECONDS)
        yield is_held
    finally:
        _give_back(locks, owner, taking)


@asynccontextmanager
async def aheld(locks: Locks | None, owner: Owner, patience: float = 0.0) -> AsyncIterator[bool]:
    """Do what `held` does on an event loop; while another process has the user, look again for so many seconds."""
    if locks is None:
        yield True
        return
    clock = asyncio.get_running_loop().time
    deadline = clock() + patience
    taking = _take(locks, owner)
    try:
        is_held = True
        with tolerated(logger, _UNKNOWN, owner.due_key):
            while not (is_held := await _within(taking)) and clock() < deadline:
                await asyncio.sleep(_LOOK_SECONDS)
                taking = _take(locks, owner)
        yield is_held
    finally:
        _give_back(locks, owner, taking)


async def _within(taking: "Future[bool]") -> bool:
    async with asyncio.timeout(_SECONDS):
        return await asyncio.wrap_future(taking)


def _take(locks: Locks, owner: Owner) -> "Future[bool]":
    # The user's, for all agents: a budget of a day and an erase are the user's too.
    return in_daemon_thread(lambda: locks.take(owner.segment), "palimpsest-lock")


def _give_back(locks: Locks, owner: Owner, taking: "Future[bool]") -> None:
    """Give back what was taken, off the caller; also a lock that comes when nobody waits for it any more."""

    def work() -> None:
        if not taking.cancelled() and taking.exception() is None and taking.result():
            locks.give_back(owner.segment)

    in_daemon_thread(work, "palimpsest-lock")
