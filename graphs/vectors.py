"""Where a process makes vectors: behind updates, and with an owner's first turn, never for a turn to wait for."""

import logging
import threading
from concurrent.futures import Future
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore

from graphs.behind import WorkBehind
from graphs.embedders import Embedder
from graphs.recalling import Recalling
from memory.effects import Handlers, run
from memory.namespaces import Owner
from memory.recall.vectors import Embed, make_vectors

logger = logging.getLogger(__name__)

_REMEMBERED_OWNERS = 10_000


class VectorMaking:
    """Makes the vectors that facts and journals lack, if there is an embedder.

    Args:
        embedder: What makes them.
        recalling: What is told of them.
    """

    def __init__(self, embedder: Embedder | None, recalling: Recalling) -> None:
        self._embedder, self._recalling = embedder, recalling
        self._lock = threading.Lock()
        self._looked: WeakKeyDictionary[BaseStore, set[Owner]] = WeakKeyDictionary()
        self.behind = WorkBehind(self._make, "palimpsest-vectors", logger, "no vectors are made for %s")

    def make(self, store: BaseStore, owner: Owner) -> Future[None] | None:
        """Begin to make what vectors an owner's facts and journal lack; the future ends with it.

        It is for after an update, and for where a text has none: a fact that was written by hand, or vectors of another
        embedder.
        """
        return self.behind.ask(store, owner) if self._embedder else None

    def make_once(self, store: BaseStore, owner: Owner) -> None:
        """Do what `make` does with an owner's first turn in this process: the embedder may be another one."""
        with self._lock:
            looked = self._looked.setdefault(store, set())
            is_new = owner not in looked
            if len(looked) >= _REMEMBERED_OWNERS:
                looked.clear()
            looked.add(owner)
        if is_new:
            self.make(store, owner)

    def _make(self, store: BaseStore, owner: Owner) -> None:
        if (embedder := self._embedder) is None:
            return
        embed: Handlers = {Embed: lambda effect: embedder.documents(effect.texts)}
        if made := run(store, make_vectors(owner, embedder.name), embed):
            logger.info("made %d vectors for %s", made, owner.due_key)
            self._recalling.follow(store, owner, only_held=True)
