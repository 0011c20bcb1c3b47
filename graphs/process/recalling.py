"""What one process recalls from: the users' indexes, kept up to date behind their turns."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore

from graphs.process.behind import WorkBehind
from graphs.process.embedders import Embedder
from memory.door import Handlers, run, tolerated
from memory.facts.fact import Fact
from memory.namespaces import Owner
from memory.recall.past import read_tellable_view
from memory.recall.user_index import NOTHING, Asked, Recalled, UserIndexes
from memory.recall.vectors import Embed, QueryVector, make_vectors, read_vectors
from memory.turn import Opening

logger = logging.getLogger(__name__)

_QUERY_CHARS: Final = 2_000
"""Of a pasted document the beginning says what it is about; all of it would match everything."""


class Recalling:
    """The indexes of the users whom this process served last.

    Args:
        embedder: What finds texts by their meaning, if there is one.
        most_bytes: What all indexes of one store may take together.
    """

    def __init__(self, embedder: Embedder | None, most_bytes: int) -> None:
        self._embedder = embedder
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._stores: WeakKeyDictionary[BaseStore, UserIndexes] = WeakKeyDictionary()
        self.behind = WorkBehind(self._follow, "palimpsest-recall", "the index of %s is not up to date")
        self.making = WorkBehind(self._make, "palimpsest-vectors", "no vectors are made for %s")

    async def recall(self, store: BaseStore, owner: Owner, opening: Opening, asked: Callable[[], Asked]) -> Recalled:
        """Return what has to do with a turn's message; nothing where nothing is known, or what failed is logged.

        No store is read: facts are those of the turn's own read, and of the journal is used what is indexed and did not
        change since. What is lacking is read behind the turn.
        """
        snapshot = opening.snapshot
        if snapshot is None:
            return NOTHING
        with tolerated(logger, "nothing is recalled for the message"):
            index = self.indexes(store).of(owner)
            has_new = index.follow_facts(snapshot.facts)
            question = asked()
            text = question.text[:_QUERY_CHARS]
            vector = await self.vector_of(text) if len(index) else None
            asked_now = Asked(text, question.before[:_QUERY_CHARS], question.now, vector)
            recalled = index.recall(asked_now, snapshot.epoch, opening.revision, snapshot.edit)
            view = index.view
            now = (snapshot.epoch, opening.revision, snapshot.edit)
            # Vectors of new facts may have been made before they were indexed.
            if view is None or (view.epoch, view.revision, view.edit) != now or (has_new and self._embedder):
                self.follow(store, owner)
            return recalled
        return NOTHING

    async def vector_of(self, text: str) -> QueryVector | None:
        """Return the vector of a question, or `None` where there is no embedder, or none in time."""
        return await self._embedder.aquery(text) if self._embedder else None

    async def search(self, store: BaseStore, owner: Owner, facts: Sequence[Fact], query: str, now: str) -> Recalled:
        """Return what has to do with a query, once all is indexed that is there; the user's local time is ISO 8601."""
        await asyncio.shield(asyncio.wrap_future(self.behind.ask(store, owner)))
        index = self.indexes(store).of(owner)
        index.follow_facts(facts)
        vector = await self.vector_of(query)
        view = index.view
        if view is None:
            return NOTHING
        return index.recall(Asked(query[:_QUERY_CHARS], now=now, vector=vector), view.epoch, view.revision, view.edit)

    def follow(self, store: BaseStore, owner: Owner) -> Future[None]:
        """Bring an owner's index up to date on a thread of its own; the future ends with it.

        What lacks a vector gets one after that, which nobody waits for.
        """
        return self.behind.ask(store, owner)

    def updated(self, store: BaseStore, owner: Owner) -> None:
        """Bring up to date what this process holds of an owner whose memory has changed, and make vectors."""
        if owner in self.indexes(store):
            self.behind.ask(store, owner)
        elif self._embedder:
            self.making.ask(store, owner)

    def drop(self, erased: str) -> None:
        """Forget the indexes that hold something of a thread, by its id, or of a user, by the user's segment."""
        for indexes in list(self._stores.values()):
            indexes.drop(
                lambda user, index: isinstance(user, Owner) and (user.segment == erased or index.holds_thread(erased))
            )

    def _follow(self, store: BaseStore, owner: Owner) -> None:
        index = self.indexes(store).of(owner)
        view = run(store, read_tellable_view(owner, index.view))
        index.follow_journal(view)
        if self._embedder:
            name = self._embedder.name
            index.follow_vectors(name, run(store, read_vectors(owner, view.epoch, name)))
            self.making.ask(store, owner)
        self.indexes(store).trim()

    def _make(self, store: BaseStore, owner: Owner) -> None:
        if (embedder := self._embedder) is None:
            return
        embed: Handlers = {Embed: lambda effect: embedder.documents(effect.texts)}
        if made := run(store, make_vectors(owner, embedder.name), embed):
            logger.info("made %d vectors for %s", made, owner.due_key)
            if owner in self.indexes(store):
                self.behind.ask(store, owner)

    def indexes(self, store: BaseStore) -> UserIndexes:
        """Return the indexes of the users of a store."""
        with self._lock:
            return self._stores.setdefault(store, UserIndexes(self._most_bytes))
