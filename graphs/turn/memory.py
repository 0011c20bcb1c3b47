"""One run of the chat graph, what it reads from memory and writes to it, under deadlines: memory never fails a turn."""

import asyncio
import logging
from collections.abc import Awaitable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self, TypeVar

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from graphs.identity import authenticated_user, owner_of_run
from graphs.models import fit_to_profile, profile
from graphs.service import MemoryService, Queued
from graphs.settings import Settings
from graphs.turn.context import Context
from graphs.turn.modes import MemoryMode, effective_mode, learnable, may_learn, may_read, mode_of_run, said_mode
from graphs.turn.state import Warnings, WithoutMemory, why_without
from memory.effects import arun, arun_patiently, tolerated
from memory.facts.snapshot import MemorySnapshot, read_snapshot
from memory.message import iso_time
from memory.namespaces import Owner
from memory.outbox.entry import EntryKind
from memory.outbox.transcript import ThreadView
from memory.text import check_encodable
from memory.turn import Opening, TurnEpochs, open_turn

STATELESS = "stateless"
"""The thread of runs that have none: without a checkpointer there is no thread id."""


@dataclass(frozen=True, slots=True)
class Run:
    """What the nodes need to know of the run they work in.

    Attributes:
        context: What was chosen for it, within what its model can bear.
        owner: Whose memory it may use; `None` without an identity, then the turn goes on without memory.
        store: Where memory is kept, if there is one.
        thread_id: The thread.
        user_id: Who the server says the user is; `None` where nobody logs in.
        on_server: Whether a server carries it out, and so has the last word on its mode.
    """

    context: Context
    owner: Owner | None
    store: BaseStore | None
    thread_id: str
    user_id: str | None = None
    on_server: bool = False

    @classmethod
    def of(cls, config: RunnableConfig, runtime: Runtime[Context], settings: Settings) -> Self:
        """Return the run that a node was called in.

        Raises:
            ValueError: If its thread's id cannot be stored.
        """
        # In process there is no context unless the caller passes one; a server always makes it.
        context = runtime.context or Context()
        configurable = config.get("configurable", {})
        thread_id = str(configurable.get("thread_id") or STATELESS)
        check_encodable("thread_id", thread_id)
        return cls(
            context=fit_to_profile(context, profile(context.model, settings)),
            owner=owner_of_run(configurable, context.agent_name, single_user=settings.single_user),
            store=runtime.store,
            thread_id=thread_id,
            user_id=authenticated_user(configurable.get("langgraph_auth_user_id")),
            on_server=runtime.server_info is not None,
        )


logger = logging.getLogger(__name__)

T = TypeVar("T")

_FRESH_SECONDS = 2.0
"""So long what a turn began with is shown without another look at the store; a summary may take longer."""
_KEPT_TURNS = 256
_NEVER = "9999"
"""Later than every receipt: a first turn is told of no updates."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What memory may do in a turn, and what the turn begins with.

    Attributes:
        mode: What memory may do; `None` if that cannot be read, and so nothing may be done.
        opening: What was read; `None` where nobody is known, nothing may be read, or the store does not answer.
    """

    mode: MemoryMode | None
    opening: Opening | None = None

    def known(self, context: Context) -> MemorySnapshot | None:
        """Return what may be shown to the model, `None` if nothing may."""
        return self.opening.known if self.opening and context.memory_tokens else None

    @property
    def epochs(self) -> TurnEpochs | None:
        """Under which epochs a turn begins that may be learned; `None` if it may not, or nobody knows."""
        return self.opening.epochs if self.opening and self.mode and may_learn(self.mode) else None


class TurnMemory:
    """The memory of whoever a run belongs to. A run without an owner or a store has none.

    Args:
        service: Writes turns down; its settings have the deadlines.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._config = service.settings.memory
        self._warnings = Warnings()
        self._writing: set[asyncio.Task[object]] = set()
        # What turns under way were shown, and when it was read by the event loop's clock, the oldest first.
        self._read: dict[Hashable, tuple[float, MemorySnapshot]] = {}

    async def open(self, run: Run, asked: str, before: float | None) -> "Opened":
        """Read what memory may do in a turn, and what it begins with: once, in one batch.

        Args:
            run: The turn's run.
            asked: Id of the message that the turn answers.
            before: When this thread's turn before read its memory, seconds since the epoch; `None` in a first turn.
        """
        if run.owner is None or run.store is None:
            return Opened(run.context.memory_mode)
        mode = await self._chosen_mode(run)
        if not may_read(mode):
            return Opened(mode)
        since = _NEVER if before is None else iso_time(before)
        steps = partial(open_turn, run.owner, run.thread_id, since)
        opening = await self._guarded("the turn goes on without memory", arun_patiently(run.store, steps))
        if opening is None:
            return Opened(None)
        self._keep(_turn(run, asked), opening.known)
        return Opened(mode if opening.is_learning else effective_mode(mode, "read_only"), opening)

    async def known(self, run: Run, asked: str, mode: MemoryMode) -> MemorySnapshot | None:
        """Return what is known about the user, for a call of the model; `None` as in `Opened`.

        The first call of a turn is shown what the turn began with. Later ones follow tools, which take their time:
        what was erased meanwhile must not be shown, so memory is read again.
        """
        if run.owner is None or run.store is None or run.context.memory_tokens == 0 or not may_read(mode):
            return None
        read_at, known = self._read.pop(_turn(run, asked), (float("-inf"), MemorySnapshot()))
        if asyncio.get_running_loop().time() - read_at <= _FRESH_SECONDS:
            return known
        return await self._guarded("the turn goes on without memory", arun(run.store, read_snapshot(run.owner)))

    def _keep(self, turn: Hashable, known: MemorySnapshot) -> None:
        self._read[turn] = (asyncio.get_running_loop().time(), known)
        if len(self._read) > _KEPT_TURNS:
            del self._read[next(iter(self._read))]

    def why_without(self, run: Run, mode: MemoryMode | None, known: MemorySnapshot | None) -> WithoutMemory | None:
        """Return why the turn has no memory, and log each reason once."""
        reason = why_without(
            has_owner=run.owner is not None,
            has_store=run.store is not None,
            enabled=self._config.enabled,
            mode=mode,
            is_read=known is not None or run.context.memory_tokens == 0,
        )
        if reason is not None and reason != "incognito":  # that one somebody chose
            self._warnings.say(reason)
        return reason

    async def remember(
        self, run: Run, messages: Sequence[BaseMessage], epochs: TurnEpochs, view: ThreadView | None
    ) -> Queued | None:
        """Write the newest turn of these messages down; what goes wrong is logged and never fails the turn."""
        if may_learn(said_mode(messages)):
            with tolerated(logger, "the turn was not written down"):
                return await self.write_down(run, "turn", messages, epochs, view)
        return None

    async def write_down(
        self,
        run: Run,
        kind: EntryKind,
        messages: Sequence[BaseMessage],
        epochs: TurnEpochs,
        view: ThreadView | None = None,
    ) -> Queued | None:
        """Write down what may be learned of these messages, unless memory may not learn now.

        A deadline must not take a write back half done: past it, the write goes on by itself.

        Raises:
            Exception: Whatever the store raises; `TimeoutError` if it takes too long.
        """
        task = asyncio.create_task(self._written(run, kind, messages, epochs, view))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        async with asyncio.timeout(self._config.write_timeout_seconds):
            return await asyncio.shield(task)

    async def _written(
        self, run: Run, kind: EntryKind, messages: Sequence[BaseMessage], epochs: TurnEpochs, view: ThreadView | None
    ) -> Queued | None:
        if run.owner is None or run.store is None or not may_learn(await self._chosen_mode(run)):
            return None
        return await self._service.aremember(
            run.store,
            run.owner,
            kind,
            learnable(messages),
            thread_id=run.thread_id,
            model=run.context.model,
            epoch=epochs.user,
            edit=epochs.edit,
            thread_epoch=epochs.thread,
            reader=run.user_id,
            view=view,
        )

    async def _chosen_mode(self, run: Run) -> MemoryMode:
        """Read what assistant, thread and run say; that the user has paused learning is seen where it is written."""
        return await mode_of_run(get_config(), run.context.memory_mode, on_server=run.on_server)

    async def _guarded(self, consequence: str, work: Awaitable[T]) -> T | None:
        """Wait for a read under the turn's deadline; what goes wrong is logged and never fails the turn."""
        with tolerated(logger, consequence):
            async with asyncio.timeout(self._config.read_timeout_seconds):
                return await work
        return None


def _turn(run: Run, asked: str) -> Hashable:
    return run.owner, run.thread_id, asked
