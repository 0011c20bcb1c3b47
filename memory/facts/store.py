"""FactStore: one user's facts in any BaseStore, with a synchronous and an asynchronous door to each operation."""

import time
from collections.abc import Callable
from typing import Self

from langgraph.store.base import BaseStore

from memory.config import MemoryConfig
from memory.effects import arun, run
from memory.facts.changes import Extraction, Outcome
from memory.facts.confirmations import Confirmations
from memory.facts.effects import FactEffects
from memory.facts.fact import Fact, Source, Status
from memory.facts.snapshot import MemorySnapshot, read_snapshot
from memory.facts.undo import UndoneFacts
from memory.namespaces import Owner
from memory.recall.vectors import QueryVector

Facts = list[Fact]
Clock = Callable[[], float]


class FactStore:
    """What is known about one user, for one agent.

    Every method has an async twin (`acreate`, `aget`, …). On an event loop use the twins: a store's synchronous
    interface blocks it.

    Args:
        store: Any BaseStore; with or without a vector index.
        user_id: The authenticated identity; it is hashed, so it may hold any character.
        agent_name: Assistants of one name share what they know.
        config: Limits and protected categories.
        clock: Seconds since 1970.

    Raises:
        ValueError: If `user_id` or `agent_name` cannot name a namespace.
    """

    def __init__(
        self,
        store: BaseStore,
        user_id: str,
        agent_name: str = "default",
        *,
        config: MemoryConfig | None = None,
        clock: Clock = time.time,
    ) -> None:
        self._open(store, Owner.of(user_id, agent_name), config, clock)

    @classmethod
    def of_owner(
        cls, store: BaseStore, owner: Owner, *, config: MemoryConfig | None = None, clock: Clock = time.time
    ) -> Self:
        """Return the facts of an owner whose identity is not known, only the namespace made of it."""
        facts = cls.__new__(cls)
        facts._open(store, owner, config, clock)
        return facts

    def _open(self, store: BaseStore, owner: Owner, config: MemoryConfig | None, clock: Clock) -> None:
        self._store, self._facts = store, FactEffects(owner, config or MemoryConfig(), clock)

    @property
    def config(self) -> MemoryConfig:
        """Their limits and protected categories."""
        return self._facts.config

    @property
    def owner(self) -> Owner:
        """Whose facts these are."""
        return self._facts.owner

    def create(
        self,
        content: str,
        category: str,
        confidence: float,
        *,
        source: Source = "library",
        pinned: bool = False,
        expires_at: str = "",
    ) -> Fact:
        """Add a fact and return it; one that is already known is returned as it is, and counted as confirmed.

        One that reads as an order to the assistant, or may hold a secret, is quarantined: it waits for `release`.

        Args:
            content: One statement, at most 10,000 characters.
            category: One of the six categories.
            confidence: From 0.0 to 1.0; no threshold applies here.
            source: Who writes it; what the page, the API or the command line write is spared by evictions.
            pinned: Spare it too.
            expires_at: Until when it holds (`2026-05-08`, `2026-05` or `2026`, that included): then no prompt shows it
                any more, and it goes to history. Empty: it has no end.

        Raises:
            ValueError: If a value is invalid, or the content holds a secret; the message names the field.
            MemoryFull: If `max_facts` is reached and every fact is protected.
        """
        created = self._facts.create(content, category, confidence, source, pinned, expires_at=expires_at)
        return run(self._store, created)

    async def acreate(
        self,
        content: str,
        category: str,
        confidence: float,
        *,
        source: Source = "library",
        pinned: bool = False,
        expires_at: str = "",
    ) -> Fact:
        """Do what `create` does, asynchronously."""
        created = self._facts.create(content, category, confidence, source, pinned, expires_at=expires_at)
        return await arun(self._store, created)

    def get(self, fact_id: str) -> Fact:
        """Return an active or quarantined fact; `FactNotFound` (a KeyError) for an unknown id."""
        return run(self._store, self._facts.get(fact_id))

    async def aget(self, fact_id: str) -> Fact:
        """Do what `get` does, asynchronously."""
        return await arun(self._store, self._facts.get(fact_id))

    def list(self, status: Status | None = "active") -> Facts:
        """Return the facts of one status, strongest first; `superseded` and `ended` ones are history.

        Args:
            status: Which ones; `None` returns all that are no history.
        """
        return run(self._store, self._facts.list(status))

    async def alist(self, status: Status | None = "active") -> Facts:
        """Do what `list` does, asynchronously."""
        return await arun(self._store, self._facts.list(status))

    def search(
        self,
        query: str,
        limit: int | None = 10,
        *,
        status: Status = "active",
        question: QueryVector | None = None,
        only_asked: bool = False,
    ) -> Facts:
        """Return the facts that hold the query, strongest first, then those that recall ranks for it, best first.

        Args:
            query: A word or a sentence, whatever its case; nothing is found by white space or punctuation alone.
            limit: So many at most; `None` returns all.
            status: Which facts are searched.
            question: What an embedder makes of the query: then facts are found by their meaning, too.
            only_asked: Leave out what nothing of the query finds, but words that it shares with another hit, or the
                conversation that both are from: for a search that a person typed.
        """
        return run(self._store, self._facts.search(query, limit, status, question, only_asked=only_asked))

    async def asearch(
        self,
        query: str,
        limit: int | None = 10,
        *,
        status: Status = "active",
        question: QueryVector | None = None,
        only_asked: bool = False,
    ) -> Facts:
        """Do what `search` does, asynchronously."""
        return await arun(self._store, self._facts.search(query, limit, status, question, only_asked=only_asked))

    def history(self, fact_id: str) -> Facts:
        """Return all that a fact said, oldest first; the last one is what it says now, if it is still there.

        What it corrected, and what corrected it, is among it: `replaces` and `replaced_by` name the other, and
        `valid_to` of what was corrected is the day on which the other was said.

        Raises:
            FactNotFound: If no fact has or had the id.
        """
        return run(self._store, self._facts.history(fact_id))

    async def ahistory(self, fact_id: str) -> Facts:
        """Do what `history` does, asynchronously."""
        return await arun(self._store, self._facts.history(fact_id))

    def update(
        self,
        fact_id: str,
        *,
        content: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        pinned: bool | None = None,
        source: Source | None = None,
        expires_at: str | None = None,
        revision: int | None = None,
    ) -> Fact:
        """Change the given fields and return the fact; its id and `created_at` stay, what it said goes to history.

        What was said before this does not change the fact any more, nor bring back what it said.

        Args:
            fact_id: Which fact.
            content: What it is to say.
            category: One of the six categories.
            confidence: From 0.0 to 1.0.
            pinned: Whether an eviction spares it.
            expires_at: Until when it holds, as in `create`; empty takes an end back.
            source: Who edits it, if not the library; evictions spare what the page, the API or the command line wrote.
            revision: The fact's `revision` as the caller read it; `None` changes whatever is there.

        Raises:
            FactNotFound: If the id is unknown.
            FactChanged: If it has another revision by now, with what is there (`fact`).
            ValueError: If a value is invalid, or another fact already says the new content.
        """
        changed = self._facts.update(fact_id, content, category, confidence, pinned, source, expires_at, revision)
        return run(self._store, changed)

    async def aupdate(
        self,
        fact_id: str,
        *,
        content: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        pinned: bool | None = None,
        source: Source | None = None,
        expires_at: str | None = None,
        revision: int | None = None,
    ) -> Fact:
        """Do what `update` does, asynchronously."""
        changed = self._facts.update(fact_id, content, category, confidence, pinned, source, expires_at, revision)
        return await arun(self._store, changed)

    def retire(self, *fact_ids: str) -> str:
        """Stop using facts: they go to history, from where one `undo` restores them, and do not come back otherwise.

        One that waits for a person goes without a way back: nobody used it. Of several, unknown ids are passed over.

        Returns:
            The time of the change, for `undo`.

        Raises:
            FactNotFound: If there is none of them.
        """
        return run(self._store, self._facts.retire(*fact_ids))

    async def aretire(self, *fact_ids: str) -> str:
        """Do what `retire` does, asynchronously."""
        return await arun(self._store, self._facts.retire(*fact_ids))

    def delete(self, fact_id: str) -> None:
        """Delete a fact for good, with what it corrected and was corrected by, their history and confirmations.

        It does not come back from messages said before, and no undo reaches behind it. What is pending, and the
        journal, keep such messages: `memory.erase.erase_fact` deletes those too.

        Raises:
            FactNotFound: If no fact has or had the id.
        """
        run(self._store, self._facts.delete(fact_id))

    async def adelete(self, fact_id: str) -> None:
        """Do what `delete` does, asynchronously."""
        await arun(self._store, self._facts.delete(fact_id))

    def undo(self, at: str = "") -> UndoneFacts | None:
        """Take back the last change of the facts, whoever made it; undoing again does it again.

        What was deleted for good, and what an update wrote into the profile, does not come back.

        Args:
            at: The time (ISO 8601) of the change to take back, whatever came after it; by default the last one.

        Returns:
            What that changed; `None` if nothing changed since facts were erased, or at that time.
        """
        return run(self._store, self._facts.undo(at))

    async def aundo(self, at: str = "") -> UndoneFacts | None:
        """Do what `undo` does, asynchronously."""
        return await arun(self._store, self._facts.undo(at))

    def restore(self, fact_id: str) -> Fact:
        """Make a fact that went at the limit an active one, in the weakest's place; `FactNotFound` for any other id."""
        return run(self._store, self._facts.restore(fact_id))

    async def arestore(self, fact_id: str) -> Fact:
        """Do what `restore` does, asynchronously."""
        return await arun(self._store, self._facts.restore(fact_id))

    def quarantine(self, fact_id: str) -> Fact:
        """Put an active fact aside, where nothing uses it until `release`; what was said before does not bring it back.

        Raises:
            FactNotFound: If no active fact has the id.
        """
        return run(self._store, self._facts.quarantine(fact_id))

    async def aquarantine(self, fact_id: str) -> Fact:
        """Do what `quarantine` does, asynchronously."""
        return await arun(self._store, self._facts.quarantine(fact_id))

    def release(self, fact_id: str, *, content: str | None = None) -> Fact:
        """Make a quarantined fact an active one, after a person read it; arguments and errors are `approve`'s."""
        return run(self._store, self._facts.release(fact_id, content=content))

    async def arelease(self, fact_id: str, *, content: str | None = None) -> Fact:
        """Do what `release` does, asynchronously."""
        return await arun(self._store, self._facts.release(fact_id, content=content))

    def propose(self, content: str, category: str, confidence: float, *, source: Source = "library") -> Fact:
        """Add a fact that waits for a person's yes (`approve`): until then nothing uses it.

        One that is known already is returned as it is. One that reads as an order is quarantined instead. It raises
        what `create` raises.
        """
        return run(self._store, self._facts.create(content, category, confidence, source, False, "waiting"))

    async def apropose(self, content: str, category: str, confidence: float, *, source: Source = "library") -> Fact:
        """Do what `propose` does, asynchronously."""
        return await arun(self._store, self._facts.create(content, category, confidence, source, False, "waiting"))

    def approve(self, fact_id: str, *, source: Source, content: str | None = None) -> Fact:
        """Make a waiting fact an active one, because a person said yes. To say no, `retire` it.

        Args:
            fact_id: Which fact.
            source: Where the person said so: `page`, `api` or `cli`. What a conversation or a program says is no yes.
            content: What it is to say instead, in the person's words.

        Raises:
            FactNotFound: If no waiting fact has the id, or it has waited too long.
            MemoryFull: If every fact that is there is protected: it goes on waiting.
            ValueError: If the source is none of a person's, or the content is invalid.
        """
        return run(self._store, self._facts.approve(fact_id, source, content))

    async def aapprove(self, fact_id: str, *, source: Source, content: str | None = None) -> Fact:
        """Do what `approve` does, asynchronously."""
        return await arun(self._store, self._facts.approve(fact_id, source, content))

    def confirmations(self, fact_id: str) -> Confirmations:
        """Tell how often a fact was said again, and when; `FactNotFound` for an unknown id."""
        return run(self._store, self._facts.confirmations(fact_id))

    async def aconfirmations(self, fact_id: str) -> Confirmations:
        """Do what `confirmations` does, asynchronously."""
        return await arun(self._store, self._facts.confirmations(fact_id))

    def snapshot(self) -> MemorySnapshot:
        """Return everything that may be injected or shown to the extractor: active facts and profile, as stored.

        A stored text that holds a secret or reads as an order is left out, whoever wrote it there, unless a person
        released it from quarantine.
        """
        return run(self._store, read_snapshot(self.owner))

    async def asnapshot(self) -> MemorySnapshot:
        """Do what `snapshot` does, asynchronously."""
        return await arun(self._store, read_snapshot(self.owner))

    def apply(self, extraction: Extraction, *, thread_id: str, epoch: str, now: str) -> Outcome:
        """Apply what was extracted; applying it twice is the same as once."""
        return run(self._store, self._facts.apply(extraction, thread_id, epoch, now))

    async def aapply(self, extraction: Extraction, *, thread_id: str, epoch: str, now: str) -> Outcome:
        """Do what `apply` does, asynchronously."""
        return await arun(self._store, self._facts.apply(extraction, thread_id, epoch, now))
