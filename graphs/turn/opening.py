"""What turns under way began with: computed once for the nodes that share it, in this process's memory only."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Generic, Self, TypeVar, cast

from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from graphs.turn.calls import with_results
from graphs.turn.channels import merge_messages
from graphs.turn.run import Run
from graphs.turn.state import MemoryState, Receipt, State, WithoutMemory
from graphs.turn.thread import Thread
from memory.facts.snapshot import MemorySnapshot
from memory.injection.injected import Injected
from memory.message import names_in, role_of, speaker_of
from memory.turn import Opening, unanswered_with_mode, with_mode
from memory.unwritten import Unwritten, named

P = TypeVar("P")

_FRESH_SECONDS = 2.0
"""So long what a turn began with is shown without another look at the store; a summary may take longer."""
_KEPT_TURNS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun(Generic[P]):
    """The choices of a turn, made before any node of it has written.

    Attributes:
        opening: What was read.
        injected: What the prompt shows of it.
        prompt: The prompt with it, where whoever begins the turn has one.
        memory: What the state keeps of it: ids, and the epochs under which the turn began.
        with_mode: The messages that the turn answers, with the mode in which they were said; none in `normal` mode, but
            for those of agents that speak in a person's place: nothing is learned of them.
        results: Of the calls that the answer before still waits for.
    """

    opening: Opening
    injected: Injected | None
    prompt: P
    memory: MemoryState
    with_mode: list[BaseMessage]
    results: Sequence[ToolMessage] = ()

    @classmethod
    def of(
        cls,
        run: Run,
        thread: Thread,
        opening: Opening,
        injected: Injected | None,
        prompt: P,
        broken_off: tuple[Unwritten, ...] = (),
        results: Sequence[ToolMessage] = (),
    ) -> Self:
        """Return what a turn of a thread begins with, once it is chosen what its prompt shows of what was read.

        Args:
            run: The turn's run.
            thread: The thread, as the turn before left it.
            opening: What was read.
            injected: What the prompt shows of it.
            prompt: The prompt with it.
            broken_off: The turn before, if its run ended before it was written down.
            results: Of the calls that the answer before still waits for.
        """
        epochs = thread.epochs.followed_by(opening.epochs, thread.asked)
        # Who spoke before is known from the turn before, whatever left the thread since.
        asked = thread.receipt.get("asked")
        said = [*takewhile(lambda one: one.id != asked, reversed(thread.messages))]
        names = {*names_in(said), *([epochs.speaker] if thread.memory else [])}
        speaker = run.known_as if run.is_below else speaker_of(names, run.known_as)
        agents = [with_mode(one, "read_only") for one in said if run.is_below and role_of(one, speaker) == "other"]
        epochs = epochs._replace(speaker=speaker)
        # A mode that could not be read is not noted: flushing reads it again, and a note would be for good.
        unanswered = unanswered_with_mode(thread.messages, opening.mode) if opening.mode else []
        chosen = injected.to_state() if injected else {}
        memory = MemoryState(**{**chosen, **epochs.to_state(), **named((*thread.unwritten, *broken_off))})  # type: ignore[typeddict-item]
        return cls(
            opening=opening,
            injected=injected,
            prompt=prompt,
            memory=memory,
            with_mode=[*{one.id: one for one in (*agents, *unanswered)}.values()],
            results=results,
        )

    def receipt(self, asked: str, without_memory: WithoutMemory | None) -> Receipt:
        """Return what memory did in the turn, as far as its beginning tells.

        Args:
            asked: Id of the user message that the turn answers.
            without_memory: Why memory is not used or learns nothing for good, if so.
        """
        # Where memory could not be read, the prompt shows nothing of the choice before.
        shown = self.injected if self.opening.snapshot else None
        receipt = Receipt(
            asked=asked,
            facts=list(shown.fact_ids()) if shown else [],
            updates=[update.to_json() for update in self.opening.updates],
        )
        if shown and (lines := shown.lines()):
            receipt["recalled"] = list(dict.fromkeys(entry for entry, _ in lines))
        if without_memory:
            receipt["without_memory"] = without_memory
        return receipt

    def messages(self, state: State) -> list[BaseMessage] | Overwrite | None:
        """Return what is written of the messages as the turn begins; `None` if they stay as they are."""
        if not self.results:
            return self.with_mode or None
        return Overwrite(with_results(merge_messages(state["messages"], [self.with_mode]), self.results))

    def in_state(self, state: State) -> State:
        """Return the state with these choices in it, for a node that cannot wait until they are written."""
        now: dict[str, object] = {"memory": self.memory}
        if written := self.messages(state):
            now["messages"] = (
                merge_messages(state["messages"], [written]) if isinstance(written, list) else written.value
            )
        return cast("State", {**state, **now})


@dataclass(slots=True)
class _Open(Generic[P]):
    """A turn that was opened: in which superstep, what it begins with, and when that was ready by the loop's clock."""

    superstep: Hashable
    begun: asyncio.Task[Begun[P]]
    at: float = float("-inf")


class OpenTurns(Generic[P]):
    """The turns that this process has opened and not yet asked a model for.

    A turn is named by whatever its nodes have in common. What it began with is given to whoever asks in the same
    superstep at the same time, and its memory to the first call of the model, unless it is no longer fresh.
    """

    def __init__(self) -> None:
        self._open: dict[Hashable, _Open[P]] = {}
        self._first: dict[Hashable, asyncio.Event] = {}

    async def begin(self, turn: Hashable, superstep: Hashable, begin: Callable[[], Awaitable[Begun[P]]]) -> Begun[P]:
        """Return what a turn begins with. A caller that is cancelled does not cancel the others' wait.

        Args:
            turn: Names the turn.
            superstep: Names the superstep in progress; the same turn may be begun again in another.
            begin: Computes it; called unless that is under way.
        """
        opened = self._open.get(turn)
        if opened is None or opened.superstep != superstep or opened.begun.done():

            async def compute() -> Begun[P]:
                begun = await begin()
                fresh.at = asyncio.get_running_loop().time()
                return begun

            # Behind the others: the first is the oldest.
            self._open.pop(turn, None)
            self._open[turn] = opened = fresh = _Open(superstep, asyncio.create_task(compute()))
            if len(self._open) > _KEPT_TURNS:  # turns that ended before they asked a model
                del self._open[next(iter(self._open))]
        return await asyncio.shield(opened.begun)

    def take_fresh(self, turn: Hashable) -> MemorySnapshot | None:
        """Return the memory that a turn began with, once, if it was read only just; else `None`.

        Later calls of the model follow tools, which take their time: what was erased meanwhile must not be shown.
        """
        opened = self._open.pop(turn, None)
        if opened is None or asyncio.get_running_loop().time() - opened.at > _FRESH_SECONDS:
            return None
        return opened.begun.result().opening.snapshot

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


def superstep_of(runtime: Runtime[Any]) -> Hashable:
    """Return what names the superstep in progress; without LangGraph's own word for it, nothing else has that name."""
    info = runtime.execution_info
    # The loop, too: two programs in two threads of a process may give their threads the same ids.
    return (asyncio.get_running_loop(), info.thread_id, info.checkpoint_id) if info else object()
