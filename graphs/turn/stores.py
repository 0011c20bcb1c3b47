"""The stores that turns ask, each for so many seconds at most, and the turns that they left unwritten."""

import asyncio
import atexit
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import Context
from itertools import count
from typing import Literal, TypeVar

from langgraph.store.base import BaseStore

from graphs.process.synchronous import ByStore
from memory.door import arun, ask, delete, in_daemon_thread, read, tolerated
from memory.namespaces import PROBE
from memory.turn import Closing

logger = logging.getLogger(__name__)

T = TypeVar("T")

Access = Literal["read", "write"]

_CONSEQUENCES: dict[Access, str] = {
    "read": "turns go on without memory, and are written down later",
    "write": "turns are written down later",
}


_PROMPT_SECONDS = 0.5
"""A store whose probe has no answer by then counts as away; the probe goes on, and its answer ends that."""
_LONGEST_PAUSE = 60.0
"""Seconds until the next probe: from one on, twice as long after each that failed, and so many at most."""
_PATIENCE = 10
"""A probe is given up after so many times its pause, as its answer may be lost, and begun anew: each may leave a
hanging thread behind."""
_MOST_THREADS = 200
"""Unwritten turns of so many threads are held in memory, the newest."""


class StoreAway(Exception):
    """A store is not asked, as it failed or hung just before."""


class Stores:
    """The stores of this process: how long a turn waits for each, and which are away.

    Tasks beside the turns probe a doubtful store, one at a time. A store that can be read may be locked for writers, so
    reading and writing are probed apart.

    Args:
        read: Seconds for which a turn waits to be told what memory holds.
        write: Seconds for which it waits until something is written down.
    """

    def __init__(self, *, read: float, write: float) -> None:
        self.seconds: dict[Access, float] = {"read": read, "write": write}
        self._probes = ByStore[dict[Access, _Probe]](dict)
        self._writing: set[asyncio.Task[object]] = set()

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
        # The probe begins at half of the deadline, so that at its end the next turn knows whether the store is away.
        slow = asyncio.get_running_loop().call_later(seconds / 2, self.doubt, store, access)
        try:
            async with asyncio.timeout(seconds):
                return await work()
        except Exception:
            self.doubt(store, access)
            raise
        finally:
            slow.cancel()

    async def write(self, store: BaseStore, work: Callable[[], Coroutine[object, object, T]]) -> T:
        """Do what `ask` does, for a write: past its deadline the turn goes on, and the write is not cancelled."""

        async def begin() -> T:
            task = asyncio.create_task(work())
            # The loop itself holds tasks weakly: past the deadline nobody else would hold this one.
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)
            return await asyncio.shield(task)

        return await self.ask(store, "write", begin)

    def is_away(self, store: BaseStore, access: Access) -> bool:
        """Say whether a store is not to be asked; a write begins with reads."""
        away = [one for of, one in self._probes[store].items() if one.is_away and of in ("read", access)]
        for one in away:
            one.begin(store)  # the event loop that it was probed on may have ended
        return bool(away)

    def doubt(self, store: BaseStore, access: Access) -> None:
        """Find out, in the background, whether a store that fails or takes its time is away for everyone."""
        self._probes[store].setdefault(access, _Probe(access)).begin(store)

    def any_away(self) -> bool:
        """Say whether any store is."""
        return any(one.is_away for probes in self._probes.values() for one in list(probes.values()))


class _Probe:
    """Whether one store can be read, or written, and the task that probes it while that is in doubt.

    A probe touches no user's item: one user's bad value, or one slow answer, says nothing about a store.

    Attributes:
        is_away: Whether nobody else asks, so that a store that is away costs a turn nothing.
    """

    def __init__(self, access: Access) -> None:
        self.is_away, self._access = False, access
        self.probing: asyncio.Task[None] | None = None

    def begin(self, store: BaseStore) -> None:
        """Begin to probe, unless that is under way; on a thread without an event loop nothing can be begun."""
        task = self.probing
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        # A task of a loop that ended, or that nobody runs any more, finds out nothing.
        if task is None or task.done() or (task.get_loop() is not loop and not task.get_loop().is_running()):
            # In an empty context: the probe must not be traced, or configured, as a part of the run that begins it.
            self.probing = loop.create_task(self._until_it_answers(store), context=Context())

    async def _until_it_answers(self, store: BaseStore) -> None:
        for failures in count():
            asked = asyncio.create_task(arun(store, read(PROBE, "probe") if self._access == "read" else _write_probe()))
            late = asyncio.get_running_loop().call_later(_PROMPT_SECONDS, self._note, "no answer")
            pause = min(2.0 ** min(failures, 30), _LONGEST_PAUSE)
            try:
                async with asyncio.timeout(_PATIENCE * pause):
                    await asyncio.shield(asked)  # one that takes no notice of its end is not waited for
            except Exception as error:  # whatever the store raises
                self._note(type(error).__name__)
            else:
                self._note("")
                return
            finally:
                late.cancel()
                asked.cancel()
            await asyncio.sleep(pause)

    def _note(self, reason: str) -> None:
        """Note why the store is away, or, without a reason, that it is there."""
        if reason and not self.is_away:
            logger.warning("the store is away (%s: %s): %s", self._access, reason, _CONSEQUENCES[self._access])
        elif self.is_away and not reason:
            logger.warning("the store is back (%s)", self._access)
        self.is_away = bool(reason)


async def _write_probe() -> None:
    # Deleting what is not there takes the way of every write, and its lock, and leaves nothing behind.
    await ask(delete(PROBE, "probe"))


@contextmanager
def tolerated_store(logger: logging.Logger, consequence: str) -> Iterator[None]:
    """Tolerate a failing store, without a log line where it is not asked: the probe logs that once."""
    with tolerated(logger, consequence), suppress(StoreAway):
        yield


class LeftTurns:
    """Turns that ended before they were written down: their process tries again now and then, and as it ends.

    A next turn of their thread may write them down earlier. If nobody calls `end`, the interpreter's exit does.

    Args:
        stores: Says which stores are away. Those are written at the end only: a call that hangs would hold up all other
            turns, and its user's lock.
        write: Writes one turn down, idempotently; blocks.
        pause: Seconds between two tries.
        seconds: How long the interpreter's exit waits, where nobody calls `end`.
    """

    def __init__(
        self, stores: Stores, write: Callable[[BaseStore, Closing], None], pause: float, seconds: float
    ) -> None:
        self._stores, self._write, self._pause, self._seconds = stores, write, pause, seconds
        self._left: dict[Hashable, tuple[BaseStore, Sequence[Closing]]] = {}
        self._ends, self._may_write = threading.Event(), True
        self._writing: Future[None] | None = None

    def note(self, thread: Hashable, store: BaseStore, left: Sequence[Closing]) -> None:
        """Hold these turns as the unwritten ones of a thread, instead of those that were held."""
        self._left.pop(thread, None)
        if not left:
            return
        self._left[thread] = store, left
        if len(self._left) > _MOST_THREADS:
            del self._left[next(iter(self._left))]
        if self._writing is None:
            with tolerated(logger, "turns that are left are not written down at the end of this process"):
                self._ends, self._may_write = threading.Event(), True
                # Started now, as no thread can be started while the interpreter exits.
                self._writing = in_daemon_thread(self._work, "palimpsest-left")
                atexit.register(self.end, self._seconds)

    def drop(self, erased: str) -> None:
        """Drop what came from an erased thread, by its id, or user, by the user's segment."""
        for thread, (_, left) in [*self._left.items()]:
            if any(erased in (closing.thread_id, closing.owner.segment) for closing in left):
                self._left.pop(thread, None)

    def end(self, seconds: float) -> bool:
        """Write down what is left, within so many seconds, and say whether all was; the log counts the rest.

        0 seconds write nothing; `False` where nothing was ever left.
        """
        if self._writing is None:
            return False
        atexit.unregister(self.end)
        self._may_write = seconds > 0
        self._ends.set()
        with tolerated(logger, "turns are not written down in time"):
            self._writing.result(seconds)
        self._writing = None
        if lost := sum(len(left) for _, left in self._left.values()):
            logger.warning(
                "%d turns are lost unless a checkpointer keeps their threads: their next turns write them", lost
            )
        return not lost

    def _work(self) -> None:
        has_ended, ends = False, self._ends
        while not has_ended:
            has_ended = ends.wait(self._pause)
            for thread, left in [*self._left.items()] if self._may_write else ():
                level = logging.WARNING if has_ended else logging.DEBUG
                with tolerated(logger, "what was left of a thread is not written down", level=level):
                    store, closings = left
                    if not has_ended and self._stores.is_away(store, "write"):
                        continue
                    for closing in closings:
                        self._write(store, closing)
                    if self._left.get(thread) is left:  # else more was noted meanwhile
                        del self._left[thread]
