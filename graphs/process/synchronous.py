"""How an agent that is called without `await` does what is written once, for the event loop."""

import asyncio
import functools
import os
import threading
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from langgraph.store.base import BaseStore, Op, Result

from memory.door import in_daemon_thread

T = TypeVar("T")


@functools.cache
def _loop_of(process: int) -> asyncio.AbstractEventLoop:  # noqa: ARG001 - it is what is cached for
    """Return an event loop on a daemon thread of a process, for as long as that lives.

    A loop for each call would end with it, and take along a write that goes on past its deadline.
    """
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="palimpsest-agents", daemon=True).start()
    return loop


def finished(work: Coroutine[Any, Any, T]) -> T:
    """Return what the coroutine returns, with the caller's context variables; a caller that is stopped cancels it."""
    done = asyncio.run_coroutine_threadsafe(work, _loop_of(os.getpid()))  # one that was forked has no threads
    try:
        return done.result()
    except BaseException:
        done.cancel()
        raise


class ThreadedStore(BaseStore):
    """A store's synchronous interface, to be awaited on any event loop: its own asynchronous one may be bound to one.

    Args:
        inner: The store.
    """

    def __init__(self, inner: BaseStore) -> None:
        self.inner = inner

    # Several around one store are one: what is known of it, such as that it is away, holds for each.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, ThreadedStore) and self.inner is other.inner

    def __hash__(self) -> int:
        return hash((ThreadedStore, id(self.inner)))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry the operations out."""
        return self.inner.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry the operations out on a thread of their own: one that hangs takes no thread from the event loop."""
        return await asyncio.wrap_future(in_daemon_thread(lambda: self.inner.batch(ops), "palimpsest-store"))
