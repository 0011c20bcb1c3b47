"""What one process recalls from: the users' indexes, kept up to date behind their turns."""

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial
from weakref import WeakSet

from langgraph.store.base import BaseStore

from graphs.process.embedders import Embedder
from graphs.process.synchronous import ByStore
from memory.door import in_daemon_thread, run, tolerated
from memory.facts.fact import Fact
from memory.namespaces import Owner
from memory.recall.past import read_tellable_view
from memory.recall.user_index import MOST_CHARS, NOTHING, Asked, Recalled, UserIndex
from memory.recall.vectors import QueryVector, make_vectors, read_vectors
from memory.recall.words import parts
from memory.turn import Opening

logger = logging.getLogger(__name__)

_TURN_SECONDS = 5.0
"""Work for one owner waits so long for that of another: a store or a provider may hang."""


class WorkBehind:
    """One sort of background work (indexing, or making vectors), for one owner after the other.

    Args:
        work: Does all that is to do for an owner; blocks. A failure is logged, and the next call tries again.
        name: The name of its threads.
        consequence: What a failure means, with a placeholder for the owner.
    """

    def __init__(self, work: Callable[[BaseStore, Owner], object], name: str, consequence: str) -> None:
        self._work, self._name, self._consequence = work, name, consequence
        self._lock, self.turn = threading.Lock(), threading.Lock()
        self._under_way: dict[tuple[BaseStore, Owner], Future[None]] = {}
        self._asked: set[tuple[BaseStore, Owner]] = set()  # since it was begun the last time

    def ask(self, store: BaseStore, owner: Owner) -> Future[None]:
        """Start the work, or have a running one start over; the future ends with it, also if it fails."""
        place = (store, owner)
        with self._lock:
            # Noted last: if no thread can be started, the next who asks tries again.
            if place not in self._under_way:
                self._under_way[place] = in_daemon_thread(partial(self._until_nobody_asks, place), self._name)
            self._asked.add(place)
            return self._under_way[place]

    def ends(self) -> list[Future[None]]:
        """Return the ends of running work."""
        with self._lock:
            return [*self._under_way.values()]

    def _until_nobody_asks(self, place: tuple[BaseStore, Owner]) -> None:
        while True:
            with self._lock:
                if place not in self._asked:
                    del self._under_way[place]
                    return
                self._asked.discard(place)
            store, owner = place
            # It computes: of many users who come as a server starts, each would wait for all, and the event loop, too.
            is_next = self.turn.acquire(timeout=_TURN_SECONDS)
            with tolerated(logger, self._consequence, owner.due_key):
                self._work(store, owner)
            if is_next:
                self.turn.release()


class Recalling:
    """The indexes of the users whom this process served last; those that were asked for longest ago make room.

    Args:
        embedder: What finds texts by their meaning, if there is one.
        most_bytes: What all indexes of one store may take together.
    """

    def __init__(self, embedder: Embedder | None, most_bytes: int) -> None:
        self._embedder = embedder
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._stores = ByStore[OrderedDict[Owner, UserIndex]](OrderedDict)
        self._late = WeakSet[Future[None]]()  # indexing that a turn has waited for in vain
        self.behind = WorkBehind(self._follow, "palimpsest-recall", "the index of %s is not up to date")
        self.making = WorkBehind(self._make, "palimpsest-vectors", "no vectors are made for %s")

    def index(self, store: BaseStore, owner: Owner) -> UserIndex:
        """Return a user's index, empty if it is not there."""
        with self._lock:
            indexes = self._stores[store]
            index = indexes.setdefault(owner, UserIndex())
            indexes.move_to_end(owner)
            return index

    async def recall(self, store: BaseStore, owner: Owner, opening: Opening, asked: Asked, seconds: float) -> Recalled:
        """Return what has to do with a turn's message; nothing where nothing is known, or what failed is logged.

        The facts are those that the turn has read. What the journal was told in another process, or before this one was
        started, is indexed first; after so many seconds, and until that is done, those lines count that are indexed and
        have not changed.
        """
        snapshot = opening.snapshot
        if snapshot is None:
            return NOTHING
        with tolerated(logger, "nothing is recalled for the message"):
            index = self.index(store, owner)
            has_new = index.follow_facts(snapshot.facts)
            is_behind = index.view is None or index.view.revision != opening.revision
            # Vectors of new facts may have been made before they were indexed.
            if is_behind or (has_new and self._embedder):
                work = self.behind.ask(store, owner)
                if is_behind and work not in self._late:
                    _, late = await asyncio.wait([asyncio.wrap_future(work)], timeout=seconds)
                    if late:
                        self._late.add(work)
            return index.recall(await self._with_vectors(asked) if len(index) else asked, opening.revision)
        return NOTHING

    async def vector_of(self, text: str) -> QueryVector | None:
        """Return the vector of a question, or `None` where there is no embedder, or none in time."""
        return next(iter(await self._embedder.aqueries([text])), None) if self._embedder else None

    async def search(self, store: BaseStore, owner: Owner, facts: Sequence[Fact], query: str, now: str) -> Recalled:
        """Return what has to do with a query, once all is indexed that is there; the user's local time is ISO 8601."""
        await asyncio.shield(asyncio.wrap_future(self.behind.ask(store, owner)))
        index = self.index(store, owner)
        index.follow_facts(facts)
        asked, view = await self._with_vectors(Asked(query, now=now)), index.view
        return index.recall(asked, view.revision) if view else NOTHING

    async def _with_vectors(self, asked: Asked) -> Asked:
        """Return what is asked with the vectors of its sentences, where there are any in time."""
        said = parts(asked.text[:MOST_CHARS]) if self._embedder else ()
        return replace(asked, vectors=await self._embedder.aqueries(said)) if self._embedder and said else asked

    def updated(self, store: BaseStore, owner: Owner) -> None:
        """Bring up to date what this process holds of an owner whose memory has changed, and make vectors."""
        if owner in self._stores[store]:
            self.behind.ask(store, owner)
        elif self._embedder:
            self.making.ask(store, owner)

    def wait(self, seconds: float) -> None:
        """Wait for running work, so many seconds at most: the caller may close the stores that it uses."""
        until = time.monotonic() + seconds
        # Each sort may ask for the other: new vectors are indexed.
        while (ends := self.behind.ends() + self.making.ends()) and (left := until - time.monotonic()) > 0:
            wait(ends, left)

    def drop(self, erased: str) -> None:
        """Forget the indexes that hold something of a thread, by its id, or of a user, by the user's segment."""
        with self._lock:
            for indexes in self._stores.values():
                for owner, index in list(indexes.items()):
                    if owner.segment == erased or index.holds_thread(erased):
                        del indexes[owner]

    def _follow(self, store: BaseStore, owner: Owner) -> None:
        """Bring an owner's index up to date; what lacks a vector gets one after that, which nobody waits for."""
        index = self.index(store, owner)
        view = run(store, read_tellable_view(owner, index.view))
        index.follow_journal(view)
        if self._embedder:
            name = self._embedder.name
            index.follow_vectors(name, run(store, read_vectors(owner, name)))
            self.making.ask(store, owner)
        with self._lock:
            indexes = self._stores[store]
            over = sum(each.size() for each in indexes.values()) - self._most_bytes
            while over > 0 and len(indexes) > 1:
                over -= indexes.popitem(last=False)[1].size()

    def _make(self, store: BaseStore, owner: Owner) -> None:
        if (embedder := self._embedder) is None:
            return
        if made := run(store, make_vectors(owner, embedder.name, embedder.documents)):
            logger.info("made %d vectors for %s", made, owner.due_key)
            if owner in self._stores[store]:
                self.behind.ask(store, owner)
