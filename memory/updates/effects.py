"""What updates and roll-ups ask for beside the store: a model, within the limits of one process, and when to start."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from langchain_core.language_models import BaseChatModel

from memory.budget import Purse
from memory.config import MemoryConfig
from memory.effects import Batch, in_daemon_thread
from memory.message import iso_time
from memory.namespaces import Owner
from memory.updates.lease import Lease, Worker

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelCall:
    """The effect of work with a model, in one of the process's places for it (`ModelCalls`); its value is sent back.

    It is not `memory.effects.Ask`, which its work comes down to: loading a model blocks, and a provider may hang for
    ever, so that the work as a whole has a thread, a place and a deadline.

    Attributes:
        model: `provider:model`; empty means the deployment's own.
        use: Asks the model. It runs on a thread of its own and may block.
        owner: Whose memory it is for.
        purpose: What it is asked for.
    """

    model: str
    use: Callable[[BaseChatModel], Any]
    owner: Owner
    purpose: Literal["extraction", "rollup"]


@dataclass(frozen=True, slots=True)
class AwaitStart:
    """The effect of waiting until work that asks a model may start (`UpdateGate`); nothing is sent back."""


WorkerEffects = Generator[Batch | ModelCall | AwaitStart, Any, T]
"""Yields batches for the store, model calls and waits, is sent what comes of each, and returns a value."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What an update is told from outside: limits, who carries it out, what time it is.

    Attributes:
        config: Limits and switches.
        worker: The process.
        token: Of this update's lease, a random one.
        clock: Returns seconds since the epoch.
        purse: What is known of users' budgets.
        answering: The models that have answered this process since they failed the last time.
    """

    config: MemoryConfig
    worker: Worker
    token: str
    clock: Callable[[], float]
    purse: Purse
    answering: set[str]

    def now(self) -> str:
        """Return the time as ISO 8601 in UTC."""
        return iso_time(self.clock())

    def lease(self, keys: Iterable[str] = ()) -> Lease:
        """Return this update's lease from now on, while a model is asked about the pending updates of these keys."""
        until = self.clock() + self.config.lease_seconds
        return Lease(self.token, until, self.worker.host, self.worker.pid, tuple(keys))

    def may_take(self, lease: Lease) -> bool:
        """Say whether the user may be taken from whoever has this lease."""
        return lease.is_free(self.clock(), self.worker)


class ModelCalls:
    """The places for model calls of one process.

    Args:
        max_workers: How many calls are waited for at a time.
        max_abandoned: How many abandoned ones may run beside them.
    """

    def __init__(self, max_workers: int = 4, max_abandoned: int = 4) -> None:
        self._max_workers, self._max_abandoned = max_workers, max_abandoned
        self._changed = threading.Condition()
        self.answering = set[str]()
        self._waited_for = 0
        self._abandoned: set[Future[object]] = set()

    def run(self, call: Callable[[], T], timeout: float) -> T:
        """Make the call when a place is free and return its value.

        Raises:
            TimeoutError: If the call takes longer than `timeout` seconds, not counting the wait for a place; or if
                abandoned calls hold all places.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._places() <= 0 or self._waited_for < self._places())
            if self._places() <= 0:
                raise TimeoutError("every place is held by a model call that passed its deadline and still runs")
            self._waited_for += 1
        future = in_daemon_thread(call)
        try:
            return future.result(timeout)
        finally:
            with self._changed:
                self._waited_for -= 1
                if not future.done():  # a thread cannot be ended: it counts as abandoned until it ends by itself
                    self._abandoned.add(future)  # type: ignore[arg-type]  # only ever asked whether it has ended
                self._changed.notify_all()
            future.add_done_callback(self._ended)

    async def arun(self, call: Callable[[], T], timeout: float) -> T:
        """Make the call like `run`, without holding up the event loop."""
        return await asyncio.wrap_future(in_daemon_thread(partial(self.run, call, timeout)))

    def _places(self) -> int:
        """Return how many calls may be waited for; abandoned ones beyond their number take places from them."""
        return self._max_workers - max(0, len(self._abandoned) - self._max_abandoned)

    def _ended(self, future: "Future[T]") -> None:
        with self._changed:
            self._abandoned.discard(future)
            self._changed.notify_all()


class UpdateGate:
    """Spaces the starts of updates, on threads and on event loops. Nothing waits after the last one.

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
            self._last_start = max(now, self._last_start + spacing)
            return self._last_start - now
