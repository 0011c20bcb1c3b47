"""What one run of the chat graph writes to memory, under deadlines: memory never fails a turn."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from langchain_core.messages import BaseMessage

from graphs.service import MemoryService
from graphs.turn.deadlines import StoreAway, tolerated_store
from graphs.turn.run import STATELESS, Run, mode_in_time
from graphs.turn.state import NotWritten
from memory.effects import tolerated
from memory.turn import Closing, TurnEpochs, learnable, may_learn
from memory.unwritten import Unwritten, tried_again
from memory.updates.entry import EntryKind
from memory.updates.outbox import Queued
from memory.updates.transcript import ThreadView, latest_turn

logger = logging.getLogger(__name__)

T = TypeVar("T")

# More are left to the next turn, so that each ends with some of them written down.
_MOST_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class Closed:
    """What became of a turn at its end.

    Attributes:
        queued: The pending update that it was written down as, if it was.
        not_written: Why it was not, though it is to be learned.
        unwritten: The turns of its thread that are still to be written down, oldest first.
    """

    queued: Queued | None = None
    not_written: NotWritten | None = None
    unwritten: tuple[Unwritten, ...] = ()


def name_unwritten(
    run: Run, asked: str, at: float, epochs: TurnEpochs, *, is_read: bool = True
) -> tuple[Unwritten, ...]:
    """Return what names a turn of a run's thread that is not written down; nothing if it has no owner or question."""
    if run.owner is None or not asked:
        return ()
    turn = Unwritten(
        asked=asked,
        at=at,
        owner=run.owner.due_key,
        epochs=epochs._replace(learn_from=""),
        is_read=is_read,
        model=run.context.model,
        time_zone=run.context.time_zone,
    )
    return (turn,)


class TurnWriting:
    """Writes turns down for whoever a run belongs to. Of a run without an owner or a store nothing is written.

    Args:
        service: Writes turns down; its settings have the deadlines.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._config = service.settings.memory
        self._deadlines = service.deadlines
        self._writing: set[asyncio.Task[object]] = set()

    async def close(
        self,
        run: Run,
        messages: Sequence[BaseMessage],
        epochs: TurnEpochs,
        view: ThreadView | None,
        unwritten: tuple[Unwritten, ...] = (),
        *,
        is_read: bool = True,
    ) -> Closed:
        """Write down the newest turn of a thread, after those that could not be before; it never fails the turn.

        Args:
            run: The turn's run.
            messages: The thread.
            epochs: Under which epochs the turn began.
            view: What the thread holds; `None` if nobody knows.
            unwritten: Turns of the thread that ended before they were written down, oldest first.
            is_read: Whether memory could be read when the turn began.
        """
        owner, store, asked_at = run.owner, run.store, self._service.clock()
        newest = epochs.newest_turn(messages)
        if owner is None or store is None or not self._config.enabled or not learnable(latest_turn(newest)):
            return Closed(unwritten=unwritten)
        try:
            mode = await mode_in_time(run, self._deadlines, "write")
        except TimeoutError:
            logger.warning("whether the turn may be learned is not known in time: it is not")
            return Closed(not_written="mode_unknown", unwritten=unwritten)
        if not may_learn(mode):
            return Closed(unwritten=unwritten)
        seen = view and replace(view, begun=self._deadlines.begun(run.turn))
        work = partial(self._write, run, messages, newest, epochs, seen, unwritten)
        reason: NotWritten = "failed"
        with tolerated_store(logger, "the turn was not written down; a later one does that"):
            try:
                queued, left = await self._deadlines.ask(run.turn, store, "write", lambda: self._overtakable(work()))
            except TimeoutError:
                reason = "too_late"
                raise
            except StoreAway:
                reason = "store_away"
                raise
            return Closed(queued, unwritten=left)
        return Closed(None, reason, (*unwritten, *name_unwritten(run, run.asked, asked_at, epochs, is_read=is_read)))

    def leave(
        self, run: Run, messages: Sequence[BaseMessage], epochs: TurnEpochs, unwritten: Sequence[Unwritten]
    ) -> None:
        """Keep what a thread's state names as unwritten, for the next sweep of a server, or the end of this process."""
        if run.owner is None or run.store is None:
            return
        closings = (one.closing(run.thread_id, run.owner, messages, epochs.learn_from) for one in unwritten)
        # Runs without a thread share its name.
        thread = run.turn if run.thread_id == STATELESS else run.thread
        self._service.left.note(thread, run.store, [closing for closing in closings if closing])

    async def _write(
        self,
        run: Run,
        messages: Sequence[BaseMessage],
        newest: Sequence[BaseMessage],
        epochs: TurnEpochs,
        view: ThreadView | None,
        unwritten: tuple[Unwritten, ...],
    ) -> tuple[Queued | None, tuple[Unwritten, ...]]:
        """Write down the newest turn, and before it those of before; return which of these are still to be written."""
        failed = [
            turn
            for turn in unwritten[:_MOST_AT_ONCE]
            if not await self._catch_up(run, turn, messages, epochs.learn_from)
        ]
        queued = await self._remember(run, "turn", newest, epochs, view)
        # Only now: while nothing can be written, no turn is to blame.
        again = tuple(one for turn in failed for one in tried_again(turn))
        return queued, (*again, *unwritten[_MOST_AT_ONCE:])

    async def _catch_up(self, run: Run, turn: Unwritten, messages: Sequence[BaseMessage], learn_from: str) -> bool:
        """Write down a turn of before, and say whether nothing of it is left to do."""
        with tolerated(logger, "a turn of before was not written down"):
            closing = turn.closing(run.thread_id, run.owner, messages, learn_from) if run.owner else None
            if closing and run.store is not None:
                await self._service.aremember(run.store, closing)
            return True
        return False

    async def write_down(self, run: Run, messages: Sequence[BaseMessage], epochs: TurnEpochs) -> None:
        """Write down what is about to leave the context, unless memory may not learn now.

        Raises:
            StoreAway: If the store is not asked at the moment.
            Exception: Whatever the store raises; `TimeoutError` if it takes too long.
        """
        if run.owner is None or run.store is None:
            return
        if may_learn(await mode_in_time(run, self._deadlines, "write")):
            work = partial(self._remember, run, "cut", messages, epochs)
            await self._deadlines.ask(run.turn, run.store, "write", lambda: self._overtakable(work()))

    async def _remember(
        self,
        run: Run,
        kind: EntryKind,
        messages: Sequence[BaseMessage],
        epochs: TurnEpochs,
        view: ThreadView | None = None,
    ) -> Queued | None:
        if run.owner is None or run.store is None:
            return None
        closing = Closing(
            owner=run.owner,
            thread_id=run.thread_id,
            kind=kind,
            messages=messages,
            epochs=epochs,
            model=run.context.model,
            view=view,
            time_zone=run.context.time_zone,
        )
        return await self._service.aremember(run.store, closing)

    async def _overtakable(self, work: Coroutine[object, object, T]) -> T:
        """Await a write that a deadline must not take back half done: past it, the write goes on by itself."""
        task = asyncio.create_task(work)
        # The loop itself holds tasks weakly: past the deadline nobody else would hold this one.
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return await asyncio.shield(task)
