"""The one gate of a process that every update passes before it starts, so that they start some time apart."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable


def next_start(now: float, last_start: float, spacing: float) -> float:
    """Return when the next update may start: now, or so many seconds after the last one. Pure."""
    return max(now, last_start + spacing)


class UpdateGate:
    """Spaces the starts of updates, whether a thread or an event loop drives them. Nothing waits after the last one.

    Args:
        clock: Returns seconds; only differences matter.
        sleep: Waits so many seconds on a thread.
        asleep: Waits so many seconds on an event loop.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        asleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._asleep = asleep
        self._lock = threading.Lock()
        self._last_start = float("-inf")

    def wait_turn(self, spacing: float) -> None:
        """Wait until an update may start, so many seconds after the one before, and let it start."""
        if (delay := self._reserved(spacing)) > 0:
            self._sleep(delay)

    async def await_turn(self, spacing: float) -> None:
        """Wait like `wait_turn`, without holding up the event loop."""
        if (delay := self._reserved(spacing)) > 0:
            await self._asleep(delay)

    def _reserved(self, spacing: float) -> float:
        """Take the next start, and return in how many seconds it is."""
        with self._lock:
            now = self._clock()
            self._last_start = next_start(now, self._last_start, spacing)
            return self._last_start - now
