"""At most four model calls at a time, on daemon threads, each under a deadline.

A stock `ThreadPoolExecutor` joins its workers at exit, so one hung call would keep the process from ending, and its
queue would let a hung call hold a place for ever. Here a call that passes its deadline is abandoned: its place is
free again and its thread dies with the process.
"""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from memory.daemons import in_daemon_thread

T = TypeVar("T")


class ModelCalls:
    """The places for model calls of one process."""

    def __init__(self, max_workers: int = 4) -> None:
        self._places = threading.BoundedSemaphore(max_workers)

    def run(self, call: Callable[[], T], timeout: float) -> T:
        """Make the call when a place is free and return its value.

        Raises:
            TimeoutError: If the call takes longer than `timeout` seconds; waiting for a place does not count.
        """
        with self._places:
            return in_daemon_thread(call).result(timeout)

    async def arun(self, call: Callable[[], T], timeout: float) -> T:
        """Make the call like `run`, without holding up the event loop."""
        return await asyncio.wrap_future(in_daemon_thread(partial(self.run, call, timeout)))
