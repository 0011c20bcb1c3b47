"""Work behind turns: on a daemon thread of its own, for each owner by one at a time, which goes on with what came."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait

from langgraph.store.base import BaseStore

from memory.effects import in_daemon_thread, tolerated
from memory.namespaces import Owner


class WorkBehind:
    """One sort of work, which looks for itself what there is to do for an owner.

    Args:
        work: Does it; blocks.
        name: Of its threads.
        logger: Where a failure is logged; the next who asks tries again.
        consequence: What a failure means, with a placeholder for the owner.
    """

    def __init__(
        self, work: Callable[[BaseStore, Owner], object], name: str, logger: logging.Logger, consequence: str
    ) -> None:
        self._work, self._name, self._logger, self._consequence = work, name, logger, consequence
        self._lock = threading.Lock()
        # For whom it is under way, and whether somebody asked for it since it was begun the last time.
        self._asked: dict[tuple[BaseStore, Owner], bool] = {}
        self._ends: dict[tuple[BaseStore, Owner], Future[None]] = {}

    def ask(self, store: BaseStore, owner: Owner) -> Future[None]:
        """See to it that all is done that there is to do now; the future ends with that, also if it fails."""
        place = (store, owner)
        with self._lock:
            # Noted last: if no thread can be started, the next who asks tries again.
            if place not in self._asked:
                self._ends[place] = in_daemon_thread(lambda: self._until_nobody_asks(store, owner), self._name)
            self._asked[place] = True
            return self._ends[place]

    def wait(self, seconds: float) -> None:
        """Wait for what is under way, so long at most: whoever goes on may close the stores that it uses."""
        with self._lock:
            ends = [*self._ends.values()]
        wait(ends, seconds)

    def _until_nobody_asks(self, store: BaseStore, owner: Owner) -> None:
        while self._is_asked(store, owner):
            with tolerated(self._logger, self._consequence, owner.due_key):
                self._work(store, owner)

    def _is_asked(self, store: BaseStore, owner: Owner) -> bool:
        place = (store, owner)
        with self._lock:
            if asked := self._asked[place]:
                self._asked[place] = False
            else:
                del self._asked[place], self._ends[place]
            return asked
