"""The door to the store: a decision is a coroutine that awaits what it wants done, and what carries that out is here.

It awaits nothing else, and needs no event loop: `run` and `arun` send it the answers. A list of operations is a batch
for the store, and a `Write` is a transaction. So every decision is written once, and reads neither a clock nor a
network.

A write is one transaction of one user: it reads, decides by pure rules, and writes, or it does nothing. Our stores
begin a transaction of their database before the first read (`writing`). Over any other store, one process writes at a
time: a lock of the process keeps the writers of one user apart, and all writes go in one batch at the end. No model,
embedder or network is asked inside: who carries a transaction out knows nothing but batches.
"""

import asyncio
import logging
import os
import threading
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial, wraps
from itertools import chain, islice
from queue import SimpleQueue
from types import coroutine
from typing import Any, Final, ParamSpec, Protocol, TypeVar, cast, overload
from weakref import WeakValueDictionary

from langgraph.errors import GraphBubbleUp
from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp

from memory.namespaces import Owner, erased_thread_key, vectors_of

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")

Batch = Sequence[Op]
"""Operations for the store in one go. It must be a list: handlers know it by that."""
StoreEffects = Coroutine[Any, Any, T]
"""Awaits batches for the store, and returns a value."""
Asking = Generator[Batch, list[Any], T]
"""Does the same by yielding; all that is awaited ends in such generators."""
Batching = Callable[[Sequence[Op]], Awaitable[list[Any]]]
Aside = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Has another thread than the event loop's make a call."""

PAGE = 1000
STORE_SECONDS = 60.0
_TRIES = 20


class MemoryBusy(TimeoutError):
    """Others have written for so long that this write did not begin; nothing of it was stored."""


class Transactional(Protocol):
    """A store that keeps writers of one name apart, also those of other processes; it is known by its method."""

    def writing(self, *names: str) -> AbstractAsyncContextManager[Batching]:
        """Begin to write under these names, taken in order, and yield what carries out batches; the end commits."""


@dataclass(frozen=True, slots=True)
class Write:
    """The effect of a transaction; its value is sent back. Within another one it is a part of that.

    Attributes:
        names: The user's, then the thread's: other writers under one of them wait.
        begin: Returns what awaits batches for the store, and returns the value.
    """

    names: Sequence[str]
    begin: Callable[[], StoreEffects[Any]]


def awaitable(asks: Callable[P, Generator[Any, Any, T]]) -> Callable[P, StoreEffects[T]]:
    """Make a generator of batches, or of a `Write`, something to await."""
    return cast("Any", coroutine(asks))  # type: ignore[no-any-return]


def transaction(operation: Callable[P, StoreEffects[T]]) -> Callable[P, StoreEffects[T]]:
    """Make what awaits batches one transaction of its first argument: of an owner, of a thread's id, or of a value.

    That is of its `owner`, and of its `thread_id`, if it has one: no erase of the thread begins meanwhile.
    """

    @awaitable
    @wraps(operation)
    def whole(*args: P.args, **kwargs: P.kwargs) -> Generator[Write, T, T]:
        of: Any = args[0]
        owner = of if isinstance(of, Owner) else getattr(of, "owner", None)
        thread_id = of if isinstance(of, str) else getattr(of, "thread_id", "")
        names = [owner.segment] if owner else []
        if thread_id:
            names.append(f"thread.{erased_thread_key(thread_id)}")
        return (yield Write(names, partial(operation, *args, **kwargs)))

    return whole


# What is asked of a store.


@awaitable
def ask(*ops: Op) -> Asking[list[Any]]:
    """Have a store carry out operations in one batch, and return its answers."""
    return (yield [*ops])


def put(namespace: Sequence[str], key: str, value: Mapping[str, object]) -> PutOp:
    """Return the operation that writes one item. It is never indexed: recall keeps its own index."""
    return PutOp(tuple(namespace), key, dict(value), index=False)


def delete(namespace: Sequence[str], key: str) -> PutOp:
    """Return the operation that deletes one item; deleting what is not there is no error."""
    return PutOp(tuple(namespace), key, None)


@awaitable
def read(namespace: Sequence[str], key: str) -> Asking[Item | None]:
    """Read one item, or `None`."""
    (item,) = yield [GetOp(tuple(namespace), key, refresh_ttl=False)]
    return item  # type: ignore[no-any-return]


@awaitable
def read_many(namespace: Sequence[str], keys: Sequence[str]) -> Asking[list[Item | None]]:
    """Read several items of one namespace in one batch, in the order of their keys."""
    if not keys:
        return []
    return (yield [GetOp(tuple(namespace), key, refresh_ttl=False) for key in keys])


@awaitable
def scan(namespace: Sequence[str], *, where: Mapping[str, str] | None = None) -> Asking[list[Item]]:
    """Read every item of exactly this namespace, sorted by key.

    A store's search stops at 10 items, also returns what lies below the namespace, and orders as it likes: by the
    time of the last write, so that with pages an item could hide between two of them, when it is written again
    meanwhile or was written in one batch with others. One search that is large enough sees all at one moment.

    Args:
        namespace: What is read.
        where: What fields of the values have to be; by default anything.
    """
    wanted = tuple(namespace)
    limit = PAGE  # while there are more, the next search asks for four times as many
    fields = dict(where) if where else None
    while len(items := (yield [SearchOp(wanted, fields, limit, refresh_ttl=False)])[0]) >= limit:
        limit *= 4
    return sorted((item for item in items if tuple(item.namespace) == wanted), key=lambda item: item.key)


async def list_namespaces(match: MatchCondition) -> list[tuple[str, ...]]:
    """List every namespace that matches."""
    found: list[tuple[str, ...]] = []
    while True:
        (page,) = await ask(ListNamespacesOp((match,), None, PAGE, len(found)))
        found.extend(map(tuple, page))
        if len(page) < PAGE:
            return found


@overload
def side_by_side(one: StoreEffects[T], two: StoreEffects[U], /) -> StoreEffects[tuple[T, U]]: ...
@overload
def side_by_side(
    one: StoreEffects[T], two: StoreEffects[U], three: StoreEffects[V], /
) -> StoreEffects[tuple[T, U, V]]: ...
@overload
def side_by_side(
    one: StoreEffects[Any],
    two: StoreEffects[Any],
    three: StoreEffects[Any],
    four: StoreEffects[Any],
    /,
    *others: StoreEffects[Any],
) -> StoreEffects[tuple[Any, ...]]: ...


@awaitable
def side_by_side(*parts: StoreEffects[Any]) -> Asking[tuple[Any, ...]]:
    """Carry out effects that do not wait for each other, and return their values: what they ask for goes in one batch.

    Reads of one batch see the store before its writes, so no part may need what another one writes.
    """
    values: list[Any] = [None] * len(parts)
    results: dict[int, Any] = dict.fromkeys(range(len(parts)))  # what each part is sent next: a coroutine begins so
    while results:
        asked: dict[int, Batch] = {}
        for at, found in results.items():
            try:
                asked[at] = parts[at].send(found)
            except StopIteration as stop:
                values[at] = stop.value
        answers = iter((yield [*chain.from_iterable(asked.values())]) if asked else ())
        results = {at: [*islice(answers, len(ops))] for at, ops in asked.items()}
    return tuple(values)


def with_vectors(batch: list[Op]) -> list[Op]:
    """Return the batch, and the deletion of the vectors of each text that goes.

    A journal entry that is written again has lost or gained messages, and its vectors are made anew. A fact that was
    edited keeps those of its old text, which is in its history, until they are made anew.
    """
    gone = [
        PutOp(*place, None)
        for op in batch
        if isinstance(op, PutOp) and (op.value is None or op.namespace[-1:] == ("journal",))
        if (place := vectors_of(op.namespace, op.key)) is not None
    ]
    return [*batch, *gone]


# Who carries it out.


def in_this_thread(work: Coroutine[Any, Any, T]) -> T:
    """Return the value of a coroutine that waits for nothing: it runs to its end at once, without an event loop."""
    try:
        work.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # typeshed has no type for it
    work.close()
    raise TypeError("a synchronous caller can wait for nothing")


async def _perform(
    effects: StoreEffects[T],
    batch: Batching,
    write: Callable[[Write], Awaitable[Any]],
    *,
    aside: Aside | None = None,
) -> T:
    """Carry out what a coroutine awaits, and return the coroutine's value.

    A failure is thrown into the coroutine, which decides what it means. Cancellation ends it without the coroutine
    being asked.

    Args:
        effects: The coroutine.
        batch: Carries out a batch. If it waits for nothing, as `write`, `in_this_thread` can do this.
        write: Carries out a transaction.
        aside: As for `arun`.
    """
    step: Callable[[], Any] = partial(effects.send, None)
    tries = _TRIES

    def taken() -> Any:
        try:
            return step()
        except StopIteration as stop:  # as a value: neither a future nor a coroutine can carry it as an exception
            return stop

    while True:
        effect = await aside(taken) if aside else taken()
        if isinstance(effect, StopIteration):
            return effect.value  # type: ignore[no-any-return]  # typeshed has no type for it
        try:
            done = await (write(effect) if isinstance(effect, Write) else batch(with_vectors(effect)))
        except Exception as error:  # whatever it is, the coroutine decides
            # LangGraph's InMemoryStore fails a search while another thread writes: a dict changes "during iteration".
            # It has written nothing of the batch by then.
            is_race = isinstance(error, RuntimeError) and str(error).endswith("during iteration")
            if tries and is_race and isinstance(effect, list):  # the effects of a transaction have ended with it
                step, tries = iter([effect]).__next__, tries - 1
            else:
                step, tries = partial(effects.throw, error), _TRIES
        else:
            step, tries = partial(effects.send, done[: len(effect)] if isinstance(effect, list) else done), _TRIES


def run(
    store: BaseStore,
    effects: StoreEffects[T],
    *,
    seconds: float | None = None,
    loop: asyncio.AbstractEventLoop | None = None,
) -> T:
    """Carry out what needs a store, and return the value. Blocks the caller.

    Args:
        store: Where. What lies between effects runs on this thread, also where the store works on an event loop.
        effects: What.
        seconds: One batch may take this long, then it goes on by itself, and the effects are told `TimeoutError`.
        loop: The event loop on which the store is asked; by default its own, or its synchronous interface is.

    Raises:
        MemoryBusy: If others write for longer than a transaction waits.
        asyncio.InvalidStateError: If the store works on the event loop that would be blocked.
        RuntimeError: If that loop has ended.
    """
    patience, loop = seconds or STORE_SECONDS, loop or loop_of(store)
    if loop:
        if loop is _running_loop() or loop.is_closed():
            effects.close()  # or Python would warn of what has not begun
            if loop.is_closed():
                raise RuntimeError("the event loop of the store has ended")
            raise asyncio.InvalidStateError(f"{ON_LOOP}: the store works on this loop")
        return _run_on(loop, lambda aside: arun(store, effects, patience, aside=aside))

    async def batch(ops: Batch) -> list[Any]:
        if seconds is None:
            return store.batch(ops)
        return in_daemon_thread(lambda: store.batch(ops), "palimpsest-store").result(seconds)

    async def write(asked: Write) -> Any:
        async with turns_of(asked.names, patience, blocks=True):
            return await _transacted(asked, batch)

    return in_this_thread(_perform(effects, batch, write))


def _run_on(loop: asyncio.AbstractEventLoop, work: Callable[[Aside], Coroutine[Any, Any, T]]) -> T:
    """Return what a coroutine does on another thread's event loop; this thread does what it is given aside."""
    given = SimpleQueue[Callable[[], None] | None]()

    def aside(call: Callable[[], Any]) -> Awaitable[Any]:
        future: Future[Any] = Future()
        given.put(partial(_carry_out, call, future))
        return asyncio.wrap_future(future)

    done = asyncio.run_coroutine_threadsafe(work(aside), loop)
    done.add_done_callback(lambda _: given.put(None))
    for each in iter(given.get, None):
        each()
    return done.result()


async def arun(
    store: BaseStore, effects: StoreEffects[T], seconds: float = STORE_SECONDS, *, aside: Aside | None = None
) -> T:
    """Do what `run` does, on the store's asynchronous interface.

    Args:
        store: Where.
        effects: What.
        seconds: One batch, or one transaction, may take this long, then the effects are told `TimeoutError`: whoever
            works in the background would wait for ever for a store that never answers.
        aside: Carries out what lies between effects, one step at a time, and leaves the loop to others: whoever reads
            a whole journal computes for seconds. By default the loop does.
    """
    loop = loop_of(store)
    if loop and loop.is_running() and loop is not _running_loop():
        return await on_thread(lambda: run(store, effects, seconds=seconds), "palimpsest-store")

    async def batch(ops: Batch) -> list[Any]:
        async with asyncio.timeout(seconds):
            return await _answer_of(store, ops)

    return await _perform(effects, batch, partial(_awrite, store, seconds=seconds, aside=aside), aside=aside)


def loop_of(store: BaseStore) -> asyncio.AbstractEventLoop | None:
    """Return the event loop on which a store works, which may have ended; `None` where it works on any thread."""
    loop = getattr(store, "loop", None)
    return loop if isinstance(loop, asyncio.AbstractEventLoop) else None


def _answer_of(store: BaseStore, ops: Sequence[Op]) -> Awaitable[list[Any]]:
    """Return a store's answer, to be awaited; a store that is not ours goes on with it when cancelled."""
    answer = store.abatch(ops)
    # A cancelled batch of LangGraph's SQLite store may leave its connection in a transaction, for good.
    return answer if hasattr(store, "writing") else asyncio.shield(answer)


async def _awrite(store: BaseStore, asked: Write, *, seconds: float, aside: Aside | None) -> Any:
    """Carry out a transaction and return its value. Cancelled while it commits, it goes on by itself to its end."""
    commits = False

    async def work() -> Any:
        async with asyncio.timeout(seconds), AsyncExitStack() as turns:
            if hasattr(store, "writing"):
                batch = await turns.enter_async_context(cast("Transactional", store).writing(*asked.names))
            else:
                await turns.enter_async_context(turns_of(asked.names, seconds))
                batch = partial(_answer_of, store)

            def carry_out(ops: Sequence[Op]) -> Awaitable[list[Any]]:
                nonlocal commits
                commits = PutOp in map(type, ops)  # these are the last batch
                return batch(ops)

            return await _transacted(asked, carry_out, aside=aside)

    task = asyncio.ensure_future(work())
    try:
        return await asyncio.shield(task)
    finally:
        if not commits:
            task.cancel()
        # Its error is taken, so that asyncio does not warn.
        task.add_done_callback(lambda task: task.cancelled() or task.exception())


async def arun_patiently(store: BaseStore, effects: Callable[[], StoreEffects[T]]) -> T:
    """Do what `arun` does with effects that may be repeated, again if the store fails: a hiccup must not cost a turn.

    Args:
        store: Where they are carried out.
        effects: Makes them anew for each try. After three failures the last one is raised.
    """
    for _ in range(2):
        with tolerated(logger, "a store call is tried again", level=logging.INFO):
            return await arun(store, effects())
    return await arun(store, effects())


async def _transacted(asked: Write, batch: Batching, *, aside: Aside | None = None) -> Any:
    """Carry out what a transaction asks for: its reads by batches as they come, and all its writes by the last one."""
    inside = _Inside(batch)

    def part(asked: Write) -> Coroutine[Any, Any, Any]:
        return _perform(asked.begin(), inside.carry_out, part, aside=aside)

    value = await part(asked)
    if inside.written:
        await batch([*inside.written.values()])
    return value


class _Inside:
    """What a transaction has read so far, and what it will have written: each read is done once, and sees the writes.

    Nobody else writes the user's rows meanwhile.
    """

    def __init__(self, batch: Batching) -> None:
        self._batch, self._read = batch, dict[str, Any]()
        self.written: dict[tuple[tuple[str, ...], str], PutOp] = {}

    async def carry_out(self, ops: Sequence[Op]) -> list[Any]:
        """Return what a batch finds; what it writes is kept."""
        reads = {repr(op): op for op in ops if not isinstance(op, PutOp)}
        asked = {name: op for name, op in reads.items() if name not in self._read}
        if asked:
            self._read.update(zip(asked, await self._batch([*asked.values()]), strict=True))
        results = [None if isinstance(op, PutOp) else self._found(op) for op in ops]
        self.written.update(((tuple(op.namespace), op.key), op) for op in ops if isinstance(op, PutOp))
        return results

    def _found(self, op: Op) -> Any:
        """Return what a read finds behind the writes."""
        found = self._read[repr(op)]
        if isinstance(op, GetOp):
            written = self.written.get((tuple(op.namespace), op.key))
            return _item_of(written) if written else found
        # A search that ended at its limit is made again with a higher one (`scan`).
        if not isinstance(op, SearchOp) or len(found) >= op.limit:
            return found
        prefix, fields = tuple(op.namespace_prefix), (op.filter or {}).items()
        new = [_item_of(each) for (place, _), each in self.written.items() if place[: len(prefix)] == prefix]
        return [
            *(item for item in found if (tuple(item.namespace), item.key) not in self.written),
            *(item for item in new if item and fields <= item.value.items()),
        ]


def _item_of(write: PutOp) -> Item | None:
    """Return the item that is there once it is written, as a store would."""
    if write.value is None:
        return None
    now = datetime.now(UTC)
    return Item(value=dict(write.value), key=write.key, namespace=write.namespace, created_at=now, updated_at=now)


def in_daemon_thread(call: Callable[[], T], name: str = "palimpsest-model") -> Future[T]:
    """Start the call on a daemon thread of its own, with no context variables of the caller, and return its future."""
    future: Future[T] = Future()
    threading.Thread(target=_carry_out, args=(call, future), name=name, daemon=True).start()
    return future


def _carry_out(call: Callable[[], T], future: Future[T]) -> None:
    """Make a call, unless nobody waits for it any more, and tell its future."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        value = call()
    except BaseException as error:  # whatever it is belongs to the one who waits, not to this thread
        future.set_exception(error)
    else:
        future.set_result(value)


async def on_thread(call: Callable[[], T], name: str = "palimpsest-model") -> T:
    """Return what a blocking call returns, without holding up the event loop; cancelled, it goes on to its end.

    It has a thread of its own: hanging stores may occupy the event loop's default thread pool.
    """
    return await asyncio.wrap_future(in_daemon_thread(call, name))


@contextmanager
def tolerated(
    logger: logging.Logger, consequence: str, *values: object, level: int = logging.WARNING
) -> Iterator[None]:
    """Let the work inside fail without its caller: log what that means and the sort of failure, and go on behind.

    Cancellation and a graph's interrupt are no failures and pass. The failure's own text is left out: it may quote
    what somebody said.

    Args:
        logger: The caller's.
        consequence: What a failure means, with a placeholder for each of `values`.
        values: Ids and counts; never text of a conversation.
        level: The level at which it is logged.
    """
    try:
        yield
    except GraphBubbleUp:
        raise
    except Exception as error:  # stores, providers and servers have exceptions of their own
        logger.log(level, "%s: %s", consequence % values, type(error).__name__)


# Whose turn it is to write.

ON_LOOP: Final = "a synchronous call would block the event loop: await its async twin"


class _Place(Future[None]):
    """A place in the line before a name: done once whoever has it has left, which goes on in a loop, or in none."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None, before: "_Place | None" = None) -> None:
        super().__init__()
        self.loop, self.before = loop, before
        self.set_running_or_notify_cancel()  # who gives up waiting for it on a loop would cancel it

    def end(self, _: object) -> None:
        """Let the next one have its turn."""
        self.set_result(None)

    def waits_for(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Say whether it is done only after something has gone on in this loop."""
        place: _Place | None = self
        while place and not place.done() and place.loop is not loop:
            place = place.before  # read once: whoever has its turn now clears it on another thread
        return place is not None and not place.done()


@cache
def _lines_of(pid: int) -> tuple[threading.Lock, WeakValueDictionary[str, _Place]]:  # noqa: ARG001 - a fork has none
    """Return the last place of each line of a process: a store may be opened often. Nobody's line is kept."""
    return threading.Lock(), WeakValueDictionary()


@asynccontextmanager
async def turns_of(names: Iterable[str], seconds: float, *, blocks: bool = False) -> AsyncIterator[None]:
    """Have the turn of each name, one after the other, across all threads and event loops of the process.

    First come, first served; `MemoryBusy` if a turn does not come in so many seconds.

    Args:
        names: The names.
        seconds: How many.
        blocks: Whether to wait in this thread, for a synchronous caller.
    """
    loop, nobody = _running_loop(), _Place()
    nobody.set_result(None)
    guard, last = _lines_of(os.getpid())
    with ExitStack() as places:
        for name in names:
            with guard:
                before = last.get(name, nobody)
                mine = last[name] = _Place(None if blocks else loop, before)
            # Whoever gives up has left once the one before has.
            places.callback(before.add_done_callback, mine.end)
            if blocks and loop and before.waits_for(loop):
                raise asyncio.InvalidStateError(f"{ON_LOOP}: what it waits for goes on there")
            try:
                if blocks:
                    before.result(seconds)
                elif not before.done():
                    async with asyncio.timeout(seconds):
                        await asyncio.wrap_future(before)
            except TimeoutError as error:
                raise MemoryBusy from error
            mine.before = None
        yield


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
