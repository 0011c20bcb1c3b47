"""At most four model calls at a time, on daemon threads, each under a deadline.

A stock `ThreadPoolExecutor` joins its workers at exit, so one hung call would keep the process from ending, and its
queue would let a hung call hold a place for ever. Here a call that passes its deadline is abandoned: its place is
free again and its thread dies with the process.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

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


def in_daemon_thread(call: Callable[[], T]) -> Future[T]:
    """Start the call on a daemon thread of its own, with no context variables of the caller, and return its future."""
    future: Future[T] = Future()

    def work() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            value = call()
        except BaseException as error:  # whatever it is belongs to the one who waits, not to this thread
            future.set_exception(error)
        else:
            future.set_result(value)

    threading.Thread(target=work, name="palimpsest-model", daemon=True).start()
    return future
