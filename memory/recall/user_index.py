"""What one process holds in memory to recall from: an index a user, kept up to date without ever being rebuilt.

Facts follow what each turn reads anyway. The journal follows its revision: a turn uses what is there, leaves out what
changed since, and the rest is read behind the turn. So what was erased is never shown, however old the index is.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress, repeat
from operator import not_
from typing import Final

from memory.facts.fact import Fact
from memory.journal.journal import JournalRevision, JournalView
from memory.recall.documents import Document, Hit, fact_document, turn_documents
from memory.recall.index import Index
from memory.recall.vectors import QueryVector, VectorIndex
from memory.recall.words import parts


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was found for a message.

    Attributes:
        hits: Facts and past turns, best first.
        standing: Past turns in which the user asked for something once and for all, what fits the message first.
        coverage: How clearly a sentence of the message is about one of the user's texts, from 0 to 1.
    """

    hits: Sequence[Hit] = ()
    standing: Sequence[Document] = ()
    coverage: float = 1.0


NOTHING: Final = Recalled()

MOST_CHARS: Final = 2_000
"""Of a pasted document the beginning says what it is about; all of it would match everything."""
LEAST_COVERAGE: Final = 0.55
"""A message of which no sentence is covered so far is about something else (`make bench-quality`)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is recalled for.

    Attributes:
        text: The user's newest message.
        before: The turn before it.
        now: The user's local time, ISO 8601: from it "yesterday" is a date; empty if unknown.
        vectors: What an embedder makes of each of its sentences (`memory.recall.words.parts`), if there is one.
    """

    text: str
    before: str = ""
    now: str = ""
    vectors: Sequence[QueryVector] = ()


class UserIndex:
    """The facts and the journal of one user and agent. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._index = Index()
        self._vectors: VectorIndex | None = None  # it needs numpy
        self._facts: dict[str, Fact] = {}
        # What is indexed of each fact, by its id, and of each journal entry, by its key.
        self._documents: dict[str, tuple[Document, ...]] = {}
        self.view: JournalView | None = None  # the journal that is indexed, without its entries

    def __len__(self) -> int:
        return len(self._index)

    def holds_thread(self, thread_id: str) -> bool:
        """Say whether anything said in a thread is indexed."""
        with self._lock:
            return any(one.session.startswith(f"{thread_id}/") for one in chain(*self._documents.values()))

    def follow_facts(self, facts: Iterable[Fact]) -> bool:
        """Index the facts that changed, and drop those that are gone: only active ones are given.

        Returns:
            Whether any was indexed: it has no vector yet.
        """
        with self._lock:
            now = {fact.id: fact for fact in facts}
            changed = {name: (fact_document(fact),) for name, fact in now.items() if self._facts.get(name) != fact}
            self._replace({**dict.fromkeys(self._facts.keys() - now.keys(), ()), **changed})
            self._facts = now
            return bool(changed)

    def follow_journal(self, view: JournalView) -> None:
        """Index what a view of the journal brings, an entry at a time, so that nobody waits long for the lock."""
        there = {key: entry for key, entry in view.entries.items() if entry}
        with self._lock:
            entries = self._documents.keys() - self._facts.keys() if view.is_whole else view.entries.keys()
            # Until all of it is there, the old revision tells which entries are as they were.
            self._replace(dict.fromkeys(entries - there.keys(), ()))
        for key, entry in sorted(there.items()):
            with self._lock:
                self._replace({key: turn_documents(entry)})
        self.view = replace(view, entries={}, is_whole=True)

    def recall(self, asked: Asked, revision: JournalRevision) -> Recalled:
        """Return what has to do with a message. What the journal changed since it was indexed is left out.

        Args:
            asked: The message.
            revision: The journal's as it is now.
        """
        said = parts(asked.text[:MOST_CHARS])
        with self._lock:
            changed = revision.keys_since(self.view.revision) if self.view else None
            found = [self._vectors.similarity(each) for each in asked.vectors] if self._vectors else []
            alike = found if len(found) == len(said) else [None] * len(said)
            covered = [self._index.coverage(*each) for each in zip(said, repeat(asked.now), alike)]
            # What says nothing of what is known counts as little as what was said before.
            about = [each >= LEAST_COVERAGE for each in covered]
            about = about if any(about) else [True] * len(said)
            beside = "\n".join(compress(said, map(not_, about)))
            told = [each for each in compress(alike, about) if each]
            # Each document is as alike as it is to the sentence that it is most alike to.
            similarity = (
                {name: max(each.get(name, 0.0) for each in told) for name in set().union(*told)} if told else None
            )
            hits = self._index.rank(
                "\n".join(compress(said, about)),
                before=f"{asked.before[:MOST_CHARS]}\n{beside}",
                now=asked.now,
                similarity=similarity,
            )

            def is_current(document: Document) -> bool:
                return document.kind == "fact" or (changed is not None and document.entry not in changed)

            hits = [hit for hit in hits if is_current(hit.document)]
            standing = [document for document in self._index.standing(hits) if is_current(document)]
            return Recalled(hits, standing, max(covered))

    def texts(self) -> dict[str, str]:
        """Return the texts that are indexed, by the ids of their documents."""
        with self._lock:
            return {one.id: one.text for one in chain(*self._documents.values())}

    def follow_vectors(self, embedder: str, vectors: Mapping[str, bytes]) -> None:
        """Keep the vectors of what is indexed, as they are kept in the store: by `vector_key`."""
        fresh = VectorIndex.of(embedder, self.texts(), vectors)
        with self._lock:
            self._vectors = fresh

    def size(self) -> int:
        """Return about how many bytes it takes."""
        return self._index.size() + (self._vectors.size if self._vectors else 0)

    def _replace(self, now: Mapping[str, tuple[Document, ...]]) -> None:
        """Index what items have now in the place of what they had; nothing of an item that is gone."""
        for name, documents in now.items():
            if (before := self._documents.pop(name, ())) != documents:
                ids = [each.id for each in before]
                self._index.remove(ids)
                if self._vectors:
                    self._vectors.remove(ids)
                self._index.put(documents)
            if documents:
                self._documents[name] = documents
