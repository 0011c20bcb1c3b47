"""One user's facts in a store, and what updates do to them."""

from typing import Any, cast

from langgraph.store.base import BaseStore

from memory.config import MemoryConfig
from memory.door import run
from memory.facts.changes import Change, Extraction, Outcome
from memory.facts.fact import Fact
from memory.facts.store import FactStore
from memory.message import iso_time
from memory.namespaces import Owner
from tests.fakes import Clock

SAID = "2025-10-09T08:00:00+00:00"  # before the clock's start
NOW = "2025-10-09T09:00:00+00:00"


def facts_of(store: BaseStore, **config: Any) -> FactStore:
    return FactStore(store, "ada", config=MemoryConfig(**config), clock=Clock())


def change(content: str = "", action: Any = "new", target: str | None = None) -> Change:
    return Change(
        action=action,
        content=content,
        category="knowledge",
        confidence=0.9,
        target=target,
        sources=("m1",),
        said_at=SAID,
    )


def apply(facts: FactStore, *changes: Change, thread_id: str = "t", epoch: str = "initial", now: str = NOW) -> Outcome:
    return facts.apply(Extraction(changes=changes), thread_id=thread_id, epoch=epoch, now=now)


def propose(facts: FactStore, content: str) -> Fact:
    """Let a fact wait for its user's yes, as the page does where somebody takes a no back."""
    now = iso_time(facts._facts.clock())
    draft = Fact(
        id="", content=content, category="knowledge", confidence=0.9, created_at=now, updated_at=now, status="waiting",
    )  # fmt: skip
    done, _ = run(facts._store, facts._facts.insert([draft]))
    return cast("Fact", done[0])


def item_of(store: BaseStore, fact: Fact) -> dict[str, Any]:
    items = store.search(Owner.of("ada").namespace("facts"), limit=1000)
    (value,) = (item.value for item in items if item.value["id"] == fact.id)
    return value
