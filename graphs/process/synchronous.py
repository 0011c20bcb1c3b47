"""Lets an agent that is called without `await` use what is written for the event loop alone."""

import asyncio
import functools
import os
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Generic, TypeVar
from weakref import ref

from langgraph.store.base import BaseStore, Op, Result

from memory.door import loop_of, on_thread

T = TypeVar("T")


_THREAD = "palimpsest-agents"


@functools.cache
def _loop_of(process: int) -> asyncio.AbstractEventLoop:  # noqa: ARG001 - it is what is cached for
    """Return an event loop on a daemon thread of a process, for as long as that lives.

    A loop of each call's own would end with it, and with a write that outlives its deadline.
    """
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=_THREAD, daemon=True).start()
    return loop


def finished(work: Coroutine[Any, Any, T]) -> T:
    """Return what the coroutine returns, with the caller's context variables; a caller that is stopped cancels it."""
    done = asyncio.run_coroutine_threadsafe(work, _loop_of(os.getpid()))  # one that was forked has no threads
    try:
        return done.result()
    except BaseException:
        done.cancel()
        raise


def without_await(hook: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
    """Return this method, or a subclass's, for an agent that is called without `await`."""

    @functools.wraps(hook)
    def waits(of: object, *args: Any, **kwargs: Any) -> T:
        work: Coroutine[Any, Any, T] = getattr(of, hook.__name__)(*args, **kwargs)
        return finished(work)

    return waits


def is_awaited() -> bool:
    """Say whether an event loop of the caller's own carries out the work in progress."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return threading.current_thread().name != _THREAD


def asked_here(store: BaseStore | None) -> BaseStore | None:
    """Return a store as the work in progress may ask it: on threads, where its agent is called without `await`.

    One that works on an event loop is asked there, in its own transactions.
    """
    if store is None or is_awaited():
        return store
    loop = loop_of(store)
    return store if loop and loop.is_running() else ThreadedStore(store)


class ThreadedStore(BaseStore):
    """A store's synchronous interface, to be awaited on any event loop: its own asynchronous one may be bound to one.

    Args:
        inner: The store.
    """

    def __init__(self, inner: BaseStore) -> None:
        self.inner = inner

    # Each run makes one: those around one store are equal, so that work behind the turns begins once.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, ThreadedStore) and self.inner is other.inner

    def __hash__(self) -> int:
        return hash((ThreadedStore, id(self.inner)))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry the operations out."""
        return self.inner.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry the operations out on a thread of their own: one that hangs takes no thread from the event loop."""
        return await on_thread(lambda: self.inner.batch(ops), "palimpsest-store")


def unwrapped(store: BaseStore) -> BaseStore:
    """Return a store without what lets a run ask it on threads."""
    return store.inner if isinstance(store, ThreadedStore) else store


class ByStore(Generic[T]):
    """What a process knows of each store, for as long as that lives; stores are told apart by identity alone.

    A store asked on threads and the same store awaited have two entries, as one way may work while the other fails.

    Args:
        new: Makes what is known of a store in the beginning.
    """

    def __init__(self, new: Callable[[], T]) -> None:
        self._new = new
        self._known: dict[tuple[int, bool], tuple[ref[BaseStore], T]] = {}

    def __getitem__(self, store: BaseStore) -> T:
        key, every = (id(unwrapped(store)), isinstance(store, ThreadedStore)), self._known
        known = every.get(key)
        if known is None:
            # Another thread may be first.
            known = every.setdefault(key, (ref(unwrapped(store), lambda _: every.pop(key, None)), self._new()))
        return known[1]

    def values(self) -> list[T]:
        """Return what is known of all stores that live."""
        return [known for _, known in list(self._known.values())]
