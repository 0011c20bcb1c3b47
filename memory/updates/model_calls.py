"""At most four model calls at a time, on daemon threads, each under a deadline.

A stock `ThreadPoolExecutor` joins its workers at exit, so one hung call would keep the process from ending, and its
queue would let a hung call hold a place for ever. Here a call that passes its deadline is abandoned and its thread
dies with the process. Its place is free again, but nobody can end it: up to four abandoned calls may still run
beside the four that are waited for. Each further one keeps its place until it ends; once all places are held so,
new calls fail at once, as those do that time out, and are tried again later.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from memory.daemons import in_daemon_thread

T = TypeVar("T")


class ModelCalls:
    """The places for model calls of one process.

    Args:
        max_workers: How many calls are waited for at a time.
        max_abandoned: How many abandoned ones may run beside them.
    """

    def __init__(self, max_workers: int = 4, max_abandoned: int = 4) -> None:
        self._max_workers, self._max_abandoned = max_workers, max_abandoned
        self._changed = threading.Condition()
        self._waited_for = 0
        self._abandoned: set[Future[object]] = set()

    def run(self, call: Callable[[], T], timeout: float) -> T:
        """Make the call when a place is free and return its value.

        Raises:
            TimeoutError: If the call takes longer than `timeout` seconds, not counting the wait for a place; or if
                abandoned calls hold all places.
        """
        self._take_place()
        future = in_daemon_thread(call)
        try:
            return future.result(timeout)
        finally:
            self._leave(future)

    async def arun(self, call: Callable[[], T], timeout: float) -> T:
        """Make the call like `run`, without holding up the event loop."""
        return await asyncio.wrap_future(in_daemon_thread(partial(self.run, call, timeout)))

    def _take_place(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._places() <= 0 or self._waited_for < self._places())
            if self._places() <= 0:
                raise TimeoutError("every place is held by a model call that passed its deadline and still runs")
            self._waited_for += 1

    def _places(self) -> int:
        """Return how many calls may be waited for; abandoned ones beyond their number take places from them."""
        return self._max_workers - max(0, len(self._abandoned) - self._max_abandoned)

    def _leave(self, future: "Future[T]") -> None:
        """Stop waiting for a call; if it still runs, it is abandoned until it ends."""
        with self._changed:
            self._waited_for -= 1
            if not future.done():
                self._abandoned.add(future)  # type: ignore[arg-type]  # only ever asked whether it has ended
            self._changed.notify_all()
        future.add_done_callback(self._ended)

    def _ended(self, future: "Future[T]") -> None:
        with self._changed:
            self._abandoned.discard(future)
            self._changed.notify_all()
