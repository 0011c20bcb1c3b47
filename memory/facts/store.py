"""FactStore: one user's facts in any BaseStore, with a synchronous and an asynchronous door to each operation.

`FactEffects` has the operations as effects on a store, so that others can put them together with effects of their own.
"""

import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import date
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from langgraph.store.base import BaseStore

from memory.config import MemoryConfig
from memory.door import StoreEffects, arun, run, transaction
from memory.facts import rules
from memory.facts.applying import change_facts
from memory.facts.changes import Extraction, Outcome
from memory.facts.fact import HISTORY, Fact, Status, checked_content
from memory.facts.fact_set import FactSet, first_revisions
from memory.facts.records import Confirmations
from memory.facts.rows import MemorySnapshot, read_fact_set, read_snapshot, save
from memory.message import iso_time
from memory.namespaces import Owner
from memory.recall.search import search_facts
from memory.recall.vectors import QueryVector, read_vectors

P = ParamSpec("P")
T = TypeVar("T")
Facts = list[Fact]
Operation = Callable[Concatenate["FactEffects", P], StoreEffects[T]]
Door = Callable[Concatenate["FactStore", P], T]
AsyncDoor = Callable[Concatenate["FactStore", P], Coroutine[Any, Any, T]]


def _operation(
    rule: Callable[Concatenate[FactSet, P], T],
    said: Callable[..., Sequence[str] | None] = lambda *_, **__: (),
) -> Operation[P, T]:
    """Return what carries out a rule: one transaction reads the facts, and writes what becomes of them.

    Args:
        rule: What it does, and returns.
        said: Returns what is about to be added that history may have, of the rule's arguments; `None` if the rule needs
            all that the facts said.
    """

    @wraps(rule)
    @transaction
    async def operation(self: "FactEffects", /, *args: P.args, **kwargs: P.kwargs) -> T:
        facts = await self.read(said(*args, **kwargs))
        value = rule(facts, *args, **kwargs)
        await save(facts)
        return value

    return cast("Operation[P, T]", operation)


def _all(*_: object, **__: object) -> None:
    """Ask for all that the facts said."""


@dataclass(frozen=True, slots=True)
class FactEffects:
    """One owner's facts.

    Attributes:
        owner: Whose facts.
        config: Limits and protected categories.
        clock: Returns seconds since 1970.
    """

    owner: Owner
    config: MemoryConfig
    clock: Callable[[], float]

    create = _operation(rules.create, lambda content, *_, **__: [checked_content(content)])
    restore = _operation(rules.restore, _all)
    insert = _operation(rules.insert, lambda drafts, *_: [draft.content for draft in drafts])
    update = _operation(rules.update)
    release = _operation(rules.release)
    approve = _operation(rules.approve)
    retire = _operation(rules.retire, _all)
    delete = _operation(rules.delete, _all)
    undo = _operation(rules.undo, _all)

    async def get(self, fact_id: str) -> Fact:
        """Return an active or quarantined fact; `FactNotFound` (a KeyError) for an unknown id."""
        return (await self.read(is_light=True)).find(fact_id)

    async def list(self, status: Status | None = "active", *, as_of: date | None = None) -> Facts:
        """Return the facts of one status, pinned ones first, then the strongest; of history, `superseded` and `ended`.

        Args:
            status: Which ones; `None` returns all that are no history.
            as_of: A day of the user's: instead those that were in use at its end, as they were then.
        """
        if as_of:
            return (await self.read()).as_of(as_of)
        return (await self.read(is_light=status not in HISTORY)).listed(status)

    async def search(
        self,
        query: str,
        limit: int | None = 10,
        *,
        status: Status = "active",
        question: QueryVector | None = None,
        only_asked: bool = False,
        as_of: date | None = None,
    ) -> Facts:
        """Return the facts that hold the query, strongest first, then those that recall ranks for it, best first.

        Args:
            query: A word or a sentence, whatever its case; nothing is found by white space or punctuation alone.
            limit: So many at most; `None` returns all.
            status: Which facts are searched.
            question: What an embedder makes of the query: then facts are found by their meaning, too.
            only_asked: Leave out what nothing of the query finds, but words that it shares with another hit, or the
                conversation that both are from: for a search that a person typed.
            as_of: As for `list`.
        """
        facts, vectors = await self.list(status, as_of=as_of), {}
        if question is not None:
            vectors = await read_vectors(self.owner, question.embedder)
        found = search_facts(facts, query, question, vectors, only_asked=only_asked)
        return found[: None if limit is None else max(0, limit)]

    async def history(self, fact_id: str) -> Facts:
        """Return all that a fact said, oldest first; the last one is what it says now, if it is still there.

        What it corrected, and what corrected it, is among it: `replaces` and `replaced_by` name the other, and
        `valid_to` of what was corrected is the day on which the other was said.

        Raises:
            FactNotFound: If no fact has or had the id.
        """
        return (await self.read()).revisions_of(fact_id)

    async def confirmations(self, fact_id: str) -> Confirmations:
        """Tell how often a fact was said again, and when; `FactNotFound` for an unknown id."""
        facts = await self.read(())
        return facts.said.get(facts.find(fact_id).id, Confirmations())

    def snapshot(self) -> StoreEffects[MemorySnapshot]:
        """Return everything that may be injected or shown to the extractor: active facts and profile, as stored.

        A stored text that holds a secret or reads as an order is left out, whoever wrote it there, unless a person
        released it from quarantine.
        """
        return read_snapshot(self.owner)

    @transaction
    def apply(self, extraction: Extraction, *, thread_id: str, epoch: str, now: str) -> StoreEffects[Outcome]:
        """Apply what was extracted; applying it twice is the same as once."""
        return change_facts(self.owner, extraction, thread_id=thread_id, epoch=epoch, now=now, config=self.config)

    def read(self, said: Sequence[str] | None = None, *, is_light: bool = False) -> StoreEffects[FactSet]:
        """Read the facts as they are now, to add what these texts say, or with all that they said."""
        keys = None if said is None else first_revisions(self.owner, said)
        return read_fact_set(self.owner, keys, is_light=is_light, now=iso_time(self.clock()), config=self.config)


def _doors(operation: Operation[P, T]) -> tuple[Door[P, T], AsyncDoor[P, T]]:
    """Return the method that carries out an operation of `FactEffects` and returns its value, and its async twin."""

    @wraps(operation)
    def door(self: "FactStore", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(self._store, operation(self._facts, *args, **kwargs))

    @wraps(operation)
    async def adoor(self: "FactStore", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await arun(self._store, operation(self._facts, *args, **kwargs))

    return door, adoor


class FactStore:
    """What is known about one user, for one agent.

    Every method has an async twin (`acreate`, `aget`, …). On an event loop use the twins: a store's synchronous
    interface blocks it.

    Args:
        store: Any BaseStore; with or without a vector index.
        user_id: The authenticated identity; it is hashed, so it may hold any character. Or the owner that is made of
            it and of the agent's name, where only that is known.
        agent_name: Assistants of one name share what they know.
        config: Limits and protected categories.
        clock: Seconds since 1970.

    Raises:
        ValueError: If `user_id` or `agent_name` cannot name a namespace.
    """

    def __init__(
        self,
        store: BaseStore,
        user_id: str | Owner,
        agent_name: str = "default",
        *,
        config: MemoryConfig | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        owner = user_id if isinstance(user_id, Owner) else Owner.of(user_id, agent_name)
        self._store, self._facts = store, FactEffects(owner, config or MemoryConfig(), clock)

    @property
    def owner(self) -> Owner:
        """Whose facts these are."""
        return self._facts.owner

    create, acreate = _doors(FactEffects.create)
    get, aget = _doors(FactEffects.get)
    list, alist = _doors(FactEffects.list)
    search, asearch = _doors(FactEffects.search)
    history, ahistory = _doors(FactEffects.history)
    update, aupdate = _doors(FactEffects.update)
    retire, aretire = _doors(FactEffects.retire)
    delete, adelete = _doors(FactEffects.delete)
    undo, aundo = _doors(FactEffects.undo)
    restore, arestore = _doors(FactEffects.restore)
    release, arelease = _doors(FactEffects.release)
    approve, aapprove = _doors(FactEffects.approve)
    confirmations, aconfirmations = _doors(FactEffects.confirmations)
    snapshot, asnapshot = _doors(FactEffects.snapshot)
    apply, aapply = _doors(FactEffects.apply)
