"""Threads that nobody went on with for long: they go, and what memory learned of them stays.

A deletion that somebody asks for takes memory along (`thread_doors.py`). This one is asked for by nobody, and is told
apart by a context variable that only this process can set.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from langgraph_sdk import get_client

from graphs.identity import as_server
from graphs.server.thread_doors import by_retention
from graphs.turn.state import MEMORY_KEY
from memory.effects import tolerated
from memory.unwritten import HAS_UNWRITTEN

logger = logging.getLogger(__name__)

_DAY = 86_400.0
_PAGE = 100


class OldThreads:
    """Drops threads that are kept no longer, once a day.

    Args:
        days: So many days after its last change a thread goes; 0 keeps it.
        clock: Returns seconds since the epoch.
    """

    def __init__(self, days: int, clock: Callable[[], float]) -> None:
        self._days, self._clock = days, clock
        self._looked: float | None = None

    async def drop(self) -> int:
        """Delete what is due, and return how many threads that were; what fails is tried again tomorrow."""
        now = self._clock()
        if not self._days or (self._looked is not None and 0 <= now - self._looked < _DAY):
            return 0
        self._looked, dropped = now, 0
        with tolerated(logger, "old threads could not be looked for"):
            for thread_id in [str(thread["thread_id"]) for thread in await self._old(now)]:
                with tolerated(logger, "old thread %s stays", thread_id):
                    await as_server(_delete(thread_id))
                    dropped += 1
        if dropped:
            logger.info("dropped %d threads that nobody went on with for %d days", dropped, self._days)
        return dropped

    async def _old(self, now: float) -> list[Mapping[str, Any]]:
        """Read the threads that are due, the oldest first; none is deleted before all are read."""
        found: list[Mapping[str, Any]] = []
        while True:
            page = await as_server(
                get_client().threads.search(
                    select=["thread_id", "updated_at", "status", "values"],
                    limit=_PAGE,
                    offset=len(found),
                    sort_by="updated_at",
                    sort_order="asc",
                )
            )
            found.extend(page)
            if len(page) < _PAGE or not is_old(page[-1], self._days, now):
                return [thread for thread in found if may_go(thread, self._days, now)]


def is_old(thread: Mapping[str, Any], days: int, now: float) -> bool:
    """Say whether nobody changed a thread for so many days."""
    said = thread.get("updated_at")
    moment = said if isinstance(said, datetime) else datetime.fromisoformat(str(said))
    return moment.timestamp() < now - days * _DAY


def may_go(thread: Mapping[str, Any], days: int, now: float) -> bool:
    """Say whether a thread is old, at rest, and has nothing that is still to be written down for memory."""
    values = thread.get("values")
    kept = [values.get(key) for key in ("memory", MEMORY_KEY)] if isinstance(values, Mapping) else []
    is_left = any(isinstance(memory, Mapping) and memory.get(HAS_UNWRITTEN) for memory in kept)
    return is_old(thread, days, now) and thread.get("status") != "busy" and not is_left


async def _delete(thread_id: str) -> None:
    by_retention.set(True)  # in the context of this task alone
    await get_client().threads.delete(thread_id)
