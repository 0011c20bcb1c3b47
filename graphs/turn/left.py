"""Turns that ended before they were written down, while their process lives: written down when it ends in order.

A server's next sweep writes them down before. A program of one's own has no list of threads: what only a checkpoint
names waits for its thread's next turn.
"""

import atexit
import logging
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future

from langgraph.store.base import BaseStore

from memory.door import in_daemon_thread, tolerated
from memory.turn import Closing

logger = logging.getLogger(__name__)

_MOST_THREADS = 200


class LeftTurns:
    """What is left of each thread, the newest threads only; told of no end, the end of the process is one.

    Args:
        write: Writes one turn down; twice changes nothing.
        seconds: How long the end of a process waits that nobody tells of its end.
    """

    def __init__(self, write: Callable[[BaseStore, Closing], None], seconds: float) -> None:
        self._write, self._seconds = write, seconds
        self._left: dict[Hashable, list[tuple[BaseStore, Closing]]] = {}
        self._ends, self._may_write = threading.Event(), False
        self._writing: Future[None] | None = None

    def note(self, thread: Hashable, store: BaseStore, left: Sequence[Closing]) -> None:
        """Note what is left of a thread now; what was left of it before is written down, or never to be."""
        self._left.pop(thread, None)
        if not left:
            return
        self._left[thread] = [(store, closing) for closing in left]
        if len(self._left) > _MOST_THREADS:
            del self._left[next(iter(self._left))]
        if self._writing is None:
            with tolerated(logger, "turns that are left are not written down at the end of this process"):
                self._ends = threading.Event()
                # Begun now: while an interpreter ends, no thread can be.
                self._writing = in_daemon_thread(self._write_at_the_end, "palimpsest-left")
                atexit.register(self.write_down, self._seconds)

    def all(self) -> list[tuple[Hashable, list[tuple[BaseStore, Closing]]]]:
        """Return what is left, by thread, as it is now."""
        return list(self._left.items())

    def settle(self, thread: Hashable, left: Sequence[tuple[BaseStore, Closing]]) -> None:
        """Drop what was left of a thread, as it is written down, unless more was noted meanwhile."""
        if self._left.get(thread) is left:
            self._left.pop(thread, None)

    def drop(self, erased: str) -> None:
        """Drop what came from an erased thread, by its id, or user, by the user's segment."""
        for thread, left in list(self._left.items()):
            if any(erased in (closing.thread_id, closing.owner.segment) for _, closing in left):
                self._left.pop(thread, None)

    def write_down(self, seconds: float) -> bool:
        """Write down what is left, for at most so many seconds, and say whether that took the store's answer.

        What is not written down in time, the log says. No time at all writes nothing.
        """
        if self._writing is None:
            return False
        atexit.unregister(self.write_down)
        self._may_write = seconds > 0
        self._ends.set()
        with tolerated(logger, "turns are not written down in time"):
            self._writing.result(seconds)
        self._writing = None
        if count := sum(map(len, self._left.values())):
            logger.warning(
                "%d turns are lost unless a checkpointer keeps their threads: their next turns write them", count
            )
        return not count

    def _write_at_the_end(self) -> None:
        self._ends.wait()
        for thread, left in self.all() if self._may_write else ():
            with tolerated(logger, "what was left of a thread is not written down"):
                for store, closing in left:
                    self._write(store, closing)
                self.settle(thread, left)
