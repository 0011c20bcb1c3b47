"""A write is one transaction of one user: it reads, decides by pure rules, and writes, or it does nothing.

Our stores begin a transaction of their database before the first read (`writing`). Over any other store, one process
writes at a time: a lock of the process keeps the writers of one user apart, and all writes go in one batch at the end.
No model, embedder or network is asked inside: who carries a transaction out knows nothing but batches.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial, wraps
from typing import Any, Final, ParamSpec, Protocol, TypeVar, cast, runtime_checkable
from weakref import WeakValueDictionary

from langgraph.store.base import GetOp, Item, Op, PutOp, SearchOp

from memory.namespaces import Owner, erased_thread_key

P = ParamSpec("P")
E = TypeVar("E")

Batching = Callable[[Sequence[Op]], Awaitable[list[Any]]]


class MemoryBusy(TimeoutError):
    """Others have written for so long that this write did not begin; nothing of it was stored."""


@runtime_checkable
class Transactional(Protocol):
    """A store that keeps writers of one name apart, also those of other processes."""

    def writing(self, *names: str) -> AbstractAsyncContextManager[Batching]:
        """Begin to write under these names, taken in order, and yield what carries out batches; the end commits."""


@dataclass(frozen=True, slots=True)
class Write:
    """The effect of a transaction; its value is sent back. Within another one it is a part of that.

    Attributes:
        names: Of the user, and then of the thread: whoever writes under one of them waits.
        effects: Yields batches for the store, and returns the value.
    """

    names: tuple[str, ...]
    effects: Any


def transaction(operation: Callable[P, E]) -> Callable[P, E]:
    """Make what yields batches one transaction of its owner: its first argument, or the `owner` of that.

    Where that argument is of a thread, no erase of the thread begins meanwhile.
    """

    @wraps(operation)
    def whole(*args: P.args, **kwargs: P.kwargs) -> Any:
        of: Any = args[0]
        owner = of if isinstance(of, Owner) else of.owner
        thread_id = getattr(of, "thread_id", "")
        names = (owner.segment, thread_name(thread_id)) if thread_id else (owner.segment,)
        return (yield from in_transaction(names, operation(*args, **kwargs)))

    return cast("Callable[P, E]", whole)


def in_transaction(names: tuple[str, ...], effects: Any) -> Any:
    """Do what yields batches as one transaction under these names."""
    return (yield Write(names, effects))


def thread_name(thread_id: str) -> str:
    """Return under which name a thread is erased, and its turns are written down."""
    return f"thread.{erased_thread_key(thread_id)}"


@dataclass(frozen=True, slots=True)
class _Inside:
    """What a transaction has read so far, and what it will have written."""

    read: dict[str, Any] = field(default_factory=dict)
    puts: dict[tuple[tuple[str, ...], str], PutOp] = field(default_factory=dict)

    def is_known(self, op: Op) -> bool:
        """Say whether an operation needs no read; nobody else writes the user's rows meanwhile."""
        if isinstance(op, PutOp):
            return True
        found = self.read.get(repr(op), self)
        # Of a search that ended at its limit, what is deleted here takes the place of what it did not find.
        return found is not self and not (isinstance(op, SearchOp) and len(found) >= op.limit)

    def widened(self, op: Op) -> Op:
        """Return a search that finds as many as were asked for though some of what it finds is deleted by now."""
        return op._replace(limit=op.limit + len(self.puts)) if isinstance(op, SearchOp) else op

    def result(self, op: Op) -> Any:
        """Return the result of an operation as it is after the writes."""
        if isinstance(op, PutOp):
            return None
        found = self.read[repr(op)]
        if isinstance(op, GetOp):
            put = self.puts.get((tuple(op.namespace), op.key))
            return _item(put) if put else found
        if not isinstance(op, SearchOp):
            return found
        prefix, fields = tuple(op.namespace_prefix), op.filter or {}
        new = [_item(put) for (place, _), put in self.puts.items() if place[: len(prefix)] == prefix]
        return [
            *(item for item in found if (tuple(item.namespace), item.key) not in self.puts),
            *(item for item in new if item and all(item.value.get(name) == each for name, each in fields.items())),
        ]


def collected(effects: Any, inside: _Inside | None = None) -> Any:
    """Return effects of which each read is done once, and sees the writes before it; all writes are the last batch."""
    here = inside or _Inside()
    step: Callable[[], Any] = partial(next, effects)
    while True:
        try:
            effect = step()
        except StopIteration as stop:
            value = stop.value
            break
        try:
            result = (yield from collected(effect.effects, here)) if isinstance(effect, Write) else None
            if isinstance(effect, list):
                if asked := [op for op in effect if not here.is_known(op)]:
                    found = yield [here.widened(op) for op in asked]
                    here.read.update(zip(map(repr, asked), found, strict=True))
                result = [here.result(op) for op in effect]
                here.puts.update({(tuple(op.namespace), op.key): op for op in effect if isinstance(op, PutOp)})
        except Exception as error:  # whatever it is, the generator decides
            step = partial(effects.throw, error)
        else:
            step = partial(effects.send, result)
    if inside is None and here.puts:
        yield [*here.puts.values()]
    return value


def _item(put: PutOp) -> Item | None:
    now = datetime.now(UTC)  # as a store would
    value: Mapping[str, Any] | None = put.value
    return None if value is None else Item(
        value=dict(value), key=put.key, namespace=tuple(put.namespace), created_at=now, updated_at=now
    )  # fmt: skip


class Turnstile:
    """One at a time, first come, first served, across all threads and event loops of the process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._is_taken = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: deque[Future[None]] = deque()

    @contextmanager
    def held(self, seconds: float) -> Iterator[None]:
        """Have the turn; `MemoryBusy` if it does not come in so many seconds. Blocks."""
        with self._standing() as place:
            if not place.done() and self._loop and self._loop is _running_loop():
                raise asyncio.InvalidStateError(f"{ON_LOOP}: what it waits for goes on there")
            place.result(seconds)
        try:
            yield
        finally:
            self._pass_on()

    @asynccontextmanager
    async def aheld(self, seconds: float) -> AsyncIterator[None]:
        """Do what `held` does, on an event loop."""
        with self._standing() as place:
            if not place.done():
                async with asyncio.timeout(seconds):
                    await asyncio.wrap_future(place)
        self._loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            self._pass_on()

    @contextmanager
    def _standing(self) -> "Iterator[Future[None]]":
        """Yield a place in the queue, to be waited for; it is given up if that fails."""
        place: Future[None] = Future()
        with self._guard:
            if self._is_taken:
                self._queue.append(place)
            else:
                self._is_taken = True
                place.set_result(None)
        try:
            yield place
        except BaseException as error:
            if not place.cancel():  # the turn came meanwhile
                self._pass_on()
            if isinstance(error, TimeoutError):
                raise MemoryBusy from error
            raise

    def _pass_on(self) -> None:
        with self._guard:
            self._loop = None
            while self._queue:
                place = self._queue.popleft()
                if place.set_running_or_notify_cancel():
                    place.set_result(None)
                    return
            self._is_taken = False


ON_LOOP: Final = "a synchronous call would block the event loop: await its async twin"

_GUARD: Final = threading.Lock()
_TURNS: Final[WeakValueDictionary[str, Turnstile]] = WeakValueDictionary()


def turn_of(name: str) -> Turnstile:
    """Return the turnstile of a name, one for the whole process: a store may be opened once a thread."""
    with _GUARD:
        turn = _TURNS.get(name)
        if turn is None:
            turn = _TURNS[name] = Turnstile()
        return turn


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def check_off_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Raise where a synchronous call blocks the event loop that its store works on."""
    if loop is _running_loop():
        raise asyncio.InvalidStateError(f"{ON_LOOP}: the store works on this loop")
