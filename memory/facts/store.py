"""FactStore: one user's facts in any BaseStore, with a synchronous and an asynchronous door to each operation."""

import logging
import time
import uuid
from collections.abc import Callable
from typing import Self

from langgraph.store.base import BaseStore

from memory.config import MemoryConfig
from memory.control import count_edit
from memory.effects import StoreEffects, arun, run
from memory.facts.applying import apply_steps
from memory.facts.changes import Extraction, Outcome
from memory.facts.deletions import deleted_meanwhile, discard, forget, marks_of_edit
from memory.facts.fact import (
    Fact,
    FactNotFound,
    MemoryFull,
    Source,
    Status,
    checked_category,
    checked_confidence,
    checked_content,
    checked_source,
    strongest_first,
    timestamp,
)
from memory.facts.profile import drop_sections_about
from memory.facts.rows import (
    Confirmations,
    read_confirmations,
    read_current_fact_set,
    read_history,
    settle,
    stands,
    write_difference,
)
from memory.facts.rules import FactSet, create, find, is_full, release, same_content, update
from memory.facts.snapshot import MemorySnapshot, read_snapshot
from memory.facts.words import related
from memory.namespaces import Owner
from memory.screening.door import admitted
from memory.text import normalize

logger = logging.getLogger(__name__)

Facts = list[Fact]
_ERASED = "the memory was erased again and again while this was written"
_TRIES = 3


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
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._open(store, Owner.of(user_id, agent_name), config, clock)

    @classmethod
    def of_owner(
        cls,
        store: BaseStore,
        owner: Owner,
        *,
        config: MemoryConfig | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Return the facts of an owner whose identity is not known, only the namespace made of it."""
        facts = cls.__new__(cls)
        facts._open(store, owner, config, clock)
        return facts

    def _open(self, store: BaseStore, owner: Owner, config: MemoryConfig | None, clock: Callable[[], float]) -> None:
        self._store, self.owner, self.config, self._clock = store, owner, config or MemoryConfig(), clock

    def create(
        self,
        content: str,
        category: str,
        confidence: float,
        *,
        source: Source = "library",
        pinned: bool = False,
    ) -> Fact:
        """Add a fact and return it; one that is already known is returned as it is, and counted as confirmed.

        One that reads as an order to the assistant is quarantined: it waits for `release`.

        Args:
            content: One statement, at most 10,000 characters.
            category: One of the six categories.
            confidence: From 0.0 to 1.0; no threshold applies here.
            source: Who writes it; what the page, the API or the command line write is spared by evictions.
            pinned: Spare it too.

        Raises:
            ValueError: If a value is invalid, or the content holds a secret; the message names the field.
            MemoryFull: If `max_facts` is reached and every fact is protected.
        """
        return run(self._store, self._create(content, category, confidence, source, pinned))

    async def acreate(
        self,
        content: str,
        category: str,
        confidence: float,
        *,
        source: Source = "library",
        pinned: bool = False,
    ) -> Fact:
        """Do what `create` does, asynchronously."""
        return await arun(self._store, self._create(content, category, confidence, source, pinned))

    def get(self, fact_id: str) -> Fact:
        """Return an active or quarantined fact; `FactNotFound` (a KeyError) for an unknown id."""
        return run(self._store, self._get(fact_id))

    async def aget(self, fact_id: str) -> Fact:
        """Do what `get` does, asynchronously."""
        return await arun(self._store, self._get(fact_id))

    def list(self, status: Status = "active") -> Facts:
        """Return the facts of one status, strongest first; `superseded` and `ended` ones are history."""
        return run(self._store, self._list(status))

    async def alist(self, status: Status = "active") -> Facts:
        """Do what `list` does, asynchronously."""
        return await arun(self._store, self._list(status))

    def search(self, query: str, limit: int = 10) -> Facts:
        """Return the active facts that share words with the query, the most related first."""
        return run(self._store, self._search(query, limit))

    async def asearch(self, query: str, limit: int = 10) -> Facts:
        """Do what `search` does, asynchronously."""
        return await arun(self._store, self._search(query, limit))

    def update(
        self,
        fact_id: str,
        *,
        content: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        pinned: bool | None = None,
        source: Source | None = None,
    ) -> Fact:
        """Change the given fields and return the fact; its id and `created_at` stay, what it said goes to history.

        What was said before this does not change the fact any more, nor bring back what it said.

        Args:
            fact_id: Which fact.
            content: What it is to say.
            category: One of the six categories.
            confidence: From 0.0 to 1.0.
            pinned: Whether an eviction spares it.
            source: Who edits it, if not the library; evictions spare what the page, the API or the command line wrote.

        Raises:
            FactNotFound: If the id is unknown.
            ValueError: If a value is invalid, or another fact already says the new content.
        """
        return run(self._store, self._update(fact_id, content, category, confidence, pinned, source))

    async def aupdate(
        self,
        fact_id: str,
        *,
        content: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        pinned: bool | None = None,
        source: Source | None = None,
    ) -> Fact:
        """Do what `update` does, asynchronously."""
        return await arun(self._store, self._update(fact_id, content, category, confidence, pinned, source))

    def delete(self, fact_id: str) -> None:
        """Delete a fact for good, with what it corrected and was corrected by, their history and confirmations.

        It does not come back from messages said before, nor by an undo.

        Raises:
            FactNotFound: If the id is unknown.
        """
        run(self._store, self._delete(fact_id))

    async def adelete(self, fact_id: str) -> None:
        """Do what `delete` does, asynchronously."""
        await arun(self._store, self._delete(fact_id))

    def release(self, fact_id: str) -> Fact:
        """Make a quarantined fact an active one, after a person reviewed it; `FactNotFound` for any other id."""
        return run(self._store, self._release(fact_id))

    async def arelease(self, fact_id: str) -> Fact:
        """Do what `release` does, asynchronously."""
        return await arun(self._store, self._release(fact_id))

    def confirmations(self, fact_id: str) -> Confirmations:
        """Tell how often a fact was said again, and when; `FactNotFound` for an unknown id."""
        return run(self._store, self._confirmations(fact_id))

    async def aconfirmations(self, fact_id: str) -> Confirmations:
        """Do what `confirmations` does, asynchronously."""
        return await arun(self._store, self._confirmations(fact_id))

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
        """Apply what was extracted; applying it twice is the same as once (see `apply_steps`)."""
        return run(self._store, self._apply(extraction, thread_id, epoch, now))

    async def aapply(self, extraction: Extraction, *, thread_id: str, epoch: str, now: str) -> Outcome:
        """Do what `apply` does, asynchronously."""
        return await arun(self._store, self._apply(extraction, thread_id, epoch, now))

    def _read(self, *contents: str) -> StoreEffects[tuple[str, FactSet]]:
        return read_current_fact_set(self.owner, contents)

    def _write(self, epoch: str, before: FactSet, after: FactSet) -> StoreEffects[FactSet | None]:
        yield from write_difference(self.owner, epoch, before, after)
        settled = yield from settle(self.owner, epoch, before, self.config)
        return settled if (yield from stands(self.owner, epoch)) else None

    def _now(self) -> str:
        return timestamp(self._clock())

    def _create(
        self, content: str, category: str, confidence: float, source: Source, pinned: bool
    ) -> StoreEffects[Fact]:
        said = checked_content(content)
        suspect = admitted(said, "content") is not None
        kind, sure, writer = checked_category(category), checked_confidence(confidence), checked_source(source)
        for _ in range(_TRIES):
            epoch, before = yield from self._read(said)
            now = self._now()
            draft = Fact(
                id="", content=said, category=kind, confidence=sure, created_at=now, updated_at=now, source=writer,
                pinned=pinned, epoch=epoch,
                status="quarantined" if suspect and same_content(before, said) is None else "active",
            )  # fmt: skip
            after, fact = create(before, draft, self.config, evidence=uuid.uuid4().hex)
            settled = yield from self._write(epoch, before, after)
            if settled is None:
                continue
            if same_content(settled, said, draft.status) is None and is_full(settled, self.config):
                raise MemoryFull(self.config.max_facts)
            logger.info("%s %s", "skipped a duplicate of" if after.confirmations else "created", fact.id)
            return fact
        raise RuntimeError(_ERASED)

    def _get(self, fact_id: str) -> StoreEffects[Fact]:
        _, fact_set = yield from self._read()
        return find(fact_set, fact_id)[1]

    def _list(self, status: Status) -> StoreEffects[Facts]:
        epoch, fact_set = yield from self._read()
        archived = (yield from read_history(self.owner, epoch)) if status in ("superseded", "ended") else []
        return strongest_first([fact for fact in (*fact_set.rows.values(), *archived) if fact.status == status])

    def _search(self, query: str, limit: int) -> StoreEffects[Facts]:
        _, fact_set = yield from self._read()
        return related(list(fact_set.active().values()), query, limit)

    def _update(
        self,
        fact_id: str,
        content: str | None,
        category: str | None,
        confidence: float | None,
        pinned: bool | None,
        source: Source | None,
    ) -> StoreEffects[Fact]:
        writer = None if source is None else checked_source(source)
        edit = yield from count_edit(self.owner)
        epoch, before = yield from self._read()
        old = find(before, fact_id)[1]
        after, fact = update(
            before, fact_id, now=self._now(), content=content, category=category, confidence=confidence, pinned=pinned,
            source=writer, edit=edit,
        )  # fmt: skip
        yield from self._write(epoch, before, after)
        if (yield from deleted_meanwhile(self.owner, epoch, after, old)):
            raise FactNotFound(fact_id)
        if normalize(fact.content) != normalize(old.content):
            yield marks_of_edit(self.owner, old, fact, epoch=epoch)
        if content is not None:
            yield from drop_sections_about(self.owner, epoch, [old.content for old in after.archived])
        return fact

    def _release(self, fact_id: str) -> StoreEffects[Fact]:
        edit = yield from count_edit(self.owner)
        epoch, before = yield from self._read()
        after, fact = release(before, fact_id, now=self._now(), edit=edit)
        yield from self._write(epoch, before, after)
        return fact

    def _delete(self, fact_id: str) -> StoreEffects[None]:
        epoch, fact_set = yield from self._read()
        _, fact = find(fact_set, fact_id)
        if fact.status == "quarantined":
            edit = yield from count_edit(self.owner)
            yield discard(self.owner, fact_set, fact, now=self._now(), edit=edit, epoch=epoch)
        else:
            chain = yield from forget(self.owner, epoch, fact_id, token=uuid.uuid4().hex, now=self._now())
            yield from drop_sections_about(self.owner, epoch, chain.contents)
        logger.info("deleted %s", fact_id)

    def _confirmations(self, fact_id: str) -> StoreEffects[Confirmations]:
        yield from self._get(fact_id)
        return (yield from read_confirmations(self.owner, fact_id))

    def _apply(self, extraction: Extraction, thread_id: str, epoch: str, now: str) -> StoreEffects[Outcome]:
        return apply_steps(self.owner, extraction, thread_id=thread_id, epoch=epoch, now=now, config=self.config)
