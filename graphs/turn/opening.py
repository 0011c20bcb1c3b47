"""What a turn begins with: what its thread holds, what memory may do and shows in it. Two nodes share it."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.runtime import Runtime

from graphs.turn.channels import merge_messages
from graphs.turn.context import Context
from graphs.turn.modes import MemoryMode
from graphs.turn.prompt import Prompt, running_of
from graphs.turn.state import MemoryState, State, asked_in, receipt_of
from memory.facts.snapshot import MemorySnapshot
from memory.injection.selection import Injected
from memory.message import stored_id
from memory.outbox.transcript import ThreadView


def view_of(state: State, config: RunnableConfig) -> ThreadView | None:
    """Return the thread's messages, and those that its summary stands for as far as it remembers, by their ids.

    Args:
        state: What the run's thread holds.
        config: The node's own, in which LangGraph names the checkpointer, and where below other graphs the node is.

    Returns:
        `None` where the state is not the thread: without a checkpointer it holds what this one call was given, and
        below another graph, its own part of a thread that several share.
    """
    configurable = config.get("configurable", {})
    if not configurable.get(CONFIG_KEY_CHECKPOINTER) or "|" in str(configurable.get("checkpoint_ns", "")):
        return None
    running, messages = running_of(state), state["messages"]
    known = running.summarized_message_ids if running else ()
    return ThreadView(_NewestFirst(messages, known), is_complete=running is None or not running.forgotten)


class _NewestFirst:
    """The ids of messages and some more, read from the newest message on as far as somebody asks.

    What is pending is new: a turn must not pay for the length of its thread.
    """

    def __init__(self, messages: Sequence[BaseMessage], more: Iterable[str]) -> None:
        self._unread = reversed(messages)
        self._read = set(map(stored_id, more))

    def __contains__(self, identity: object) -> bool:
        while identity not in self._read:
            message = next(self._unread, None)
            if message is None:
                return False
            self._read.add(stored_id(message.id))
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The choices of a turn, made before any node of it has written.

    Attributes:
        mode: What memory may do; `None` if that cannot be read.
        known: What is known about the user; `None` if nothing may be, or the store does not answer.
        updates: The receipts of updates since the turn before.
        injected: What the prompt shows of it.
        prompt: The prompt with it.
        memory: What the state keeps of it: ids, and the epochs under which the turn began.
        marks: The messages of the turn with the mode under which they were said; none in `normal` mode.
    """

    mode: MemoryMode | None
    known: MemorySnapshot | None
    updates: list[dict[str, object]]
    injected: Injected | None
    prompt: Prompt
    memory: MemoryState
    marks: list[BaseMessage]

    def applied(self, state: State) -> State:
        """Return the state with these choices in it, for a node that cannot wait until they are written."""
        marked = {"messages": merge_messages(state["messages"], [self.marks])} if self.marks else {}
        return cast("State", {**state, **marked, "memory": self.memory})


class Beginnings:
    """What turns begin with, computed once for all who ask for the same at the same time, and who ends first."""

    def __init__(self) -> None:
        self._pending: dict[Hashable, asyncio.Task[Begun]] = {}
        self._first: dict[Hashable, asyncio.Event] = {}

    async def of(self, turn: Hashable, begin: Callable[[], Awaitable[Begun]]) -> Begun:
        """Return what a turn begins with. A caller that is cancelled does not cancel the others' wait.

        Args:
            turn: Names the turn.
            begin: Computes it; called unless that is under way.
        """
        task = self._pending.get(turn)
        if task is None:

            async def compute() -> Begun:
                return await begin()

            self._pending[turn] = task = asyncio.create_task(compute())
            task.add_done_callback(lambda _: self._pending.pop(turn))
        return await asyncio.shield(task)

    @contextmanager
    def first(self, superstep: Hashable) -> Iterator[None]:
        """Let who comes `after` in a superstep wait for the end of this block."""
        self._first[superstep] = ended = asyncio.Event()
        try:
            yield
        finally:
            ended.set()
            self._first.pop(superstep, None)

    async def after(self, superstep: Hashable) -> None:
        """Return once the first has ended, if there is one: the updates of a superstep are streamed in one order."""
        if ended := self._first.get(superstep):
            await ended.wait()


def superstep_of(runtime: Runtime[Context]) -> Hashable:
    """Return what names the superstep in progress; without LangGraph's own word for it, nothing else has that name."""
    info = runtime.execution_info
    return (asyncio.get_running_loop(), info.thread_id, info.checkpoint_id) if info else object()


def begins(state: State) -> bool:
    """Say whether a turn begins; after its tools it goes on, with the choices that the state has of it."""
    goes_on = isinstance(state["messages"][-1], ToolMessage) and receipt_of(state).get("asked") == asked_in(state)
    return not goes_on
