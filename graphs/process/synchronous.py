"""How an agent that is called without `await` does what is written once, for the event loop."""

import asyncio
import contextvars
import threading
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

from langgraph.store.base import BaseStore, Op, Result

from memory.effects import in_daemon_thread

T = TypeVar("T")


class _Loop:
    """An event loop on a daemon thread of this process, for as long as the process lives.

    A loop for each call would end with it, and take along a write that goes on past its deadline.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def running(self) -> asyncio.AbstractEventLoop:
        """Return the loop; it is begun when it is first needed, and again in a process that was forked."""
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="palimpsest-agents", daemon=True)
                self._thread.start()
            return self._loop


_LOOP = _Loop()


def finished(work: Coroutine[Any, Any, T]) -> T:
    """Return what the coroutine returns, with the caller's context variables; a caller that is stopped cancels it."""
    loop, context = _LOOP.running(), contextvars.copy_context()
    begun: Future[asyncio.Task[T]] = Future()
    done: Future[T] = Future()

    def begin() -> None:
        task = loop.create_task(work, context=context)
        task.add_done_callback(end)
        begun.set_result(task)

    def end(task: asyncio.Task[T]) -> None:
        if task.cancelled():
            done.cancel()
        elif error := task.exception():
            done.set_exception(error)
        else:
            done.set_result(task.result())

    loop.call_soon_threadsafe(begin)
    try:
        return done.result()
    except BaseException:
        loop.call_soon_threadsafe(begun.result().cancel)
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
