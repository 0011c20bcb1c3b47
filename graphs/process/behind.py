"""Work behind turns: on a daemon thread of its own, for each owner by one at a time, which goes on with what came."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial

from langgraph.store.base import BaseStore

from memory.door import in_daemon_thread, tolerated
from memory.namespaces import Owner

logger = logging.getLogger(__name__)

_Place = tuple[BaseStore, Owner]


class WorkBehind:
    """One sort of work, which looks for itself what there is to do for an owner.

    Args:
        work: Does it; blocks. What fails is logged, and the next who asks tries again.
        name: Of its threads.
        consequence: What a failure means, with a placeholder for the owner.
    """

    def __init__(self, work: Callable[[BaseStore, Owner], object], name: str, consequence: str) -> None:
        self._work, self._name, self._consequence = work, name, consequence
        self._lock = threading.Lock()
        self._under_way: dict[_Place, Future[None]] = {}
        self._asked: set[_Place] = set()  # since it was begun the last time

    def ask(self, store: BaseStore, owner: Owner) -> Future[None]:
        """See to it that all is done that there is to do now; the future ends with that, also if it fails."""
        place = (store, owner)
        with self._lock:
            # Noted last: if no thread can be started, the next who asks tries again.
            if place not in self._under_way:
                self._under_way[place] = in_daemon_thread(partial(self._until_nobody_asks, place), self._name)
            self._asked.add(place)
            return self._under_way[place]

    def wait(self, seconds: float) -> None:
        """Wait for what is under way, so long at most: whoever goes on may close the stores that it uses."""
        with self._lock:
            ends = [*self._under_way.values()]
        wait(ends, seconds)

    def _until_nobody_asks(self, place: _Place) -> None:
        while True:
            with self._lock:
                if place not in self._asked:
                    del self._under_way[place]
                    return
                self._asked.discard(place)
            store, owner = place
            with tolerated(logger, self._consequence, owner.due_key):
                self._work(store, owner)
