"""Summaries that are written before they are due: in this process's memory only, a few, dropped when stale."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Self

from graphs.turn.run import Run, Thread
from memory.config import MemoryConfig
from memory.context.running_summary import WrittenSummary
from memory.context.summarization import SummarizeWhen
from memory.context.summarizer import Caller, Draft
from memory.door import in_daemon_thread, in_this_thread, tolerated
from memory.turn import effective_mode, may_read, mode_of_newest
from memory.updates.updater import ModelCalls

logger = logging.getLogger(__name__)

_MOST_THREADS = 256
_PATIENCE_SECONDS = 10.0


class Due(NamedTuple):
    """The summary that a thread will need soon.

    Attributes:
        thread: What names the thread among all of this process.
        made_for: What the summary depends on besides its messages; it is dropped when that changes.
        of: The thread's id and its user's segment, by which an erase finds it.
    """

    thread: Hashable
    made_for: Hashable
    of: tuple[str, ...]

    @classmethod
    def of_run(cls, run: Run, thread: Thread, *of: Hashable) -> Self:
        """Return that of a run's thread.

        Args:
            run: The run; under other choices of its context, another summary is written.
            thread: Its thread. An erase, and incognito messages, make another value.
            of: What else it depends on.
        """
        # An agent's state says the mode, too: a later middleware may remove the message that does.
        is_closed = not may_read(effective_mode(mode_of_newest(thread.messages), thread.memory.get("mode")))
        made_for = (run.context, thread.epochs.epoch, thread.epochs.thread_epoch, is_closed, *of)
        return cls(run.thread, made_for, (run.thread_id, *([run.owner.segment] if run.owner else [])))


def _ended() -> "Future[None]":
    end: Future[None] = Future()
    end.set_result(None)
    return end


@dataclass(slots=True)
class _Prepared:
    """One thread's summary, under way or there.

    Attributes:
        due: What it was made for.
        begun: When its writing began.
        part: The newest summary so far: of all messages that leave, or of some, while it is written or if that failed;
            `None` where nothing came of it.
        is_over: Whether its writing has failed, or taken too long.
        writing: The future of its writing.
    """

    due: Due
    begun: float
    part: WrittenSummary | None = None
    is_over: bool = False
    writing: "Future[None]" = field(default_factory=_ended)


class PreparedSummaries:
    """The summaries of this process's threads that will be due soon.

    Nothing of them is written anywhere: another process simply does not have them, and asks the model as ever. A turn
    uses one only if it was made for the same: the same settings, epochs and mode, and messages that are unchanged, as
    `Summarizer` sees to.

    A summary that takes too long, or fails on the way, is continued after the thread's next turn from the part that is
    done, so that a slow model gets there, too.

    Args:
        config: How many seconds one may take, and how early it is begun.
    """

    def __init__(self, config: MemoryConfig) -> None:
        self._timeout, self._share = config.model_timeout_seconds, config.prepare_summary_share
        # A semaphore of its own: an update must not wait for a summary, nor a summary for an update.
        self._calls = ModelCalls(max_workers=2, max_abandoned=2)
        self._kept: dict[Hashable, _Prepared] = {}

    def begin(self, due: Due, when: SummarizeWhen, draft_of: Callable[[float], Draft | None]) -> None:
        """Begin to write the summary that a thread will need soon, so that no turn has to wait for it; never fail.

        Args:
            due: Which one. Nothing is begun while it is under way, or there.
            when: When the thread is summarized: after its turns it always is.
            draft_of: Returns what is to be written of the state as the turn leaves it; `None` where less than this
                share of the budget is there.
        """
        with tolerated(logger, "no summary is written ahead of time"):
            draft = draft_of(self._share) if self._share < 1 or when == "after" else None
            if draft is None:
                return
            kept, begun = self._kept.get(due.thread), _Prepared(due, time.monotonic())
            has_failed = kept is not None and kept.is_over
            if kept is not None and kept.due == due:
                if not kept.writing.done():
                    return
                stands = kept.part is not None and draft.is_begun_by(kept.part)
                if stands and not has_failed:
                    return
                begun.part = kept.part if stands else None

            # A model that keeps failing is asked once a turn, and the log says so once.
            level = logging.DEBUG if has_failed else logging.WARNING
            self._kept.pop(due.thread, None)
            self._kept[due.thread] = begun
            if len(self._kept) > _MOST_THREADS:
                del self._kept[next(iter(self._kept))]
            begun.writing = in_daemon_thread(partial(self._write, begun, draft, level))

    def _write(self, begun: _Prepared, draft: Draft, level: int) -> None:
        def goes_on(part: WrittenSummary | None) -> bool:
            """Keep what there is so far, and say whether it is of any use still."""
            is_wanted = self._kept.get(begun.due.thread) is begun and not begun.is_over
            if is_wanted:
                begun.part = part
            return is_wanted

        def work() -> None:
            # It may have waited for a place: what was erased meanwhile, or is of no use, is sent to no model.
            if goes_on(begun.part):
                goes_on(in_this_thread(draft.write(begun.part, goes_on, Caller())))

        try:
            self._calls.run(work, self._timeout)
        except Exception as error:  # the turn that needs it asks for it itself, or goes on without
            begun.is_over = True
            logger.log(level, "a summary could not be written ahead of time: %s", type(error).__name__)
            raise

    async def get(self, due: Due, *, waits: bool) -> WrittenSummary | None:
        """Return a thread's summary; `None` if there is none for this, its writing has failed, or it takes too long.

        A turn waits for an unfinished summary as long as that has been under way, and at least ten seconds. After that
        it asks for its own: a model that works in the background, with low priority, may take longer.

        Args:
            due: Which one.
            waits: Whether one that is still written is waited for.

        Raises:
            Exception: If its writing fails while it is waited for: a turn waits for one summary only.
        """
        kept = self._kept.get(due.thread)
        if kept is not None and kept.due != due:
            self._kept.pop(due.thread, None)
            kept = None
        if kept is None or not (waits or kept.writing.done()):
            return None
        if kept.writing.done():
            return kept.part
        patience = max(_PATIENCE_SECONDS, time.monotonic() - kept.begun)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(patience, self._timeout)):
                # A turn that is cancelled, or goes on, does not cancel the writing.
                await asyncio.shield(asyncio.wrap_future(kept.writing))
        if kept.writing.done():
            kept.writing.result()  # raises what it failed with
            return kept.part
        logger.info("a summary that is still written is not waited for any longer")
        return None

    def is_written(self, thread: Hashable) -> bool:
        """Say whether a thread's summary is there, whatever it was made for."""
        kept = self._kept.get(thread)
        return kept is not None and kept.writing.done() and kept.part is not None

    def drop(self, erased: str) -> None:
        """Forget what was written of a thread, by its id, or of all threads of a user, by the user's segment."""
        for thread, kept in list(self._kept.items()):
            if erased in kept.due.of:
                self._kept.pop(thread, None)
