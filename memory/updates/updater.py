"""The worker of one process for one store: it carries out updates and roll-ups, and blocks: for a thread."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langgraph.store.base import BaseStore

from memory.config import MemoryConfig
from memory.door import StoreEffects, in_daemon_thread, run
from memory.message import iso_time, messages_of
from memory.model_calls import SpanName, span
from memory.namespaces import Owner
from memory.updates import outbox
from memory.updates.budget import Job, Purpose
from memory.updates.conversation import ConversationContext, Message
from memory.updates.entry import Entry, EntryKind
from memory.updates.lease import worker_of
from memory.updates.rollup import roll_up
from memory.updates.transcript import ThreadView
from memory.updates.update import Drain

T = TypeVar("T")

_SPANS: dict[Purpose, SpanName] = {"extraction": "palimpsest.extraction", "rollup": "palimpsest.rollup"}


class ModelCalls:
    """The places for model calls of one process.

    Args:
        max_workers: How many calls are waited for at a time.
        max_abandoned: How many abandoned ones may run beside them.
        clock: Returns seconds; only differences matter.
        sleep: Waits so many seconds on a thread.
    """

    def __init__(
        self,
        max_workers: int = 4,
        max_abandoned: int = 4,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._waited_for = threading.BoundedSemaphore(max_workers)
        self._running = threading.BoundedSemaphore(max_workers + max_abandoned)
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        self._last_start = float("-inf")

    def run(self, call: Callable[[], T], timeout: float, spacing: float = 0.0) -> T:
        """Make the call when a place is free, so many seconds after the one before, and return its value.

        A thread cannot be ended: a call that takes too long is abandoned, and runs until it ends by itself.

        Raises:
            TimeoutError: If the call takes longer than `timeout` seconds after its start, or if abandoned calls hold
                all places for `timeout` seconds.
        """
        with self._waited_for:
            if not self._running.acquire(timeout=timeout):
                raise TimeoutError("every place is held by a model call that passed its deadline and still runs")
            with self._lock:
                now = self._clock()
                self._last_start = max(now, self._last_start + spacing)
                delay = self._last_start - now
            try:
                if delay > 0:
                    self._sleep(delay)
                future = in_daemon_thread(call)
            except BaseException:
                self._running.release()
                raise
            future.add_done_callback(lambda _: self._running.release())
            return future.result(timeout)


@dataclass(eq=False)
class MemoryUpdater:
    """The worker of one process for one store. All that it does blocks: it is for a thread, not for an event loop.

    Attributes:
        store: Where outbox, facts and journal are.
        load_model: Returns the chat model of a `provider:model` name; the empty name is the deployment's own.
        config: Limits and switches.
        clock: Returns seconds since the epoch.
        calls: The places for model calls of this process.
        loop: The event loop on which the store is asked; by default the store's synchronous interface is.
        counted: Is entered around each model call, with its purpose.
    """

    store: BaseStore
    load_model: Callable[[str], BaseChatModel]
    _: KW_ONLY
    config: MemoryConfig = MemoryConfig()  # noqa: RUF009 - a frozen value
    clock: Callable[[], float] = time.time
    calls: ModelCalls = field(default_factory=ModelCalls)
    loop: asyncio.AbstractEventLoop | None = None
    counted: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()

    def drain(self, owner: Owner, thread_id: str | None = None, *, quiet: float = 0.0, is_woken: bool = False) -> Drain:
        """Apply what is pending for an owner, or only for one thread, and return what that came to.

        Args:
            owner: Whose memory it is.
            thread_id: Only this conversation; `None` means all.
            quiet: So many seconds after the last thing that was said there, whichever process wrote that down.
            is_woken: Whether to read at once what waited for its model.
        """
        worker, config = worker_of(os.getpid()), self.config
        drain = Drain(owner, config, self.clock, self._run, self._use, worker, thread_id, quiet, is_woken)
        drain.run()
        return drain

    def process(self, context: ConversationContext) -> float | None:
        """Write down what a context holds, then apply it; in a program of one's own, the queue is given this.

        Returns:
            In how many seconds what is left of the conversation wants another try; `None` if nothing is left.
        """
        owner, thread_id = context.owner, context.thread_id
        parts: tuple[tuple[EntryKind, Sequence[Message]], ...] = (
            ("cut", context.carried_over),
            (context.kind, context.messages),
        )
        for kind, messages in parts if self.config.enabled else ():
            now = self.clock()
            if stored := messages_of(messages, iso_time(now)):
                due = now + self.config.max_wait_seconds
                draft = Entry(
                    kind=kind, owner=owner, thread_id=thread_id, epoch="", created=now, due=due, messages=stored
                )
                # A turn's are the thread as it is now; they do not tell what summaries took from it before.
                view = ThreadView({message.id for message in stored}, is_complete=False) if kind == "turn" else None
                self._run(outbox.record(draft, view, config=self.config))
        return self.wait_after(self.drain(owner, thread_id))

    def wait_after(self, drained: Drain) -> float | None:
        """Return in how many seconds what a drain left is worth another one; `None` if it left nothing."""
        return None if drained.due is None else max(drained.due - self.clock(), self.config.retry_base_seconds)

    def roll_up(self, owner: Owner) -> bool:
        """Fold what of an owner's journal is due into their history, and say whether something was."""
        return roll_up(Job(owner, self.config, self.clock, self._run, self._use))

    def _run(self, effects: StoreEffects[T]) -> T:
        return run(self.store, effects, seconds=self.config.store_timeout_seconds, loop=self.loop)

    def _use(self, name: str, purpose: Purpose, call: Callable[[BaseChatModel], Any]) -> Any:
        def use() -> Any:
            model = self.load_model(name)
            with span(_SPANS[purpose]), self.counted(purpose):
                return call(model)

        return self.calls.run(use, self.config.model_timeout_seconds, self.config.update_spacing_seconds)
