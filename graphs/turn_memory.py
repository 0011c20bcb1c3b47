"""What one turn reads from memory and writes to it, under deadlines: memory never fails a turn."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import TypeVar

from langchain_core.messages import BaseMessage
from langgraph.config import get_config

from graphs.fence import Epochs
from graphs.modes import MemoryMode, effective_mode, learnable, may_learn, may_read, mode_of_run, said_mode
from graphs.run import Run
from graphs.service import MemoryService, Queued
from graphs.without_memory import Warnings, WithoutMemory, why_without
from memory.control import CONTROL_KEY, EDIT_KEY, edit_in, epoch_in, read_learning
from memory.core.basis import Injected
from memory.core.known import Known
from memory.core.store import FactStore
from memory.message import iso_time
from memory.namespaces import Owner
from memory.storage import Steps, arun, arun_patiently, read_many
from memory.tolerance import tolerated
from memory.updates.entry import EntryKind
from memory.updates.records import read_receipts
from memory.updates.thread_epoch import read_thread_epoch
from memory.updates.thread_view import ThreadView

logger = logging.getLogger(__name__)

T = TypeVar("T")


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

    async def mode(self, run: Run) -> MemoryMode | None:
        """Return what memory may do now; `None` if that cannot be read, and so nothing may be done."""
        return await self._guarded("the turn goes on without memory", self._mode(run))

    async def known(self, run: Run, mode: MemoryMode | None) -> Known | None:
        """Read what is known about the user; `None` if nobody may be known, or the store does not answer."""
        if run.owner is None or run.store is None or run.context.memory_tokens == 0:
            return None
        if mode is None or not may_read(mode):
            return None
        store = FactStore.of_owner(run.store, run.owner, config=self._config)
        return await self._guarded("the turn goes on without memory", store.aknown())

    def why_without(self, run: Run, mode: MemoryMode | None, known: Known | None) -> WithoutMemory | None:
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

    async def epochs(self, run: Run, mode: MemoryMode | None) -> Epochs | None:
        """Read under which epochs a turn begins that may be learned; `None` if the store does not answer."""
        if run.owner is None or run.store is None or mode is None or not may_learn(mode):
            return None
        return await self._guarded("an erase may not be seen", arun(run.store, _epochs(run.owner, run.thread_id)))

    async def updates_since(self, run: Run, known: Known | None, previous: Injected | None) -> list[dict[str, object]]:
        """Read what updates did since this thread's turn before."""
        if run.owner is None or run.store is None or known is None or previous is None:
            return []
        steps = read_receipts(run.owner, known.epoch, iso_time(previous.at))
        return await self._guarded("receipts were not read", arun(run.store, steps)) or []

    async def remember(
        self, run: Run, messages: Sequence[BaseMessage], epochs: Epochs, view: ThreadView | None
    ) -> Queued | None:
        """Write the newest turn of these messages down; what goes wrong is logged and never fails the turn."""
        if may_learn(said_mode(messages)):
            with tolerated(logger, "the turn was not written down"):
                return await self.write_down(run, "turn", messages, epochs, view)
        return None

    async def write_down(
        self, run: Run, kind: EntryKind, messages: Sequence[BaseMessage], epochs: Epochs, view: ThreadView | None = None
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
        self, run: Run, kind: EntryKind, messages: Sequence[BaseMessage], epochs: Epochs, view: ThreadView | None
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

    async def _mode(self, run: Run) -> MemoryMode:
        """Read what memory may do now: what the run's mode says, and at most reading while learning is paused."""
        if run.owner is None or run.store is None:
            return run.context.memory_mode
        mode = await self._chosen_mode(run)
        learning = await arun_patiently(run.store, partial(read_learning, run.owner))
        return mode if learning else effective_mode(mode, "read_only")

    async def _chosen_mode(self, run: Run) -> MemoryMode:
        """Read what assistant, thread and run say; that the user has paused learning is seen where it is written."""
        return await mode_of_run(get_config(), run.context.memory_mode, on_server=run.on_server)

    async def _guarded(self, consequence: str, work: Awaitable[T]) -> T | None:
        """Wait for a read under the turn's deadline; what goes wrong is logged and never fails the turn."""
        with tolerated(logger, consequence):
            async with asyncio.timeout(self._config.read_timeout_seconds):
                return await work
        return None


def _epochs(owner: Owner, thread_id: str) -> Steps[Epochs]:
    control, edit = yield from read_many(owner.control, [CONTROL_KEY, EDIT_KEY])
    return Epochs(epoch_in(control), (yield from read_thread_epoch(thread_id)), edit_in(edit))
