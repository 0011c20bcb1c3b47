"""A store for tests that behaves as a database does, and fails on order."""

import asyncio
import copy
from collections.abc import Callable, Iterable, Sequence

import pytest
from langgraph.store.base import BaseStore, Item, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore

Fault = Callable[[int], BaseException | None]


class Killed(BaseException):
    """The process ends here: nothing that catches errors may catch it."""


class FaultyStore(BaseStore):
    """Keeps copies, counts batches, and raises what `fault` returns for the n-th of them (from 1).

    Attributes:
        calls: How many batches were asked for.
        fault: Returns what to raise at a batch, or `None`.
    """

    def __init__(self) -> None:
        self._inner = InMemoryStore()
        self.calls = 0
        self.fault: Fault = lambda _: None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        operations = [_copied(op) for op in ops]
        self.calls += 1
        if error := self.fault(self.calls):
            raise error
        return copy.deepcopy(self._inner.batch(operations))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return self.batch(ops)

    def items(self, namespace: Sequence[str]) -> list[Item]:
        """Everything below a namespace, without counting as a call."""
        return list(self._inner.search(tuple(namespace), limit=100_000))


class CountingStore(InMemoryStore):
    """Counts the batches that it is asked for, one after another."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = 0

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        self.batches += 1
        return super().batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        self.batches += 1
        return await super().abatch(ops)


def _copied(op: Op) -> Op:
    return op._replace(value=copy.deepcopy(op.value)) if isinstance(op, PutOp) else op


def fail_at(call: int) -> Fault:
    """Return a fault for this call."""
    return lambda n: OSError("disk full") if n == call else None


async def refuses_what_expires(store: BaseStore) -> None:
    """See that no door takes an item with a time to live, with one sentence, and that none is kept."""
    shelf, value = ("shelf", "ada"), {"n": 1}
    batch = [PutOp(shelf, "whole", value), PutOp(shelf, "old", value, ttl=5)]
    sentences = set()
    for door in (
        lambda: store.aput(shelf, "old", value, ttl=5),
        lambda: asyncio.to_thread(store.put, shelf, "old", value, ttl=5),
        lambda: store.abatch(batch),
        lambda: asyncio.to_thread(store.batch, batch),
    ):
        with pytest.raises(NotImplementedError) as refused:
            await door()
        sentences.add(str(refused.value))
    assert len(sentences) == 1
    assert not await store.asearch(shelf)
    assert not store.supports_ttl
    await store.aput(shelf, "lasts", value, ttl=None)
    assert [item.key for item in await store.asearch(shelf)] == ["lasts"]
