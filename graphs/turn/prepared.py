"""Summaries that are written before they are due: in this process's memory only, a few, dropped when stale."""

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from langchain_core.runnables import RunnableConfig
from langgraph.constants import CONFIG_KEY_CHECKPOINTER

from graphs.turn.run import Run
from graphs.turn.state import summary_lost
from memory.context.effects import SoFar
from memory.context.running_summary import WrittenSummary
from memory.context.summarization import SummarizationNode, SummarizeWhen
from memory.effects import in_daemon_thread, tolerated
from memory.turn import MemoryMode, TurnEpochs
from memory.updates.effects import ModelCalls

logger = logging.getLogger(__name__)

Begin = Callable[[Callable[[], WrittenSummary | None]], "Future[WrittenSummary | None]"]
Write = Callable[[WrittenSummary | None, SoFar], WrittenSummary | None]
"""Asks the model, on a thread where it may block: goes on with what was begun, and tells of each part that is done."""


@dataclass(slots=True)
class _Prepared:
    """One thread's summary, under way or there, and what it was made for.

    Attributes:
        made_for: What it depends on besides its messages.
        of: By what an erase finds it.
        begun: When its writing began.
        part: What it stands for so far: of all that leaves, or, while it is written and where that failed, of a part.
        is_over: Whether nobody waits for its writing any more.
        writing: Its end.
    """

    made_for: Hashable
    of: tuple[str, ...]
    begun: float
    part: WrittenSummary | None = None
    is_over: bool = False
    writing: "Future[WrittenSummary | None]" = field(default_factory=Future)

    @property
    def has_failed(self) -> bool:
        return self.writing.done() and (self.writing.cancelled() or self.writing.exception() is not None)

    def written(self) -> WrittenSummary | None:
        """Return what came of it; a part where its writing failed later, `None` where nothing did."""
        return self.part if self.has_failed else self.writing.result()


class PreparedSummaries:
    """The summaries of this process's threads that will be due soon.

    Nothing of them is written anywhere: another process simply does not have them, and asks the model as ever. A turn
    uses one only if it was made for the same: the same settings, epochs and mode, and messages that are unchanged, as
    `Summarizer` sees to.

    What takes too long, or fails on the way, is gone on with after the thread's next turn: however slow the model, what
    it has summarized need not be asked for again.

    Args:
        timeout: Seconds that one may take.
        limit: How many are kept; the oldest goes first.
        begin: Carries a call out in the background and returns its future.
        patience: Seconds that a turn waits at least for one that is still written.
        clock: Returns seconds; only differences matter.
    """

    def __init__(
        self,
        timeout: float,
        limit: int = 256,
        begin: Begin = in_daemon_thread,
        patience: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout, self._limit, self._begin, self._patience = timeout, limit, begin, patience
        self._clock = clock
        # Places of their own: an update must not wait for a summary, nor a summary for an update.
        self._calls = ModelCalls(max_workers=2, max_abandoned=2)
        self._kept: OrderedDict[Hashable, _Prepared] = OrderedDict()

    def start(
        self,
        thread: Hashable,
        made_for: Hashable,
        write: Write,
        *,
        still_stands: Callable[[WrittenSummary], bool],
        of: tuple[str, ...] = (),
    ) -> None:
        """Write a thread's summary in the background, unless one for the same is there or under way.

        Args:
            thread: Whose summary it is.
            made_for: What it depends on besides its messages; under another value it is of no use.
            write: Writes it, on a thread of its own. `None` says that there is none.
            still_stands: Says whether the messages that went into a summary are as they were.
            of: The thread's id and its user's segment, by which an erase finds it.
        """
        kept, part = self._kept.get(thread), None
        if kept is not None and kept.made_for == made_for:
            if not kept.writing.done():
                return
            if (written := kept.written()) is not None and still_stands(written):
                if not kept.has_failed:
                    return
                part = written
        # A model that keeps failing is asked once a turn, and the log says so once.
        level = logging.DEBUG if kept is not None and kept.has_failed else logging.WARNING
        begun = _Prepared(made_for, of, self._clock(), part)
        self._kept[thread] = begun
        self._kept.move_to_end(thread)
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)
        begun.writing = self._begin(partial(self._write, thread, begun, write, level))

    def _write(self, thread: Hashable, begun: _Prepared, write: Write, level: int) -> WrittenSummary | None:
        def is_wanted() -> bool:
            return self._kept.get(thread) is begun and not begun.is_over

        def so_far(part: WrittenSummary) -> bool:
            if is_wanted():
                begun.part = part
            return is_wanted()

        def work() -> WrittenSummary | None:
            # It may have waited for a place: what was erased meanwhile, or is of no use, is sent to no model.
            return write(begun.part, so_far) if is_wanted() else None

        try:
            return self._calls.run(work, self._timeout)
        except Exception as error:  # the turn that needs it asks for it itself, or goes on without
            begun.is_over = True
            logger.log(level, "a summary could not be written ahead of time: %s", type(error).__name__)
            raise

    async def get(self, thread: Hashable, made_for: Hashable, *, waits: bool = True) -> WrittenSummary | None:
        """Return a thread's summary; `None` if there is none for this, its writing has failed, or it takes too long.

        One that is still written is waited for, but no longer than it has been under way, and ten seconds at least. It
        may be written on a machine's spare time: then the turn asks for its own, which is done sooner.

        Args:
            thread: Whose summary it is.
            made_for: As in `start`.
            waits: Whether one that is still written is waited for.

        Raises:
            Exception: If its writing fails while it is waited for: a turn waits for one summary only.
        """
        kept = self._kept.get(thread)
        if kept is None:
            return None
        if kept.made_for != made_for:
            self._kept.pop(thread, None)
            return None
        if kept.writing.done():
            return kept.written()
        if not waits:
            return None
        patience = max(self._patience, self._clock() - kept.begun)
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        kept.writing.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(ended.set))
        # A turn that is cancelled, or goes on, does not cancel the writing.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(patience, self._timeout)):
                await ended.wait()
        if kept.writing.done():
            return kept.writing.result()
        logger.info("a summary that is still written is not waited for any longer")
        return None

    def is_written(self, thread: Hashable) -> bool:
        """Say whether a thread's summary is there, whatever it was made for."""
        kept = self._kept.get(thread)
        return kept is not None and kept.writing.done() and kept.written() is not None

    def drop(self, erased: str) -> None:
        """Forget what was written of a thread, by its id, or of all threads of a user, by the user's segment."""
        for thread, kept in list(self._kept.items()):
            if erased in kept.of:
                self._kept.pop(thread, None)

    def __len__(self) -> int:
        return len(self._kept)


@dataclass(frozen=True, slots=True)
class SummaryAhead:
    """The summary of one thread that is written before it is due.

    Attributes:
        kept: Those of this process.
        thread: What names the thread among all of this process.
        made_for: What the summary depends on besides its messages.
        of: The thread's id and its user's segment, by which an erase finds it.
    """

    kept: PreparedSummaries
    thread: Hashable
    made_for: Hashable
    of: tuple[str, ...]

    @classmethod
    def of_run(
        cls, kept: PreparedSummaries, run: Run, epochs: TurnEpochs, mode: MemoryMode | None, *of: Hashable
    ) -> Self:
        """Return that of a run's thread.

        Args:
            kept: Those of this process.
            run: The run; under other choices of its context, another summary is written.
            epochs: Under which epochs the turn began.
            mode: What memory may do in the turn: what was said in incognito is in no other summary.
            of: What else it depends on.
        """
        made_for = (run.context, epochs.user, epochs.thread, mode == "incognito", *of)
        return cls(kept, run.thread, made_for, (run.thread_id, run.owner.segment) if run.owner else (run.thread_id,))

    async def get(self, *, waits: bool) -> WrittenSummary | None:
        """Return the summary, as `PreparedSummaries.get` does."""
        return await self.kept.get(self.thread, self.made_for, waits=waits)

    def begin(self, make: Callable[[], SummarizationNode], state: object, share: float) -> None:
        """Begin to write the summary that the thread will need soon, so that no turn has to wait for it; never fail.

        Args:
            make: Returns what summarizes.
            state: The state as the turn leaves it.
            share: While less than this share of the budget is there, it is too early.
        """
        with tolerated(logger, "no summary is written ahead of time"):
            node = make()
            if leaving := node.leaves_soon(state, share):
                self.kept.start(
                    self.thread,
                    self.made_for,
                    lambda begun, so_far: node.prepare(state, leaving, begun=begun, so_far=so_far),
                    still_stands=lambda written: node.still_stands(state, written, leaving),
                    of=self.of,
                )


def when_summarized(chosen: SummarizeWhen | None, config: RunnableConfig) -> SummarizeWhen:
    """Return when a run's summaries are made: a state that nobody keeps has no later turn to have them in.

    Args:
        chosen: When they are to be made; `None` where nobody chose.
        config: A node's own, in which LangGraph names the checkpointer, and where below other graphs the node is.
    """
    is_kept = config.get("configurable", {}).get(CONFIG_KEY_CHECKPOINTER) and not summary_lost(config)
    return (chosen or "before") if is_kept else "before"
