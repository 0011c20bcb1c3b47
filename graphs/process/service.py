"""One process's memory work: writes turns down, triggers updates, drains, sweeps, and stops in time."""

import asyncio
import functools
import logging
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar
from weakref import WeakSet

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from graphs.process.embedders import Embedder, embedder_of
from graphs.process.failures import ModelUnavailable
from graphs.process.metrics import count_drain, counted_call
from graphs.process.models import Purpose, ainvoke, in_background
from graphs.process.recalling import Recalling
from graphs.process.synchronous import ByStore
from graphs.settings import Settings
from graphs.turn.prepared import PreparedSummaries
from graphs.turn.stores import LeftTurns, StoreAway, Stores
from memory.door import arun, arun_patiently, in_daemon_thread, on_thread, run, tolerated
from memory.forget.retention import KINDS, clean
from memory.namespaces import Kind, Owner
from memory.turn import Closing, close_turn
from memory.updates import outbox
from memory.updates.budget import BudgetUsedUp, spend
from memory.updates.conversation import ConversationContext
from memory.updates.entry import Entry
from memory.updates.queue import MemoryUpdateQueue
from memory.updates.update import Drain
from memory.updates.updater import MemoryUpdater, ModelCalls

logger = logging.getLogger(__name__)

T = TypeVar("T")

_HOUR = 3_600.0
_DAY = 24 * _HOUR
_SIDE_BY_SIDE = 8
_UNKNOWN = "what was used of a budget is not known, and a summary is not counted"
_NOT_LOOKED = "could not look for pending updates"


class MemoryService:
    """What the graphs of one process share to keep memory up to date.

    Args:
        settings: The deployment's settings.
        load_model: Returns the chat model of a `provider:model` name for a purpose; the empty name is the
            deployment's own.
        clock: Returns seconds since the epoch.
        client: Returns a client of the server that this process is.
        embedder: What finds texts by their meaning; by default the one that the settings name, if any.
    """

    def __init__(
        self,
        settings: Settings,
        load_model: Callable[[str, Purpose], BaseChatModel],
        *,
        clock: Callable[[], float] = time.time,
        client: Callable[[], LangGraphClient] = get_client,
        embedder: Embedder | None = None,
    ) -> None:
        self.settings = settings
        self.embedder = embedder or embedder_of(settings)
        self._config = settings.memory
        self.load_model = load_model
        self.clock = clock
        self.client = client
        self.lent_model: BaseChatModel | None = None
        """What reads conversations where no model is configured: the one that answers in them."""
        self._born = clock()
        self._calls = ModelCalls()
        self.recalling = Recalling(self.embedder, self._config.recall_megabytes * 1_000_000)
        self.summaries = PreparedSummaries(self._config)
        self.stores = Stores(read=self._config.read_timeout_seconds, write=self._config.write_timeout_seconds)
        self._savers: WeakSet[BaseCheckpointSaver[str]] = WeakSet()
        self._done = ByStore[dict[str, float]](dict)
        # Conversations whose model could not be asked.
        self._waiting: dict[tuple[Owner, str], BaseStore] = {}
        self._queue = MemoryUpdateQueue(self._process, memory_config=self._config)
        self.left = LeftTurns(self._write_down, self._queue.add, self._config.drain_seconds)

    def bind(self, saver: BaseCheckpointSaver[str]) -> None:
        """Make known a saver that this process opened for its server."""
        self._savers.add(saver)

    def saver_of_server(self) -> BaseCheckpointSaver[str] | None:
        """Return the saver that was opened on the running event loop, or `None` if the server has another one."""
        here = asyncio.get_running_loop()
        return next((saver for saver in self._savers if getattr(saver, "loop", None) is here), None)

    def _memory_model(self, name: str) -> BaseChatModel:
        named = self.settings.memory_model or name
        try:
            return self.load_model(named, "memory")
        except ModelUnavailable:
            if self.lent_model is None or named or self.settings.model:
                raise
            return self.lent_model

    def summary_model(
        self, place: Callable[[], tuple[BaseStore, Owner] | None], load: Callable[[], BaseChatModel]
    ) -> RunnableLambda[LanguageModelInput, str]:
        """Return what is called like a model, for one summary; `BudgetUsedUp` if none may begin today.

        It answers with a text alone: a message that a runnable returns inside a node is streamed to the user.

        Args:
            place: Returns where memory is, and whose, to be asked from any thread; `None` knows no budget.
            load: Returns the model; it may block, and its lack fails only the summary.
        """
        limits, has_begun = self._config, False

        def count(of: tuple[BaseStore, Owner] | None) -> None:
            """Count the call. A begun summary is finished over the budget, as its portions alone are of no use."""
            nonlocal has_begun
            is_further, has_begun, until = has_begun, True, None
            if of and limits.budget_calls and not self.stores.is_away(of[0], "write"):
                with tolerated(logger, _UNKNOWN):
                    until = run(of[0], spend(of[1], limits, self.clock(), has_begun=is_further))
            if until is not None:
                raise BudgetUsedUp(until)

        def ask(prompt: LanguageModelInput, config: RunnableConfig) -> str:
            # Behind the turns, on a thread: a local model does so when nobody waits for it.
            count(place())
            model = in_background(load())
            with counted_call("summary"):
                return model.invoke(prompt, config).text

        async def aask(prompt: LanguageModelInput, config: RunnableConfig) -> str:
            counting = functools.partial(count, place())  # here, where the run says whose it is
            try:
                async with asyncio.timeout(limits.read_timeout_seconds):
                    await on_thread(counting, "palimpsest-budget")
            except TimeoutError:
                logger.warning("%s: the store takes its time", _UNKNOWN)
            async with asyncio.timeout(limits.model_timeout_seconds):
                model = await on_thread(load)
                with counted_call("summary"):
                    return (await ainvoke(model, prompt, config)).text

        return RunnableLambda(ask, aask)

    async def aremember(self, store: BaseStore, closing: Closing) -> Entry | None:
        """Write down what was said, then see to it that an update runs after the quiet time.

        Args:
            store: Where memory is kept.
            closing: What was said, by whom, and under which epochs the turn began.

        Returns:
            The pending update, or `None` if memory is off or paused, nothing was said, or all was erased meanwhile.

        Raises:
            Exception: Whatever the store raises; then nothing was written down.
        """
        if not self._config.enabled:
            return None
        writing = functools.partial(close_turn, closing, self.clock(), self._config)
        queued = await arun_patiently(store, writing)
        if queued:
            self.trigger(store, closing)
        return queued

    def trigger(self, store: BaseStore, closing: Closing) -> None:
        """Start the timer of an update's quiet time; if this process dies, the sweep of another takes the update.

        Once for each store, it looks for what an earlier process left behind.
        """

        def look() -> None:
            with tolerated(logger, _NOT_LOOKED):  # they wait for the next sweep
                for owner in run(store, outbox.owners_with("outbox")):
                    entries = run(store, outbox.read_entries(owner))
                    for thread_id in {entry.thread_id for entry in entries if entry.created < self._born}:
                        self._queue.add_nowait(ConversationContext.of(owner, thread_id, store))

        if "outbox" not in self._done[store]:
            with tolerated(logger, _NOT_LOOKED):  # the next turn tries again
                # A thread, as the turn that is under way waits for neither the store nor what is found there.
                in_daemon_thread(look, "palimpsest-start")
                self._done[store]["outbox"] = self.clock()
        self._queue.add(ConversationContext.of(closing.owner, closing.thread_id, store))

    def _write_down(self, store: BaseStore, closing: Closing) -> None:
        run(store, close_turn(closing, self.clock(), self._config))

    async def adrain(self, store: BaseStore, owner: Owner) -> Drain:
        """Apply what is pending for one owner."""
        drained = await self.work(store, lambda updater: updater.drain(owner))
        self._after(store, owner, drained)
        return drained

    def _after(self, store: BaseStore, owner: Owner, drained: Drain) -> None:
        """Count what a drain came to, bring up to date what is recalled from, and wake who waits for a model."""
        count_drain(drained)
        self._waiting |= {(owner, thread_id): store for thread_id in drained.waiting}
        if drained.receipts:
            self.recalling.updated(store, owner)
            # One, who has waited longest: when it succeeds, it wakes the next.
            woken = next(iter([*self._waiting]), None)
            if woken and (of := self._waiting.pop(woken, None)):
                self._queue.add_nowait(ConversationContext.of(*woken, of))

    async def arollup(self, store: BaseStore) -> None:
        """Fold days of the journal that are over into history, of all users, at most once an hour.

        Days end at every hour somewhere.
        """
        owners = await self._owners_in(store, "journal", period=_HOUR)
        await self._for_each(owners, lambda owner: self.work(store, lambda updater: updater.roll_up(owner)))

    async def aclean(self, store: BaseStore) -> None:
        """Once a day, move facts that are over into history, and delete what is kept no longer, of all users."""
        owners = await self._owners_in(store, *KINDS)
        await self._for_each(owners, lambda owner: arun(store, clean(owner, self._config, self.clock())))

    async def asweep(self, store: BaseStore) -> None:
        """Apply what is due though nobody's turn triggers it, of any user.

        The first sweep of a store in this process, and one a day, takes all that is pending, with a marker or not.
        """
        try:
            owners = await self._owners_in(store, "outbox")
            if owners is None:
                owners = await arun(store, outbox.due_owners(self.clock()), self._config.store_timeout_seconds)
        except TimeoutError:
            self.stores.doubt(store, "write")
            raise
        await self._for_each(owners, functools.partial(self.adrain, store))

    async def _for_each(self, owners: Iterable[Owner] | None, work: Callable[[Owner], Awaitable[object]]) -> None:
        """Do work for several owners side by side; one whose store or model fails waits for the next time."""
        places, users = asyncio.Semaphore(_SIDE_BY_SIDE), defaultdict[str, asyncio.Lock](asyncio.Lock)

        async def guarded(owner: Owner) -> None:
            async with users[owner.segment], places:  # a lease is of all agents
                with tolerated(logger, "memory work for %s failed", owner.due_key, level=logging.ERROR):
                    await work(owner)

        await asyncio.gather(*map(guarded, owners or ()))

    async def _owners_in(self, store: BaseStore, *kinds: Kind, period: float = _DAY) -> list[Owner] | None:
        """Read who has items of these kinds; `None` if that was asked within the period.

        Where the clock was set back since, nobody knows: it is done.
        """
        done = self._done[store]
        if 0 <= self.clock() - done.get(kinds[0], -math.inf) < period:
            return None
        found = await arun(store, outbox.owners_with(*kinds), self._config.store_timeout_seconds)
        done[kinds[0]] = self.clock()
        return found

    def wake(self, store: BaseStore, owner: Owner, thread_id: str) -> None:
        """Apply what waits of an owner's thread now, on a background thread."""
        self._queue.add_nowait(ConversationContext.of(owner, thread_id, store))

    def forget(self, erased: str) -> None:
        """Drop what this process holds in memory of an erased thread, by its id, or user, by the user's segment."""
        self.left.drop(erased)
        self.summaries.drop(erased)
        self.recalling.drop(erased)

    def flush(self, timeout: float | None = None) -> bool:
        """Learn what waits in this process without its quiet time, and wait for it; say whether all is done.

        Args:
            timeout: Wait at most so many seconds; `None` waits without end.
        """
        return self._queue.flush(timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Run what waits in this process, for at most `timeout` seconds (`drain_seconds` by default), then stop.

        Unwritten turns are written down first. Blocks: on an event loop, `await asyncio.to_thread(service.close)`.
        Updates that do not run in time stay in the outbox. A store that is away is waited for only if a turn is still
        unwritten.
        """
        seconds = self._config.drain_seconds if timeout is None else timeout
        end, is_away = time.monotonic() + seconds, self.stores.any_away()
        if not self.left.end(seconds) and is_away:
            end = time.monotonic()  # a store that was away while the event loop ended is asked no more
        done = self._queue.close(max(0.0, end - time.monotonic()))
        # Who closes a stock SQLite store under a thread that reads it has sqlite3 end the process.
        self.recalling.wait(min(end - time.monotonic(), self._config.read_timeout_seconds))
        logger.info("memory updates %s", "are done" if done else "are left for the next start")
        return done

    def _process(self, context: ConversationContext) -> float | None:
        """Write down what was left of a context's thread, drain its owner, and say when what is left of it is due."""
        if context.store is None:
            raise ValueError("store must be set in the context")
        if not context.at_once and self.stores.is_away(context.store, "write"):
            raise StoreAway("write")
        is_written = self.left.write(context.thread_id)
        updater = self._updater(context.store)
        quiet = 0.0 if context.at_once else self._config.debounce_seconds
        drained = updater.drain(context.owner, context.thread_id, quiet=quiet, is_woken=context.at_once)
        self._after(context.store, context.owner, drained)
        if not is_written:
            raise StoreAway("write")
        return updater.wait_after(drained)

    async def work(self, store: BaseStore, of: Callable[[MemoryUpdater], T]) -> T:
        """Return what work of the updater's returns: it blocks a thread, and asks the store on this event loop."""
        updater = self._updater(store, asyncio.get_running_loop())
        return await on_thread(lambda: of(updater))

    def _updater(self, store: BaseStore, loop: asyncio.AbstractEventLoop | None = None) -> MemoryUpdater:
        return MemoryUpdater(
            store,
            self._memory_model,
            config=self._config,
            clock=self.clock,
            calls=self._calls,
            loop=loop,
            counted=counted_call,
        )
