"""One run of the chat graph, what it reads from memory and writes to it, under deadlines: memory never fails a turn."""

import asyncio
import logging
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph_sdk import get_client

from graphs.identity import as_server, authenticated_user, owner_of_run
from graphs.models import fit_to_profile, profile, resolve
from graphs.service import MemoryService, Queued
from graphs.settings import Settings
from graphs.turn.context import Context
from graphs.turn.state import Warnings, WithoutMemory, why_without
from memory.effects import arun, arun_patiently, tolerated
from memory.facts.snapshot import MemorySnapshot, read_snapshot
from memory.namespaces import Owner
from memory.outbox.entry import EntryKind
from memory.outbox.transcript import ThreadView
from memory.text import check_encodable
from memory.turn import (
    MODE_KEY,
    Closing,
    MemoryMode,
    Opening,
    TurnEpochs,
    effective_mode,
    may_learn,
    may_read,
    mode_of_newest,
    open_turn,
)

logger = logging.getLogger(__name__)

_WITHOUT = "the turn goes on without memory"

STATELESS = "stateless"
"""The thread of runs that have none: without a checkpointer there is no thread id."""


@dataclass(frozen=True, slots=True)
class Run:
    """What the nodes need to know of the run they work in.

    Attributes:
        context: What was chosen for it, within what its model can bear.
        model: The name of its chat model: the deployment's, where the context names none.
        owner: Whose memory it may use; `None` without an identity, then the turn goes on without memory.
        store: Where memory is kept, if there is one.
        thread_id: The thread.
        user_id: Who the server says the user is; `None` where nobody logs in.
        on_server: Whether a server carries it out, and so has the last word on its mode.
        calls_tools: Whether the model may be told of tools.
    """

    context: Context
    model: str
    owner: Owner | None
    store: BaseStore | None
    thread_id: str
    user_id: str | None = None
    on_server: bool = False
    calls_tools: bool = True

    @property
    def thread(self) -> Hashable:
        """What names the thread among all of this process."""
        return id(self.store), self.user_id, self.owner, self.thread_id

    @classmethod
    def of(cls, config: RunnableConfig, runtime: Runtime[Context], settings: Settings) -> Self:
        """Return the run that a node was called in.

        Raises:
            ValueError: If its thread's id cannot be stored.
        """
        # In process there is no context unless the caller passes one; a server always makes it.
        context = runtime.context or Context()
        limits = profile(context.model, settings)
        configurable = config.get("configurable", {})
        thread_id = str(configurable.get("thread_id") or STATELESS)
        # Here, as every store and saver would refuse it later, each in its own words.
        check_encodable("thread_id", thread_id)
        return cls(
            model=resolve(context.model, settings),
            context=fit_to_profile(context, limits),
            owner=owner_of_run(configurable, context.agent_name, single_user=settings.single_user),
            store=runtime.store,
            thread_id=thread_id,
            user_id=authenticated_user(configurable.get("langgraph_auth_user_id")),
            on_server=runtime.server_info is not None,
            calls_tools=limits is None or limits.calls_tools,
        )


async def mode_of_run(config: RunnableConfig, chosen: MemoryMode, *, on_server: bool) -> MemoryMode:
    """Return the mode of the run in progress; that the user has paused learning is seen where memory is read.

    Args:
        config: The run's configuration.
        chosen: What the run's context says: the assistant's choice, or the run's own.
        on_server: Whether a server runs the graph (`runtime.server_info` is set); then its rows of the assistant
            and the thread are read. If they cannot be read, the mode is `incognito`: the turn goes on without memory.
    """
    said = (chosen, (config.get("metadata") or {}).get(MODE_KEY))
    if not on_server:
        return effective_mode(*said)
    with tolerated(logger, "the modes of assistant and thread cannot be read, incognito"):
        return effective_mode(*said, *await as_server(_declared_on_server(config.get("configurable") or {})))
    return "incognito"


async def _declared_on_server(configurable: Mapping[str, object]) -> Iterable[object]:
    """Read what the assistant's and the thread's rows declare."""
    client = get_client()
    assistant, threads = await asyncio.gather(
        client.assistants.get(str(configurable["assistant_id"])),
        client.threads.search(ids=[str(configurable["thread_id"])], select=["thread_id", "metadata"], limit=1),
    )
    chosen = assistant.get("context") or assistant["config"].get("configurable") or {}
    declared = [chosen.get(MODE_KEY), (assistant.get("metadata") or {}).get(MODE_KEY)]
    return declared + [(thread.get("metadata") or {}).get(MODE_KEY) for thread in threads]


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

    async def open(self, run: Run, before: float | None) -> Opening:
        """Read what memory may do in a turn, and what it begins with: once, in one batch.

        Args:
            run: The turn's run.
            before: When this thread's turn before read its memory, seconds since the epoch; `None` in a first turn.
        """
        if run.owner is None or run.store is None:
            return Opening(run.context.memory_mode)
        mode = await mode_of_run(get_config(), run.context.memory_mode, on_server=run.on_server)
        reading = partial(open_turn, run.owner, run.thread_id, mode, before)
        with tolerated(logger, _WITHOUT):
            async with asyncio.timeout(self._config.read_timeout_seconds):
                opening = await arun_patiently(run.store, reading)
            return opening if run.context.memory_tokens else replace(opening, snapshot=None, updates=())
        return Opening(None)

    async def shown(self, run: Run, mode: MemoryMode, fresh: MemorySnapshot | None) -> MemorySnapshot | None:
        """Return what a call of the model may be shown; `None` as in `Opening`.

        Args:
            run: The turn's run.
            mode: The mode in which the turn's question was said.
            fresh: What was read only just; without it, memory is read again.
        """
        # A client may send a question with a stricter mode than its run has.
        if run.owner is None or run.store is None or run.context.memory_tokens == 0 or not may_read(mode):
            return None
        if fresh is not None:
            return fresh
        with tolerated(logger, _WITHOUT):
            async with asyncio.timeout(self._config.read_timeout_seconds):
                return await arun(run.store, read_snapshot(run.owner))
        return None

    def why_without(self, run: Run, opening: Opening) -> WithoutMemory | None:
        """Return why the turn has no memory, and log each reason once."""
        reason = why_without(
            has_owner=run.owner is not None,
            has_store=run.store is not None,
            enabled=self._config.enabled,
            mode=opening.mode,
            is_read=opening.snapshot is not None or run.context.memory_tokens == 0,
        )
        if reason is not None and reason != "incognito":  # that one somebody chose
            self._warnings.say(reason)
        return reason

    async def close(
        self, run: Run, messages: Sequence[BaseMessage], epochs: TurnEpochs, view: ThreadView | None
    ) -> Queued | None:
        """Write the newest turn of a thread down; what goes wrong is logged and never fails the turn.

        Args:
            run: The turn's run.
            messages: The thread, or as much of its end as holds the turn and the exchange that it replies to.
            epochs: Under which epochs the turn began.
            view: What the thread holds; `None` if nobody knows.
        """
        if may_learn(mode_of_newest(messages)):
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
        owner, store = run.owner, run.store
        if owner is None or store is None:
            return None

        async def write() -> Queued | None:
            if not may_learn(await mode_of_run(get_config(), run.context.memory_mode, on_server=run.on_server)):
                return None
            closing = Closing(
                owner=owner,
                thread_id=run.thread_id,
                kind=kind,
                messages=messages,
                epochs=epochs,
                model=run.context.model,
                view=view,
                time_zone=run.context.time_zone,
            )
            return await self._service.aremember(store, closing, reader=run.user_id)

        task = asyncio.create_task(write())
        # The loop itself holds tasks weakly: past the deadline nobody else would hold this one.
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        async with asyncio.timeout(self._config.write_timeout_seconds):
            return await asyncio.shield(task)
