"""The stores that turns ask: each for so many seconds at most, and none that failed or hung just before."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from typing import Literal, TypeVar
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore

from memory.breaker import PROMPT_SECONDS, Breaker, Outcome
from memory.door import StoreEffects, arun, delete, read, tolerated
from memory.namespaces import PROBE

logger = logging.getLogger(__name__)

T = TypeVar("T")

Access = Literal["read", "write"]

_CONSEQUENCES: dict[Access, str] = {
    "read": "turns go on without memory, and are written down later",
    "write": "turns are written down later",
}


class StoreAway(Exception):
    """A store is not asked, as it failed or hung just before."""


class Stores:
    """The stores of this process: how long a turn waits for each, and which are away.

    That is found out by probes, off the turns, one at a time for each store. A store that can be read may be locked for
    writers, so each way of access has a breaker and probes of its own.

    Args:
        read: Seconds for which a turn waits to be told what memory holds.
        write: Seconds for which it waits until something is written down.
    """

    def __init__(self, *, read: float, write: float) -> None:
        self.seconds: dict[Access, float] = {"read": read, "write": write}
        self._doubted: WeakKeyDictionary[BaseStore, dict[Access, _Doubted]] = WeakKeyDictionary()

    async def ask(self, store: BaseStore, access: Access, work: Callable[[], Awaitable[T]]) -> T:
        """Let a turn wait for a store.

        Args:
            store: Who is asked.
            access: What for.
            work: Asks; not called if the store is away.

        Raises:
            StoreAway: If the store failed or hung just before.
            TimeoutError: If the turn may wait no longer.
            Exception: Whatever the store raises.
        """
        if self.is_away(store, access):
            raise StoreAway(access)
        seconds = self.seconds[access]
        # Early: at the deadline it is known then whether the store is away, and the next turn does not pay for it.
        slow = asyncio.get_running_loop().call_later(seconds / 2, self.doubt, store, access)
        try:
            async with asyncio.timeout(seconds):
                return await work()
        except Exception:
            self.doubt(store, access)
            raise
        finally:
            slow.cancel()

    def is_away(self, store: BaseStore, access: Access) -> bool:
        """Say whether a store is not to be asked; a write begins with reads."""
        doubted = self._doubted.get(store, {})
        away = [one for of, one in doubted.items() if one.breaker.is_open and of in ("read", access)]
        for one in away:
            one.probe(store)  # the event loop that it was probed on may have ended
        return bool(away)

    def doubt(self, store: BaseStore, access: Access) -> None:
        """Find out, in the background, whether a store that fails or takes its time is away for everyone."""
        self._doubted.setdefault(store, {}).setdefault(access, _Doubted(access)).probe(store)

    def any_away(self) -> bool:
        """Say whether any store is."""
        return any(one.breaker.is_open for doubted in list(self._doubted.values()) for one in list(doubted.values()))


class _Doubted:
    """One way of access to one store: its breaker, and the task that probes while anybody is in doubt."""

    def __init__(self, access: Access) -> None:
        self.breaker = Breaker()
        self.probing: asyncio.Task[None] | None = None
        self._access = access

    def probe(self, store: BaseStore) -> None:
        """Begin to probe, unless that is under way; on a thread without an event loop nothing can be begun."""
        task = self.probing
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        # A task of a loop that ended, or that nobody runs any more, finds out nothing.
        if task is None or task.done() or (task.get_loop() is not loop and not task.get_loop().is_running()):
            # In a context of its own: a probe is no part of the run that happens to begin it.
            self.probing = loop.create_task(self._until_it_answers(store), context=Context())

    async def _until_it_answers(self, store: BaseStore) -> None:
        while True:
            asked = asyncio.create_task(arun(store, read(PROBE, "probe") if self._access == "read" else _write()))
            try:
                done, _ = await asyncio.wait({asked}, timeout=PROMPT_SECONDS)
                if not done:
                    self._note("silent", "no answer")
                    done, _ = await asyncio.wait({asked}, timeout=self.breaker.patience)
            finally:
                asked.cancel()
            error = asked.exception() if done and not asked.cancelled() else None if done else TimeoutError()
            self._note("failed" if error else "answered", type(error).__name__)
            if error is None:
                return
            await asyncio.sleep(self.breaker.pause)

    def _note(self, outcome: Outcome, reason: str) -> None:
        was_open = self.breaker.is_open
        self.breaker = self.breaker.after(outcome)
        if self.breaker.is_open and not was_open:
            logger.warning("the store is away (%s: %s): %s", self._access, reason, _CONSEQUENCES[self._access])
        elif was_open and not self.breaker.is_open:
            logger.warning("the store is back (%s)", self._access)


def _write() -> StoreEffects[None]:
    # Deleting what is not there takes the way of every write, and its lock, and leaves nothing behind.
    yield [delete(PROBE, "probe")]


@contextmanager
def tolerated_store(logger: logging.Logger, consequence: str) -> Iterator[None]:
    """Tolerate a failing store; of one that is not asked, the log says when that began and when it ends."""
    with tolerated(logger, consequence), suppress(StoreAway):
        yield
