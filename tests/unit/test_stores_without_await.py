"""What a process knows of the stores of agents that are called without `await`."""

import gc
import weakref
from typing import Any

from langgraph.store.memory import InMemoryStore

from graphs.process.synchronous import asked_here
from memory.namespaces import Owner
from tests.laws.talk import Talk

ADA = Owner.of("ada", "default")


class Equal(InMemoryStore):
    """Says that it is any other, and so has no hash."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    __hash__ = None  # type: ignore[assignment]


def asked(store: Any) -> Any:
    """Return the store as a run asks it that nobody awaits."""
    return asked_here(store)


def test_an_index_is_kept_from_turn_to_turn_however_many_stores_take_turns() -> None:
    recalling, stores = Talk().service.recalling, [InMemoryStore() for _ in range(6)]
    first = [recalling.index(asked(store), ADA) for store in stores]
    again = [recalling.index(asked(store), ADA) for store in stores]
    assert [*map(id, first)] == [*map(id, again)]
    assert len({*map(id, first)}) == len(stores)


def test_nothing_keeps_a_store_alive_that_nobody_uses_any_more() -> None:
    service, store = Talk().service, InMemoryStore()
    gone = weakref.ref(store)
    service.recalling.index(asked(store), ADA)
    assert service.recalling._stores.values()
    del store
    gc.collect()
    assert gone() is None
    assert not service.recalling._stores.values()


async def test_stores_that_say_they_are_equal_and_have_no_hash_are_told_apart() -> None:
    one, two = Equal(), Equal()
    talk, other = Talk("agent sync", user="ada", store=one), Talk("agent sync", user="ada", store=two)
    await talk.say("I like figs.")
    assert "I like figs." in talk.stored()
    assert "figs" not in other.stored()
