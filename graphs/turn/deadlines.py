"""How long a turn waits for memory in all, and which stores it does not ask: they failed or hung just before."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import Context
from typing import Literal, TypeVar
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore

from memory.breaker import PROMPT_SECONDS, Breaker, Outcome
from memory.effects import StoreEffects, arun, delete, read, tolerated
from memory.namespaces import PROBE

logger = logging.getLogger(__name__)

T = TypeVar("T")

Access = Literal["read", "write"]

_CONSEQUENCES: dict[Access, str] = {
    "read": "turns go on without memory, and are written down later",
    "write": "turns are written down later",
}
_KEPT_TURNS = 1024


class StoreAway(Exception):
    """A store is not asked, as it failed or hung just before."""


class StoreWatch:
    """Which of this process's stores are away: found out by probes, off the turns, one at a time for each store.

    A store that can be read may be locked for writers, so each way of access has a breaker and probes of its own.
    """

    def __init__(self) -> None:
        self._watched: WeakKeyDictionary[BaseStore, dict[Access, _Probed]] = WeakKeyDictionary()

    def is_away(self, store: BaseStore, access: Access) -> bool:
        """Say whether a store is not to be asked; a write begins with reads."""
        away = [
            probed
            for of, probed in self._watched.get(store, {}).items()
            if probed.breaker.is_open and of in ("read", access)
        ]
        for probed in away:
            probed.probe(store)  # the event loop that it was probed on may have ended
        return bool(away)

    def doubt(self, store: BaseStore, access: Access) -> None:
        """Find out, in the background, whether a store that fails or takes its time is away for everyone."""
        self._watched.setdefault(store, {}).setdefault(access, _Probed(access)).probe(store)

    def any_away(self) -> bool:
        """Say whether any store is."""
        return any(one.breaker.is_open for one in self._all())

    async def settled(self) -> None:
        """Return once no store is in doubt any more: all that were have answered."""
        await asyncio.gather(*(one.answered() for one in self._all()))

    def _all(self) -> "list[_Probed]":
        return [one for probed in list(self._watched.values()) for one in list(probed.values())]


class _Probed:
    """One way of access to one store: its breaker, and the task that probes while anybody is in doubt."""

    def __init__(self, access: Access) -> None:
        self.breaker = Breaker()
        self._access = access
        self._probing: asyncio.Task[None] | None = None

    def probe(self, store: BaseStore) -> None:
        """Begin to probe, unless that is under way."""
        loop, task = asyncio.get_running_loop(), self._probing
        # A task of a loop that ended, or that nobody runs any more, finds out nothing.
        if task is None or task.done() or (task.get_loop() is not loop and not task.get_loop().is_running()):
            # In a context of its own: a probe is no part of the run that happens to begin it.
            self._probing = loop.create_task(self._until_it_answers(store), context=Context())

    async def answered(self) -> None:
        """Return once the store has answered, if it is in doubt."""
        if self._probing is not None:
            await asyncio.wait({self._probing})

    async def _until_it_answers(self, store: BaseStore) -> None:
        while True:
            if await self._answers(store):
                return
            await asyncio.sleep(self.breaker.pause)

    async def _answers(self, store: BaseStore) -> bool:
        asked = asyncio.create_task(arun(store, _PROBES[self._access]()))
        try:
            done, _ = await asyncio.wait({asked}, timeout=PROMPT_SECONDS)
            if not done:
                self._note("silent", "no answer")
                done, _ = await asyncio.wait({asked}, timeout=self.breaker.patience)
        finally:
            asked.cancel()
        error = asked.exception() if done and not asked.cancelled() else None if done else TimeoutError()
        self._note("failed" if error else "answered", type(error).__name__)
        return error is None

    def _note(self, outcome: Outcome, reason: str) -> None:
        was_open = self.breaker.is_open
        self.breaker = self.breaker.after(outcome)
        if self.breaker.is_open and not was_open:
            logger.warning("the store is away (%s: %s): %s", self._access, reason, _CONSEQUENCES[self._access])
        elif was_open and not self.breaker.is_open:
            logger.warning("the store is back (%s)", self._access)


def _probe_writing() -> StoreEffects[None]:
    # Deleting what is not there takes the way of every write, and its lock, and leaves nothing behind.
    yield [delete(PROBE, "probe")]


_PROBES: dict[Access, Callable[[], StoreEffects[object]]] = {
    "read": lambda: read(PROBE, "probe"),
    "write": _probe_writing,
}


class TurnDeadlines:
    """What turns may still wait for memory, each in all of its nodes together; in this process's memory only.

    Args:
        watch: Knows which stores are away.
        read: Seconds for all reading of a turn.
        write: Seconds for all that it writes down.
        clock: Returns seconds; only differences matter.
    """

    def __init__(
        self, watch: StoreWatch, *, read: float, write: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._watch = watch
        self._clock = clock
        self._seconds: dict[Access, float] = {"read": read, "write": write}
        self._left: dict[Hashable, dict[Access, float]] = {}
        self._begun: dict[Hashable, float] = {}

    def begin(self, turn: Hashable, now: float = math.inf) -> None:
        """Give a turn its whole time: it begins, or begins again, at a time in seconds since the epoch."""
        self._left.pop(turn, None)
        self._left[turn], self._begun[turn] = dict(self._seconds), now
        if len(self._left) > _KEPT_TURNS:
            oldest = next(iter(self._left))
            del self._left[oldest], self._begun[oldest]

    def begun(self, turn: Hashable) -> float:
        """Return when a turn began, in seconds since the epoch; infinite where this process does not know."""
        return self._begun.get(turn, math.inf)

    @asynccontextmanager
    async def within(self, turn: Hashable, access: Access) -> AsyncIterator[None]:
        """Let a turn wait for what is inside; `TimeoutError` once it has waited as long as it may in all."""
        if turn not in self._left:  # resumed in another process than it began in
            self.begin(turn)
        left, started = self._left[turn], self._clock()
        try:
            async with asyncio.timeout(max(0.0, left[access])):
                yield
        finally:
            left[access] -= self._clock() - started

    async def ask(self, turn: Hashable, store: BaseStore, access: Access, work: Callable[[], Awaitable[T]]) -> T:
        """Let a turn wait for a store.

        Args:
            turn: Names the turn.
            store: Who is asked.
            access: Which of the turn's times it takes.
            work: Asks; not called if the store is away.

        Raises:
            StoreAway: If the store failed or hung just before.
            TimeoutError: If the turn may wait no longer.
            Exception: Whatever the store raises.
        """
        if self._watch.is_away(store, access):
            raise StoreAway(access)
        # Early: at the deadline it is known then whether the store is away, and the next turn does not pay for it.
        slow = asyncio.get_running_loop().call_later(self._seconds[access] / 2, self._watch.doubt, store, access)
        try:
            async with self.within(turn, access):
                return await work()
        except Exception:
            self._watch.doubt(store, access)
            raise
        finally:
            slow.cancel()


@contextmanager
def tolerated_store(logger: logging.Logger, consequence: str) -> Iterator[None]:
    """Tolerate a failing store; of one that is not asked, the log says when that began and when it ends."""
    with tolerated(logger, consequence), suppress(StoreAway):
        yield
