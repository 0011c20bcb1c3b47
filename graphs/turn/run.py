"""What a node is called in: the run, whose it is, what was chosen for it; and its thread as the state has it."""

import asyncio
import functools
import logging
import math
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import takewhile
from typing import Any, Self, TypeVar, cast

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph_sdk import get_client

from graphs.process.identity import as_server, known_as, owner_of_run, vouched_in
from graphs.process.models import ModelProfile, fit_to_profile, profile
from graphs.process.synchronous import asked_here, is_awaited, unwrapped
from graphs.settings import Settings
from graphs.turn.context import Context, context_of
from graphs.turn.state import MEMORY_KEY, MemoryState, Receipt, State
from memory.context.running_summary import LEFT_OUT, DividedMessages, LeftOut, divide, rehydrate, state_of
from memory.control import INITIAL_EDIT
from memory.door import on_thread, tolerated
from memory.injection.injected import Injected
from memory.message import StoredMessage, to_stored
from memory.namespaces import Owner
from memory.text import check_encodable
from memory.turn import MODE_KEY, MemoryMode, TurnEpochs, effective_mode, learnable
from memory.updates.unwritten import Unwritten, unwritten_of

logger = logging.getLogger(__name__)

T = TypeVar("T")

_STEPS = 12
"""So many checkpoints are looked at: a thread hardly has more before the first turn that memory begins."""
TOOL_NODE = "tools"
STATELESS = "stateless"
"""The thread of runs that have none: without a checkpointer there is no thread id."""


class Run:
    """What nodes and middleware need to know of the run they work in.

    Attributes:
        place: Where memory is, and whose; `None` for a run that has none.
        thread_id: The thread.
        thread: What names the thread among all of this process.
        is_below: Whether another graph runs it: then an agent may speak in a person's place, under its name.
        known_as: What the server calls the user; empty where it does not.
        has_saver: Whether a checkpointer keeps its thread: without one, its state holds what this one call was given.

    Args:
        config: The node's own, in which LangGraph names thread and checkpointer, and where below other graphs it is.
        context: What was chosen for it, within what its model can bear.
        owner: Whose memory it may use; `None` without an identity, then the turn goes on without memory.
        store: Where memory is kept, if there is one.
        limits: What its model can bear, where that is less than usual.
        on_server: Whether a server carries it out, and so has the last word on its mode.

    Raises:
        ValueError: If its thread's id cannot be stored.
    """

    def __init__(
        self,
        config: RunnableConfig,
        context: Context,
        owner: Owner | None,
        store: BaseStore | None,
        *,
        limits: ModelProfile | None = None,
        on_server: bool = False,
    ) -> None:
        self.config, self.context, self.owner, self.store = config, context, owner, store
        self.limits, self.on_server = limits, on_server
        self._configurable: Mapping[str, Any] = config.get("configurable", {})
        self.place = (store, owner) if store is not None and owner is not None else None
        self.thread_id = str(self._configurable.get("thread_id") or STATELESS)
        # Checked here: each store and saver would refuse it later, in words of its own.
        check_encodable("thread_id", self.thread_id)
        user = vouched_in(self._configurable)
        self.thread: Hashable = (id(unwrapped(store)) if store is not None else 0, user, owner, self.thread_id)
        self.known_as = known_as(self._configurable) or user or ""
        self._graph, _, _ = str(self._configurable.get("checkpoint_ns") or "").rpartition("|")
        self.is_below = bool(self._graph)
        self.has_saver = bool(self._configurable.get(CONFIG_KEY_CHECKPOINTER))

    @classmethod
    def of(cls, config: RunnableConfig, runtime: Runtime[Any] | ToolRuntime[Any, Any], settings: Settings) -> Self:
        """Return the run that a node of the chat graph, or one of its tools, was called in."""
        context = context_of(runtime.context)
        limits = profile(context.model, settings)
        owner = owner_of_run(config.get("configurable", {}), context.agent_name, single_user=settings.single_user)
        store, on_server = asked_here(runtime.store), runtime.server_info is not None
        return cls(config, fit_to_profile(context, limits), owner, store, limits=limits, on_server=on_server)

    async def mode(self, seconds: float | None = None) -> MemoryMode:
        """Return what memory may do: the strictest that is declared, by whomever.

        Below another agent's tool nothing is learned: what stands there in a person's place was written by a model. On
        a server its rows of the assistant and the thread are read. If they cannot be, the turn goes on without memory.
        That the user has paused learning is seen where memory is read.

        Args:
            seconds: How long the server may take.

        Raises:
            TimeoutError: If it takes longer.
        """
        metadata = self.config.get("metadata") or {}
        declared = [self.context.memory_mode, metadata.get(MODE_KEY)]
        # Where a tool names a thread of its own, metadata alone say what is above; in a tool they name the tool itself.
        handed = str(metadata.get("checkpoint_ns") or "").removeprefix(self._configurable.get("checkpoint_ns") or "")
        # As deepagents calls its subagents. Compiled with `checkpointer=True`, a graph has the names of nodes alone.
        is_called = any(part.partition(":")[0] == TOOL_NODE for part in f"{self._graph}|{handed}".split("|"))
        if is_called or self._configurable.get("ls_agent_type") == "subagent":
            declared.append("read_only")
        if not self.on_server:
            return effective_mode(*declared)
        async with asyncio.timeout(seconds):
            with tolerated(logger, "the modes of assistant and thread cannot be read, incognito"):
                return effective_mode(*declared, *await as_server(self._declared_on_server()))
            return "incognito"

    async def alone_until(self, now: float) -> float:
        """Return, at the first turn of a branch, until when it is the thread's only one: as others say, or `now`."""
        if self.has_saver and not self.is_below:
            saver = self._configurable[CONFIG_KEY_CHECKPOINTER]
            with tolerated(logger, "whether a thread has other branches is not known: what they taught stays"):
                saved = await read_saved(saver.list, saver.alist, _STEPS)
                states = [one.checkpoint["channel_values"] for one in saved]
                # What memory keeps in a state, that of the chat graph or of an agent's instances.
                every = [[one.get("memory"), *state_of(one.get(MEMORY_KEY)).values()] for one in states]
                kept = [one for each in every for one in map(state_of, each) if "first" in one]
                return min((TurnEpochs.from_state(one).alone_until for one in kept), default=now)
        return now

    async def _declared_on_server(self) -> list[object]:
        """Read what the assistant's and the thread's rows declare."""
        client, thread_id = get_client(), str(self._configurable["thread_id"])
        assistant, threads = await asyncio.gather(
            client.assistants.get(str(self._configurable["assistant_id"])),
            client.threads.search(ids=[thread_id], select=["thread_id", "metadata"], limit=1),
        )
        chosen = assistant.get("context") or assistant["config"].get("configurable") or {}
        said = [chosen, *(each.get("metadata") or {} for each in (assistant, *threads))]
        # A deleted thread has no row: a run that a server does not stop goes on, and nobody is to hear of it. Nor has a
        # thread in which a node calls a graph.
        is_own = str((self.config.get("metadata") or {}).get("thread_id", thread_id)) != thread_id
        return [*(each.get(MODE_KEY) for each in said), None if threads or is_own else "incognito"]


async def read_saved(read: Callable[..., Iterable[T]], aread: Callable[..., AsyncIterator[T]], limit: int) -> list[T]:
    """Return what is saved of the thread of the run in progress, newest first."""
    thread: Any = {"configurable": {"thread_id": get_config()["configurable"]["thread_id"], "checkpoint_ns": ""}}
    if is_awaited():
        return [saved async for saved in aread(thread, limit=limit)]
    return await on_thread(lambda: [*read(thread, limit=limit)], "palimpsest-saver")


def is_kept(config: RunnableConfig) -> bool:
    """Say whether the state that a node leaves is there in the thread's next turn.

    LangGraph keeps the state of a graph below another one under the ids of the tasks above, which are new each turn;
    compiled with `checkpointer=True`, under the names of the nodes alone.
    """
    configurable = config.get("configurable", {})
    above, _, _ = str(configurable.get("checkpoint_ns", "")).rpartition("|")
    return bool(configurable.get(CONFIG_KEY_CHECKPOINTER)) and ":" not in above


@functools.cache
def warn_summary_lost() -> None:
    """Say what to change, once in a process."""
    logger.warning(
        "the chat graph runs below another graph and begins each turn anew: its summary is lost, so that nearly every "
        "turn of a long thread summarizes again; compile it with build_graph().compile(checkpointer=True)"
    )


class Thread:
    """What a state says of its thread, whatever a client has put there.

    Attributes:
        asked: Id of the newest user message; empty if there is none.
        memory: What memory put before the model; empty in a first turn, or where a client wrote something else.
        receipt: What memory did in the latest turn; empty where `memory` is.
        began: When the latest turn began, seconds since the epoch; infinite where nobody knows.
        injected: Which memory the prompt shows; `None` in a first turn.
        epochs: The epochs under which the turn began.
        unwritten: The turns that ended before they were written down, oldest first.
        context: What the context tier keeps: the running summary, and what it is to know of it.
        running: The running summary, in whatever form the state holds it.

    Args:
        state: What a node was called with.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.messages: list[AnyMessage] = state["messages"]
        self.asked = next((str(one.id) for one in reversed(self.messages) if isinstance(one, HumanMessage)), "")
        self.memory = cast("MemoryState", state_of(state.get("memory")))
        self.receipt = cast("Receipt", state_of(self.memory.get("receipt")))
        began: object = self.memory.get("began")
        self.began = began if isinstance(began, int | float) else math.inf
        self.injected = Injected.from_state(self.memory)
        self.epochs = TurnEpochs.from_state(self.memory)
        self.unwritten = unwritten_of(self.memory.get("unwritten"))
        self.context = state_of(state.get("context"))
        self.running = rehydrate(self.context.get("running_summary"))

    @cached_property
    def divided(self) -> DividedMessages:
        """The messages, parted by what the summary says of them: `live` are those that it does not stand for."""
        return divide(self.messages, self.running)

    @cached_property
    def shown(self) -> tuple[BaseMessage, ...]:
        """The live messages without those that `summarize` left out; never without the question."""
        left_out = LeftOut.from_state(self.context.get(LEFT_OUT)).among(self.divided.live) - {self.asked}
        return tuple(message for message in self.divided.live if message.id not in left_out)

    def words(self, ids: Collection[str], time: str) -> tuple[StoredMessage, ...]:
        """Return those of its messages that may be learned: said before whatever a person changed by hand."""
        if not ids:
            return ()
        said = learnable(self.epochs.not_erased(self.messages, self.messages))
        stored = to_stored(said, time, self.epochs.speaker)
        return tuple(replace(one, edit=INITIAL_EDIT) for one in stored if one.id in ids)

    def named_unwritten(self, run: Run, asked: str, at: float, *, is_read: bool = True) -> tuple[Unwritten, ...]:
        """Return what names a turn that is not written down; nothing if it has no owner or question."""
        if run.owner is None or not asked:
            return ()
        epochs, context = self.epochs._replace(learn_from=""), run.context
        turn = Unwritten(
            asked=asked, at=at, owner=run.owner.due_key, epochs=epochs, is_read=is_read,
            model=context.model, time_zone=context.time_zone,
        )  # fmt: skip
        return (turn,)

    def broken_off(self, run: Run, now: float) -> tuple[Unwritten, ...]:
        """Return the turn before, where its run ended before the turn's end: then nobody wrote it down.

        A run that fails, or that somebody interrupts, is not gone on with. What was asked in it is as old as it was.

        Args:
            run: The run of the turn that begins.
            now: Seconds since the epoch.
        """
        asked = self.receipt.get("asked")
        # Where memory could not be read, nobody knows whether the turn may be learned.
        is_known = self.receipt.get("without_memory") in (None, "not_used")
        if not asked or asked == self.asked or "queued" in self.receipt or not is_known:
            return ()
        # Only the end of the thread is looked at.
        behind = [*takewhile(lambda one: one.id != asked, reversed(self.messages))]
        if len(behind) == len(self.messages):
            return ()
        return self.named_unwritten(run, asked, min(self.began, now))
