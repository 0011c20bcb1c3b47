"""What a turn begins with: what memory may do and shows in it. Two nodes begin it side by side, and share it."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import cast

from langchain_core.messages import BaseMessage, ToolMessage

from graphs.message_channel import merge_messages
from graphs.modes import MemoryMode
from graphs.prompt import Prompt
from graphs.state import MemoryState, State, asked_in, receipt_of
from memory.core.basis import Injected
from memory.core.known import Known


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The choices of a turn, made before any node of it has written.

    Attributes:
        mode: What memory may do; `None` if that cannot be read.
        known: What is known about the user; `None` if nothing may be, or the store does not answer.
        injected: What the prompt shows of it.
        prompt: The prompt with it.
        memory: What the state keeps of it: ids, and the epochs under which the turn began.
        marks: The messages of the turn with the mode under which they were said; none in `normal` mode.
    """

    mode: MemoryMode | None
    known: Known | None
    injected: Injected | None
    prompt: Prompt
    memory: MemoryState
    marks: list[BaseMessage]

    def applied(self, state: State) -> State:
        """Return the state with these choices in it, for a node that cannot wait until they are written."""
        marked = {"messages": merge_messages(state["messages"], [self.marks])} if self.marks else {}
        return cast("State", {**state, **marked, "memory": self.memory})


class Beginnings:
    """What turns begin with, computed once for all who ask for the same at the same time."""

    def __init__(self) -> None:
        self._pending: dict[Hashable, asyncio.Task[Begun]] = {}

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


def begins(state: State) -> bool:
    """Say whether a turn begins; after its tools it goes on, with the choices that the state has of it."""
    goes_on = isinstance(state["messages"][-1], ToolMessage) and receipt_of(state).get("asked") == asked_in(state)
    return not goes_on
