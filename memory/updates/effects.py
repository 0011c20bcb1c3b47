"""What updates and roll-ups ask for beside the store: a model, within the limits of one process."""

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from langchain_core.language_models import BaseChatModel

from memory.budget import BudgetUsedUp, DailyBudget, spend
from memory.config import MemoryConfig
from memory.door import Batch, in_daemon_thread
from memory.message import iso_time
from memory.namespaces import Owner
from memory.updates.lease import Lease, Worker

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelCall:
    """The effect of work with a model, in one of the process's places for it (`ModelCalls`); its value is sent back.

    Loading a model blocks, and a provider may hang for ever: the work as a whole has a thread, a place and a deadline.

    Attributes:
        model: `provider:model`; empty means the deployment's own.
        use: Asks the model. It runs on a thread of its own and may block.
        purpose: What it is asked for.
    """

    model: str
    use: Callable[[BaseChatModel], Any]
    purpose: Literal["extraction", "rollup"]


WorkerEffects = Generator[Batch | ModelCall, Any, T]
"""Yields batches for the store and model calls, is sent what comes of each, and returns a value."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What an update is told from outside: limits, who carries it out, what time it is.

    Attributes:
        config: Limits and switches.
        worker: The process.
        token: Of this update's lease, a random one.
        clock: Returns seconds since the epoch.
    """

    config: MemoryConfig
    worker: Worker
    token: str
    clock: Callable[[], float]

    def now(self) -> str:
        """Return the time as ISO 8601 in UTC."""
        return iso_time(self.clock())

    def lease(self, keys: Iterable[str] = ()) -> Lease:
        """Return this update's lease from now on, while a model is asked about the pending updates of these keys."""
        until = self.clock() + self.config.lease_seconds
        return Lease(self.token, until, self.worker.host, self.worker.pid, tuple(keys))

    def ask(self, owner: Owner, call: ModelCall, *, has_begun: bool = False) -> WorkerEffects[Any]:
        """Have a model asked for an owner, and return its answer; `BudgetUsedUp` if none may be asked today."""
        until = yield from spend(owner, DailyBudget.of(self.config), self.clock(), has_begun=has_begun)
        if until is not None:
            raise BudgetUsedUp(until)
        return (yield call)


class ModelCalls:
    """The places for model calls of one process.

    Args:
        max_workers: How many calls are waited for at a time.
        max_abandoned: How many abandoned ones may run beside them.
        clock: Returns seconds; only differences matter.
        sleep: Waits so many seconds on a thread.
    """

    def __init__(
        self,
        max_workers: int = 4,
        max_abandoned: int = 4,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._waited_for = threading.BoundedSemaphore(max_workers)
        self._running = threading.BoundedSemaphore(max_workers + max_abandoned)
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        self._last_start = float("-inf")

    def run(self, call: Callable[[], T], timeout: float, spacing: float = 0.0) -> T:
        """Make the call when a place is free, so many seconds after the one before, and return its value.

        A thread cannot be ended: a call that takes too long is abandoned, and runs until it ends by itself.

        Raises:
            TimeoutError: If the call takes longer than `timeout` seconds, not counting the wait for its start; or if
                abandoned calls hold all places for so long.
        """
        with self._waited_for:
            if not self._running.acquire(timeout=timeout):
                raise TimeoutError("every place is held by a model call that passed its deadline and still runs")
            with self._lock:
                now = self._clock()
                self._last_start = max(now, self._last_start + spacing)
                delay = self._last_start - now
            try:
                if delay > 0:
                    self._sleep(delay)
                future = in_daemon_thread(call)
            except BaseException:
                self._running.release()
                raise
            future.add_done_callback(lambda _: self._running.release())
            return future.result(timeout)

    async def arun(self, call: Callable[[], T], timeout: float, spacing: float = 0.0) -> T:
        """Make the call like `run`, without holding up the event loop."""
        return await asyncio.wrap_future(in_daemon_thread(partial(self.run, call, timeout, spacing)))
