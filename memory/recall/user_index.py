"""What one process holds in memory to recall from: an index a user, kept up to date without ever being rebuilt.

Facts follow what each turn reads anyway. The journal follows its revision: a turn uses what is there, leaves out what
changed since, and the rest is read behind the turn. So what was erased is never shown, however old the index is.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from memory.facts.fact import Fact
from memory.journal.entry import JournalEntry
from memory.journal.journal import JournalRevision, JournalView
from memory.recall.index import Document, Hit, Index, fact_document, turn_documents
from memory.recall.vectors import QueryVector, VectorIndex

_ENTRIES_AT_ONCE: Final = 10
_TEXT_BYTES: Final = 2  # a character with what its string takes besides


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was found for a message.

    Attributes:
        hits: Facts and past turns, best first.
        standing: Past turns in which the user asked for something once and for all, what fits the message first.
        entries: The journal entries that hold these turns: key by line.
        coverage: How much of what the message says one of the user's texts has, from 0 to 1.
    """

    hits: Sequence[Hit] = ()
    standing: Sequence[Document] = ()
    entries: Mapping[str, str] = field(default_factory=dict)
    coverage: float = 1.0


NOTHING: Final = Recalled()


@dataclass(frozen=True, slots=True)
class Asked:
    """What is recalled for.

    Attributes:
        text: The user's newest message.
        before: The turn before it.
        now: The user's local time, ISO 8601: from it "yesterday" is a date; empty if unknown.
        vector: What an embedder makes of the message, if there is one.
        limit: So many hits at most.
    """

    text: str
    before: str = ""
    now: str = ""
    vector: QueryVector | None = None
    limit: int = 400


class UserIndex:
    """The facts and the journal of one user and agent. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._index = Index()
        self._vectors: VectorIndex | None = None  # it needs numpy
        self._facts: dict[str, Fact] = {}
        self._lines: dict[str, tuple[str, ...]] = {}
        self._entry_of: dict[str, str] = {}
        self.view: JournalView | None = None  # the journal that is indexed, without its entries
        self._chars = 0

    def __len__(self) -> int:
        return len(self._index)

    def holds_thread(self, thread_id: str) -> bool:
        """Say whether anything said in a thread is indexed."""
        with self._lock:
            return any(
                self._index[name].session.startswith(f"{thread_id}/") for name in [*self._facts, *self._entry_of]
            )

    def follow_facts(self, facts: Iterable[Fact]) -> bool:
        """Index the facts that changed, and drop those that are gone: only active ones are given.

        Returns:
            Whether any was indexed: it has no vector yet.
        """
        with self._lock:
            now = {fact.id: fact for fact in facts}
            self._drop([name for name in self._facts if name not in now])
            changed = [fact_document(fact) for name, fact in now.items() if self._facts.get(name) != fact]
            self._put(changed)
            self._facts = now
            return bool(changed)

    def follow_journal(self, view: JournalView) -> Iterator[None]:
        """Index what a view of the journal brings, some entries at a step, so that nobody waits long for the lock."""
        gone = set(self._lines) - set(view.entries) if view.is_whole else view.gone
        changed = sorted(view.entries.items())
        if view.is_whole and self.view is not None and self.view.epoch == view.epoch:
            changed = [(key, entry) for key, entry in changed if not self._holds(key, entry)]
        with self._lock:
            # Until all of it is there, the old revision tells which entries are as they were.
            for key in gone:
                self._drop_entry(key)
        for start in range(0, len(changed), _ENTRIES_AT_ONCE):
            with self._lock:
                for key, entry in changed[start : start + _ENTRIES_AT_ONCE]:
                    self._drop_entry(key)
                    documents = turn_documents(entry)
                    self._put(documents)
                    self._lines[key] = tuple(document.id for document in documents)
                    self._entry_of.update((document.id, key) for document in documents)
            yield
        self.view = JournalView(view.epoch, view.revision, {}, is_whole=True, edit=view.edit)

    def recall(self, asked: Asked, epoch: str, revision: JournalRevision, edit: str) -> Recalled:
        """Return what has to do with a message. What the journal changed since it was indexed is left out.

        Args:
            asked: The message.
            epoch: The user's epoch as it is now.
            revision: The journal's.
            edit: The number of the user's newest edit by hand: after one, other past turns may be told.
        """
        with self._lock:
            view = self.view if self.view and (self.view.epoch, self.view.edit) == (epoch, edit) else None
            changed = revision.keys_since(view.revision.token) if view else None
            hits = self._index.rank(
                asked.text,
                before=asked.before,
                now=asked.now,
                similarity=self._vectors.similarity(asked.vector) if self._vectors else None,
                limit=asked.limit,
            )

            def is_current(document: Document) -> bool:
                if document.kind == "fact":
                    return True
                return changed is not None and self._entry_of.get(document.id) not in changed

            hits = [hit for hit in hits if is_current(hit.document)]
            standing = [document for document in self._index.standing(hits) if is_current(document)]
            named = (*(hit.document.id for hit in hits), *(document.id for document in standing))
            entries = {each: self._entry_of[each] for each in named if each in self._entry_of}
            return Recalled(hits, standing, entries, self._index.coverage(asked.text, asked.now))

    def texts(self) -> dict[str, str]:
        """Return the texts that are indexed, by the ids of their documents."""
        with self._lock:
            return {name: self._index[name].text for name in [*self._facts, *self._entry_of]}

    def follow_vectors(self, embedder: str, vectors: Mapping[str, bytes]) -> None:
        """Keep these vectors, as they are kept in the store, by the ids of their documents."""
        fresh = VectorIndex(embedder, vectors) if vectors else None
        with self._lock:
            self._vectors = fresh

    def size(self) -> int:
        """Return about how many bytes it takes."""
        vectors = self._vectors.size if self._vectors else 0
        return self._index.size() + vectors + _TEXT_BYTES * self._chars + 400 * len(self._facts)

    def _holds(self, key: str, entry: JournalEntry) -> bool:
        documents = turn_documents(entry)
        return self._lines.get(key) == tuple(each.id for each in documents) and all(
            self._index[each.id] == each for each in documents
        )

    def _put(self, documents: Iterable[Document]) -> None:
        for document in documents:
            self._drop([document.id])
            self._index.put([document])
            self._chars += len(document.text)

    def _drop(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._index:
                self._chars -= len(self._index[name].text)
                self._index.remove([name])
                if self._vectors:
                    self._vectors.remove([name])

    def _drop_entry(self, key: str) -> None:
        for line in self._lines.pop(key, ()):
            self._entry_of.pop(line, None)
            self._drop([line])


class UserIndexes:
    """The indexes of the users that this process served last, within a bound of bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._indexes: OrderedDict[Hashable, UserIndex] = OrderedDict()

    def of(self, user: Hashable) -> UserIndex:
        """Return a user's index, empty if it is not there; those that were asked for longest ago make room."""
        with self._lock:
            index = self._indexes.setdefault(user, UserIndex())
            self._indexes.move_to_end(user)
            return index

    def __len__(self) -> int:
        return len(self._indexes)

    def size(self) -> int:
        """Return about how many bytes all of them take."""
        with self._lock:
            return sum(index.size() for index in self._indexes.values())

    def holds(self, user: Hashable) -> bool:
        """Say whether a user's index is here."""
        return user in self._indexes

    def trim(self) -> None:
        """Let the indexes go that were asked for longest ago, until the others keep the bound; the newest stays."""
        with self._lock:
            sizes = {user: index.size() for user, index in self._indexes.items()}
            over = sum(sizes.values()) - self._most_bytes
            for user in list(self._indexes)[:-1]:
                if over <= 0:
                    break
                over -= sizes[user]
                del self._indexes[user]

    def drop(self, is_erased: Callable[[Hashable, UserIndex], bool]) -> None:
        """Let the indexes go of which something was erased: nothing of it stays in memory."""
        with self._lock:
            for user, index in list(self._indexes.items()):
                if is_erased(user, index):
                    del self._indexes[user]
