"""The worker of one process for one store: it carries out updates and roll-ups on a thread or on an event loop."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langgraph.store.base import BaseStore

from memory.config import MemoryConfig
from memory.door import Handlers, arun, run
from memory.message import iso_time, messages_of
from memory.namespaces import Owner
from memory.tracing import SpanName, span
from memory.updates import outbox
from memory.updates.conversation import ConversationContext, Message
from memory.updates.effects import ModelCall, ModelCalls, Terms, WorkerEffects
from memory.updates.entry import Entry, EntryKind
from memory.updates.lease import Worker
from memory.updates.rollup import roll_up
from memory.updates.transcript import ThreadView
from memory.updates.update import Drained, drain

T = TypeVar("T")


class MemoryUpdater:
    """The worker of one process for one store.

    Args:
        store: Where outbox, facts and journal are.
        load_model: Returns the chat model of a `provider:model` name; the empty name is the deployment's own.
        config: Limits and switches.
        clock: Returns seconds since the epoch.
        calls: The places for model calls of this process.
        worker: This process, as leases name it; workers of one process share it.
        counted: Is entered around each model call, with its purpose.
    """

    def __init__(
        self,
        store: BaseStore,
        load_model: Callable[[str], BaseChatModel],
        *,
        config: MemoryConfig = MemoryConfig(),  # noqa: B008 - a frozen value
        clock: Callable[[], float] = time.time,
        calls: ModelCalls | None = None,
        worker: Worker | None = None,
        counted: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        self._store = store
        self._load_model = load_model
        self._config = config
        self._clock = clock
        self._calls = calls or ModelCalls()
        self._worker = worker or Worker()
        self._counted = counted

    def drain(
        self, owner: Owner, thread_id: str | None = None, *, quiet: float = 0.0, is_woken: bool = False
    ) -> Drained:
        """Apply what is pending for an owner, or only for one thread. Blocks: for a thread, not for an event loop.

        Args:
            owner: Whose memory it is.
            thread_id: Only this conversation; `None` means all.
            quiet: So many seconds after the last thing that was said there, whichever process wrote that down.
            is_woken: Whether to read at once what waited for its model.
        """
        with self._terms() as terms:
            return self._run(drain(owner, terms, thread_id, quiet, is_woken=is_woken))

    def process(self, context: ConversationContext) -> float | None:
        """Write down what a context holds, then apply it; in a program of one's own, the queue is given this.

        Returns:
            In how many seconds what is left of the conversation wants another try; `None` if nothing is left.
        """
        owner = context.owner
        self._record(owner, context.thread_id, "cut", context.carried_over)
        self._record(owner, context.thread_id, context.kind, context.messages)
        return self.wait_after(self.drain(owner, context.thread_id))

    def wait_after(self, drained: Drained) -> float | None:
        """Return in how many seconds what a drain left is worth another one; `None` if it left nothing."""
        return None if drained.due is None else max(drained.due - self._clock(), self._config.retry_base_seconds)

    def _record(self, owner: Owner, thread_id: str, kind: EntryKind, messages: Sequence[Message]) -> None:
        now = self._clock()
        stored = messages_of(messages, iso_time(now))
        if stored and self._config.enabled:
            due = now + self._config.max_wait_seconds
            draft = Entry(kind=kind, owner=owner, thread_id=thread_id, epoch="", created=now, due=due, messages=stored)
            # A turn's are the thread as it is now; they do not tell what summaries took from it before.
            view = ThreadView({message.id for message in stored}, is_complete=False) if kind == "turn" else None
            self._run(outbox.record(draft, view))

    async def adrain(self, owner: Owner, thread_id: str | None = None) -> Drained:
        """Apply what is pending for an owner, or only for one thread."""
        with self._terms() as terms:
            return await self._arun(drain(owner, terms, thread_id))

    async def aroll_up(self, owner: Owner) -> bool:
        """Fold what of an owner's journal is due into their history, and say whether something was."""
        with self._terms() as terms:
            return await self._arun(roll_up(owner, terms))

    @contextmanager
    def _terms(self) -> Iterator[Terms]:
        """Yield what a piece of work is told; while it goes on, its lease is nobody else's of this process."""
        terms = Terms(self._config, self._worker, uuid4().hex, self._clock)
        self._worker.under_way.add(terms.token)
        try:
            yield terms
        finally:
            self._worker.under_way.discard(terms.token)

    def _run(self, effects: WorkerEffects[T]) -> T:
        asking: Handlers = {ModelCall: lambda effect: self._calls.run(*self._call(effect))}
        return run(self._store, effects, asking, seconds=self._config.store_timeout_seconds)

    async def _arun(self, effects: WorkerEffects[T]) -> T:
        asking: Handlers = {ModelCall: lambda effect: self._calls.arun(*self._call(effect))}
        seconds = self._config.store_timeout_seconds
        return await arun(self._store, effects, seconds, others=asking, aside=True)

    def _call(self, effect: ModelCall) -> tuple[Callable[[], Any], float, float]:
        def call() -> Any:
            name: SpanName = "palimpsest.rollup" if effect.purpose == "rollup" else "palimpsest.extraction"
            model = self._load_model(effect.model)
            with span(name), self._counted(effect.purpose):
                return effect.use(model)

        return call, self._config.model_timeout_seconds, self._config.update_spacing_seconds
