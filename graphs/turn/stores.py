"""The stores that turns ask, each for so many seconds at most, and the turns that they left unwritten."""

import asyncio
import atexit
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Literal, TypeVar

from langgraph.store.base import BaseStore

from graphs.process.synchronous import ByStore
from memory.door import arun, ask, delete, in_daemon_thread, read, tolerated
from memory.namespaces import PROBE
from memory.turn import Closing
from memory.updates.conversation import ConversationContext

logger = logging.getLogger(__name__)

T = TypeVar("T")

Access = Literal["read", "write"]
Pause = tuple[float, float]
"""Until when a store is not asked, by the clock, and for how many seconds."""

_CONSEQUENCES: dict[Access, str] = {
    "read": "turns go on without memory, and are written down later",
    "write": "turns are written down later",
}


_PROMPT_SECONDS = 0.5
"""A store that fails a turn is probed so long. A probe touches no user's item: one user's bad value says nothing."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds for which a store that is away is not asked: these at first, twice as long each time, and those at most."""
_MOST_THREADS = 200
"""Unwritten turns of so many threads are held in memory, the newest."""


class StoreAway(Exception):
    """A store is not asked, as it failed or hung just before."""


class Stores:
    """The stores of this process: how long a turn waits for each, and which are away.

    One that hangs is away, and one that fails and answers no probe either. After a pause, one turn asks it again. What
    can be read may be locked for writers, so reading and writing are told apart.

    Args:
        read: Seconds for which a turn waits to be told what memory holds.
        write: Seconds for which it waits until something is written down.
        clock: Returns seconds; only differences matter.
    """

    def __init__(self, *, read: float, write: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds: dict[Access, float] = {"read": read, "write": write}
        self.clock = clock
        self._away = ByStore[dict[Access, Pause]](dict)
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
        away, seconds = self._away[store], self.seconds[access]
        if access in away:  # the turns beside this one do not ask, until it knows
            away[access] = self.clock() + seconds, away[access][1]
        known = away.get(access)
        try:
            async with asyncio.timeout(seconds):
                done = await work()
        except Exception as error:
            if isinstance(error, TimeoutError) or not await self._answers(store, access):
                self.doubt(store, access, known)
            else:
                _trust(away, access)
            raise
        _trust(away, access)
        return done

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
        away, now = self._away[store], self.clock()
        return any(of in away and away[of][0] > now for of in ("read", access))

    def doubt(self, store: BaseStore, access: Access, known: Pause | None = None) -> None:
        """Take a store for away that did not answer, unless another turn has told so since what was known of it."""
        away = self._away[store]
        if away.get(access) != known:
            return
        if known is None:
            logger.warning("the store is away (%s): %s", access, _CONSEQUENCES[access])
        pause = min(2 * known[1], _LONGEST_PAUSE) if known else _SHORTEST_PAUSE
        away[access] = self.clock() + pause, pause

    def any_away(self) -> bool:
        """Say whether any store was when it was asked last."""
        return any(self._away.values())

    async def _answers(self, store: BaseStore, access: Access) -> bool:
        with suppress(Exception):
            async with asyncio.timeout(_PROMPT_SECONDS):
                await arun(store, read(PROBE, "probe") if access == "read" else _write_probe())
                return True
        return False


def _trust(away: dict[Access, Pause], access: Access) -> None:
    if away.pop(access, None):
        logger.warning("the store is back (%s)", access)


async def _write_probe() -> None:
    # Deleting what is not there takes the way of every write, and its lock, and leaves nothing behind.
    await ask(delete(PROBE, "probe"))


@contextmanager
def tolerated_store(logger: logging.Logger, consequence: str) -> Iterator[None]:
    """Tolerate a failing store, without a log line where it is not asked: that is logged once."""
    with tolerated(logger, consequence), suppress(StoreAway):
        yield


class LeftTurns:
    """Turns that ended before they were written down: an update of their thread does that, or the end of this process.

    A next turn of their thread may be earlier. If nobody calls `end`, the interpreter's exit does.

    Args:
        write: Writes one turn down, idempotently; blocks.
        add: Has a thread's update tried, and tried again.
        seconds: How long the interpreter's exit waits, where nobody calls `end`.
    """

    def __init__(
        self,
        write: Callable[[BaseStore, Closing], None],
        add: Callable[[ConversationContext], None],
        seconds: float,
    ) -> None:
        self._write, self._add, self._seconds = write, add, seconds
        self._left: dict[Hashable, tuple[BaseStore, Sequence[Closing]]] = {}
        self._ends = threading.Event()
        self._writing: Future[None] | None = None

    def note(self, thread: Hashable, store: BaseStore, left: Sequence[Closing]) -> None:
        """Hold these turns as the unwritten ones of a thread, instead of those that were held."""
        self._left.pop(thread, None)
        if not left:
            return
        self._left[thread] = store, left
        if len(self._left) > _MOST_THREADS:
            del self._left[next(iter(self._left))]
        self._add(ConversationContext.of(left[0].owner, left[0].thread_id, store))
        if self._writing is None:
            with tolerated(logger, "turns that are left are not written down at the end of this process"):
                self._ends = threading.Event()
                # Started now, as no thread can be started while the interpreter exits.
                self._writing = in_daemon_thread(self._write_at_end, "palimpsest-left")
                atexit.register(self.end, self._seconds)

    def write(self, thread_id: str = "") -> bool:
        """Write down what is left of a thread, or of all, and say whether all was."""
        is_all = True
        for thread, held in [*self._left.items()]:
            store, left = held
            if thread_id not in ("", left[0].thread_id):
                continue
            with tolerated(logger, "what was left of a thread is not written down"):
                for closing in left:
                    self._write(store, closing)
                if self._left.get(thread) is held:  # else more was noted meanwhile
                    del self._left[thread]
                continue
            is_all = False
        return is_all

    def drop(self, erased: str) -> None:
        """Drop what came from an erased thread, by its id, or user, by the user's segment."""
        for thread, (_, left) in [*self._left.items()]:
            if any(erased in (closing.thread_id, closing.owner.segment) for closing in left):
                self._left.pop(thread, None)

    def end(self, seconds: float) -> bool:
        """Write down what is left, within so many seconds, and say whether all was; the log counts the rest.

        0 seconds write nothing; `False` where nothing was left.
        """
        if not self._left:
            return False
        with tolerated(logger, "turns are not written down in time"):
            if seconds > 0 and self._writing:
                self._ends.set()
                self._writing.result(seconds)
        atexit.unregister(self.end)
        self._writing = None
        if lost := sum(len(left) for _, left in self._left.values()):
            logger.warning(
                "%d turns are lost unless a checkpointer keeps their threads: their next turns write them", lost
            )
        self._left = {}
        return not lost

    def _write_at_end(self) -> None:
        self._ends.wait()
        self.write()
