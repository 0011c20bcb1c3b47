"""Store access written once: a generator yields batches of operations, `run` or `arun` carries them out.

A function that reads or writes a store is a generator of type `Steps[T]`: it yields a list of store operations,
is sent their results, and returns its value. `run(store, steps)` and `await arun(store, steps)` are the only
drivers, so that sync and async entry points share every decision.

    def rename(owner: Owner, key: str, name: str) -> Steps[bool]:
        item = yield from read(owner.namespace("facts"), key)
        if item is None:
            return False
        yield [put(item.namespace, key, {**item.value, "name": name})]
        return True
"""

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeVar

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, SearchOp

from memory.steps import adrive, drive
from memory.tolerance import tolerated

logger = logging.getLogger(__name__)

T = TypeVar("T")
Wish = TypeVar("Wish")
Steps = Generator[Sequence[Op], list[Any], T]

PAGE = 1000
_TRIES = 20
_TAKEN_BACK = frozenset({"40001", "40P01"})  # serialization failure, deadlock


def run(store: BaseStore, steps: Steps[T]) -> T:
    """Carry the steps out on a store's synchronous interface and return their value."""
    return drive(persistently(steps), store.batch)


async def arun(store: BaseStore, steps: Steps[T]) -> T:
    """Carry the steps out on a store's asynchronous interface and return their value."""
    return await adrive(persistently(steps), store.abatch)


def persistently(steps: Generator[Wish, Any, T]) -> Generator[Wish, Any, T]:
    """Return the same steps, which ask again for a batch that a database took back whole in favour of another writer.

    Two writers of the same rows in another order deadlock, and Postgres ends one of them (SQLSTATE 40P01). Nothing
    of its batch was written; to repeat it is what Postgres asks for.
    """
    try:
        wish, tries = next(steps), _TRIES
        while True:
            try:
                done = yield wish
            except Exception as error:  # known by its code alone: a store's errors are of its driver's classes
                if tries and getattr(error, "sqlstate", None) in _TAKEN_BACK:
                    tries -= 1
                    logger.info("a batch is asked for again: %s", type(error).__name__)
                else:
                    wish, tries = steps.throw(error), _TRIES
            else:
                wish, tries = steps.send(done), _TRIES
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # typeshed has no type for it


async def arun_patiently(store: BaseStore, steps: Callable[[], Steps[T]], tries: int = 3) -> T:
    """Carry out steps that may be repeated like `arun`, again if the store fails: a hiccup must not cost a turn.

    Args:
        store: Where they are carried out.
        steps: Makes the steps anew for each try.
        tries: After so many failures the last one is raised.
    """
    for _ in range(tries - 1):
        with tolerated(logger, "a store call is tried again", level=logging.INFO):
            return await arun(store, steps())
    return await arun(store, steps())


def put(namespace: Sequence[str], key: str, value: Mapping[str, object]) -> PutOp:
    """Return the operation that writes one item. It is never indexed: recall keeps its own index."""
    return PutOp(tuple(namespace), key, dict(value), index=False)


def delete(namespace: Sequence[str], key: str) -> PutOp:
    """Return the operation that deletes one item; deleting what is not there is no error."""
    return PutOp(tuple(namespace), key, None)


def read(namespace: Sequence[str], key: str) -> Steps[Item | None]:
    """Read one item, or `None`."""
    (item,) = yield [GetOp(tuple(namespace), key, refresh_ttl=False)]
    return item  # type: ignore[no-any-return]


def read_many(namespace: Sequence[str], keys: Sequence[str]) -> Steps[list[Item | None]]:
    """Read several items of one namespace in one batch, in the order of their keys."""
    if not keys:
        return []
    return (yield [GetOp(tuple(namespace), key, refresh_ttl=False) for key in keys])


def scan(namespace: Sequence[str], page: int = PAGE) -> Steps[list[Item]]:
    """Read every item of exactly this namespace, sorted by key.

    A store's search stops at 10 items, also returns what lies below the namespace, and orders as it likes: by the
    time of the last write, so that with pages an item could hide between two of them, when it is written again
    meanwhile or was written in one batch with others. One search that is large enough sees all at one moment.

    Args:
        namespace: What is read.
        page: How many items the first search asks for; while there are more, the next asks for four times as many.
    """
    wanted = tuple(namespace)
    limit = page
    while len(items := (yield from _search(SearchOp(wanted, None, limit, refresh_ttl=False)))) >= limit:
        limit *= 4
    return sorted((item for item in items if tuple(item.namespace) == wanted), key=lambda item: item.key)


def _search(operation: SearchOp) -> Steps[list[Item]]:
    """Search once, or again where LangGraph's InMemoryStore met another thread's write while it iterated."""
    for _ in range(_TRIES):
        try:
            (items,) = yield [operation]
        except RuntimeError as error:
            if not str(error).endswith("during iteration"):  # changed its size, or its keys
                raise
        else:
            return items  # type: ignore[no-any-return]
    (items,) = yield [operation]
    return items  # type: ignore[no-any-return]
