"""Effects: a decision is a generator that yields what it wants done, and handlers, sync or async, do it.

A plain list of operations is a batch for the store. Other effects are small classes: `Ask` here, the rest beside the
decisions that need them. So every decision is written once, and reads neither a clock nor a network.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeVar, overload

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langgraph.errors import GraphBubbleUp
from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, SearchOp

from memory.door import Batching, Transactional, Write, check_off_loop, collected, turn_of
from memory.namespaces import vectors_of

logger = logging.getLogger(__name__)

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
W = TypeVar("W")
X = TypeVar("X")

Batch = Sequence[Op]
"""Operations for the store in one go. It has to be a list, which handlers know it by; the type lets it hold any."""
StoreEffects = Generator[Batch, list[Any], T]
"""Yields batches for the store, is sent their results, and returns a value."""
Handlers = Mapping[type, Callable[[Any], Any]]
"""What carries out an effect, by the effect's class; it returns what the generator is sent."""
AsyncHandlers = Mapping[type, Callable[[Any], Awaitable[Any]]]

PAGE = 1000
STORE_SECONDS = 60.0
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Ask:
    """The effect of one model call; the model's answer is sent back.

    Attributes:
        model: Who is asked.
        prompt: What it is sent.
    """

    model: Runnable[Any, Any]
    prompt: Sequence[BaseMessage]


def perform(effects: Generator[Any, Any, T], handlers: Handlers) -> T:
    """Carry out what a generator yields, in this thread, and return the generator's value.

    A failure of a handler is thrown into the generator, which decides what it means.
    """
    effects = retrying_batches(effects)
    try:
        effect = next(effects)
        while True:
            try:
                result = handlers[type(effect)](effect)
            except Exception as error:  # whatever it is, the generator decides
                effect = effects.throw(error)
            else:
                effect = effects.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # typeshed has no type for it


async def aperform(effects: Generator[Any, Any, T], handlers: AsyncHandlers, *, aside: bool = False) -> T:
    """Do what `perform` does, on the event loop. Cancellation ends it without the generator being asked.

    Args:
        effects: As for `perform`.
        handlers: Their coroutines run on the loop.
        aside: Whether what lies between effects runs on threads, one step at a time, and leaves the loop to others:
            whoever reads a whole journal computes for seconds.
    """
    effects = retrying_batches(effects)
    step: Callable[[], Any] = partial(next, effects)
    while True:
        taking = partial(_taken, step)
        effect = await asyncio.wrap_future(in_daemon_thread(taking, "palimpsest-effects")) if aside else taking()
        if isinstance(effect, StopIteration):
            return effect.value  # type: ignore[no-any-return]  # typeshed has no type for it
        try:
            step = partial(effects.send, await handlers[type(effect)](effect))
        except Exception as error:  # whatever it is, the generator decides
            step = partial(effects.throw, error)


def _taken(step: Callable[[], Any]) -> Any:
    """Return the next effect, or the end: no future can carry it as an exception."""
    try:
        return step()
    except StopIteration as stop:
        return stop


def run(
    store: BaseStore, effects: Generator[Any, Any, T], others: Handlers | None = None, *, seconds: float | None = None
) -> T:
    """Carry out what needs a store, on its synchronous interface, and perhaps other handlers; return the value.

    Blocks the caller, also while the store works on an event loop.

    Args:
        store: Where.
        effects: What.
        others: Carry out what else is yielded.
        seconds: One batch may take this long, then it goes on by itself, and the effects are told `TimeoutError`.

    Raises:
        MemoryBusy: If others write for longer than a transaction waits.
        asyncio.InvalidStateError: If the store works on the event loop that a transaction would block.
    """

    def batch(ops: Batch) -> list[Any]:
        return in_daemon_thread(lambda: store.batch(ops), "palimpsest-store").result(seconds)

    carry_out = store.batch if seconds is None else batch

    def write(asked: Write) -> Any:
        patience, loop = seconds or STORE_SECONDS, getattr(store, "loop", None)
        if isinstance(loop, asyncio.AbstractEventLoop):
            check_off_loop(loop)
            return asyncio.run_coroutine_threadsafe(_awrite(store, asked, patience), loop).result()
        with ExitStack() as turns:
            for name in asked.names:
                turns.enter_context(turn_of(name).held(patience))
            return perform(collected(asked.effects), {list: carry_out})

    return perform(effects, {list: carry_out, Write: write, **(others or {})})


async def arun(
    store: BaseStore,
    effects: Generator[Any, Any, T],
    seconds: float = STORE_SECONDS,
    *,
    others: AsyncHandlers | None = None,
    aside: bool = False,
) -> T:
    """Do what `run` does, on the store's asynchronous interface.

    Args:
        store: Where.
        effects: What.
        seconds: One batch, or one transaction, may take this long, then it is cancelled, and the effects are told
            `TimeoutError`: whoever works in the background would wait for ever for a store that never answers.
        others: Carry out what else is yielded.
        aside: As for `aperform`.
    """

    async def batch(ops: Batch) -> list[Any]:
        async with asyncio.timeout(seconds):
            return await store.abatch(ops)

    handlers: AsyncHandlers = {
        list: batch,
        Write: lambda asked: _awrite(store, asked, seconds, aside=aside),
        **(others or {}),
    }
    return await aperform(effects, handlers, aside=aside)


async def _awrite(store: BaseStore, asked: Write, seconds: float, *, aside: bool = False) -> Any:
    """Carry out a transaction and return its value. Cancelled while it commits, it goes on by itself to its end."""
    commits = False

    async def work() -> Any:
        async with asyncio.timeout(seconds), _begun(store, asked.names, seconds) as batch:

            async def carry_out(ops: Sequence[Op]) -> list[Any]:
                nonlocal commits
                commits = PutOp in map(type, ops)  # these are the last batch
                return await batch(ops)

            return await aperform(collected(asked.effects), {list: carry_out}, aside=aside)

    task = asyncio.ensure_future(work())
    try:
        return await asyncio.shield(task)
    finally:
        if not commits:
            task.cancel()
        # Nobody is told any more what becomes of it.
        task.add_done_callback(lambda task: task.cancelled() or task.exception())


@asynccontextmanager
async def _begun(store: BaseStore, names: Sequence[str], seconds: float) -> AsyncIterator[Batching]:
    async with AsyncExitStack() as turns:
        if isinstance(store, Transactional):
            yield await turns.enter_async_context(store.writing(*names))
        else:
            for name in names:
                await turns.enter_async_context(turn_of(name).aheld(seconds))
            # A cancelled batch of LangGraph's SQLite store may leave its connection in a transaction, for good.
            yield lambda ops: asyncio.shield(asyncio.ensure_future(store.abatch(ops)))


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


def retrying_batches(effects: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
    """Return the same effects, with a batch again whose search another thread has disturbed."""
    try:
        effect, tries = next(effects), _TRIES
        while True:
            try:
                done = (yield with_vectors(effect))[: len(effect)] if isinstance(effect, list) else (yield effect)
            except Exception as error:  # whatever it is, the generator decides
                # LangGraph's InMemoryStore fails a search while another thread writes: a dict changes "during
                # iteration". It has written nothing of the batch by then.
                if tries and isinstance(error, RuntimeError) and str(error).endswith("during iteration"):
                    tries -= 1
                else:
                    effect, tries = effects.throw(error), _TRIES
            else:
                effect, tries = effects.send(done), _TRIES
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # typeshed has no type for it


def with_vectors(batch: list[Op]) -> list[Op]:
    """Return a batch in which the vectors of a text go with it, whoever deletes it: they tell of what it said.

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


def in_daemon_thread(call: Callable[[], T], name: str = "palimpsest-model") -> Future[T]:
    """Start the call on a daemon thread of its own, with no context variables of the caller, and return its future."""
    future: Future[T] = Future()

    def work() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            value = call()
        except BaseException as error:  # whatever it is belongs to the one who waits, not to this thread
            future.set_exception(error)
        else:
            future.set_result(value)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future


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


def put(namespace: Sequence[str], key: str, value: Mapping[str, object]) -> PutOp:
    """Return the operation that writes one item. It is never indexed: recall keeps its own index."""
    return PutOp(tuple(namespace), key, dict(value), index=False)


def delete(namespace: Sequence[str], key: str) -> PutOp:
    """Return the operation that deletes one item; deleting what is not there is no error."""
    return PutOp(tuple(namespace), key, None)


def read(namespace: Sequence[str], key: str) -> StoreEffects[Item | None]:
    """Read one item, or `None`."""
    (item,) = yield [GetOp(tuple(namespace), key, refresh_ttl=False)]
    return item  # type: ignore[no-any-return]


def read_many(namespace: Sequence[str], keys: Sequence[str]) -> StoreEffects[list[Item | None]]:
    """Read several items of one namespace in one batch, in the order of their keys."""
    if not keys:
        return []
    return (yield [GetOp(tuple(namespace), key, refresh_ttl=False) for key in keys])


def scan(
    namespace: Sequence[str], page: int = PAGE, *, where: Mapping[str, str] | None = None
) -> StoreEffects[list[Item]]:
    """Read every item of exactly this namespace, sorted by key.

    A store's search stops at 10 items, also returns what lies below the namespace, and orders as it likes: by the
    time of the last write, so that with pages an item could hide between two of them, when it is written again
    meanwhile or was written in one batch with others. One search that is large enough sees all at one moment.

    Args:
        namespace: What is read.
        page: How many items the first search asks for; while there are more, the next asks for four times as many.
        where: What fields of the values have to be; by default anything.
    """
    wanted = tuple(namespace)
    limit = page
    fields = dict(where) if where else None
    while len(items := (yield [SearchOp(wanted, fields, limit, refresh_ttl=False)])[0]) >= limit:
        limit *= 4
    return sorted((item for item in items if tuple(item.namespace) == wanted), key=lambda item: item.key)


@overload
def side_by_side(one: StoreEffects[T], two: StoreEffects[U], /) -> StoreEffects[tuple[T, U]]: ...
@overload
def side_by_side(
    one: StoreEffects[T], two: StoreEffects[U], three: StoreEffects[V], /
) -> StoreEffects[tuple[T, U, V]]: ...
@overload
def side_by_side(
    one: StoreEffects[T], two: StoreEffects[U], three: StoreEffects[V], four: StoreEffects[W], /
) -> StoreEffects[tuple[T, U, V, W]]: ...


@overload
def side_by_side(
    one: StoreEffects[T], two: StoreEffects[U], three: StoreEffects[V], four: StoreEffects[W], five: StoreEffects[X], /
) -> StoreEffects[tuple[T, U, V, W, X]]: ...


def side_by_side(*parts: StoreEffects[Any]) -> StoreEffects[tuple[Any, ...]]:
    """Carry out effects that do not wait for each other, and return their values: what they ask for goes in one batch.

    Reads of one batch see the store before its writes, so no part may need what another one writes.
    """
    values: list[Any] = [None] * len(parts)
    asked: dict[int, Batch] = {}

    def resume(at: int, results: list[Any] | None) -> None:
        try:
            asked[at] = parts[at].send(results)  # type: ignore[arg-type]  # a generator begins with None
        except StopIteration as stop:
            asked.pop(at, None)
            values[at] = stop.value

    for at in range(len(parts)):
        resume(at, None)
    while asked:
        batch = list(asked.items())
        results = iter((yield [operation for _, operations in batch for operation in operations]))
        for at, operations in batch:
            resume(at, list(islice(results, len(operations))))
    return tuple(values)
