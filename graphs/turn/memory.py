"""One run of the chat graph, what it reads from memory and writes to it, under deadlines: memory never fails a turn."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.config import get_config

from graphs.metrics import of_turn
from graphs.service import MemoryService, Queued
from graphs.turn.deadlines import Access, StoreAway
from graphs.turn.run import Run, mode_of_run
from graphs.turn.state import NotWritten, Receipt, Warnings, WithoutMemory, why_without
from memory.context.tokens import TokenCounter
from memory.control import zone_named
from memory.effects import arun, arun_patiently, tolerated
from memory.facts.snapshot import MemorySnapshot
from memory.injection.injected import Injected
from memory.injection.past_turns import read_snapshot_with
from memory.injection.selection import TurnConditions, inject, told
from memory.message import iso_time
from memory.outbox.entry import EntryKind
from memory.outbox.transcript import ThreadView
from memory.recall.user_index import NOTHING, Asked, Recalled
from memory.tracing import span
from memory.turn import (
    Closing,
    MemoryMode,
    Opening,
    TurnEpochs,
    may_learn,
    may_read,
    mode_of_newest,
    open_turn,
)
from memory.unwritten import Unwritten, tried_again

logger = logging.getLogger(__name__)

T = TypeVar("T")

# More are left to the next turn, so that each ends with some of them written down.
_MOST_AT_ONCE = 20
_WITHOUT = "the turn goes on without memory"


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


class Room(NamedTuple):
    """How much of a prompt memory may take.

    Attributes:
        block: Tokens of the memory block.
        deltas: Tokens of what was recalled for single messages, together, before a new block takes its place.
        will_summarize: Whether messages leave the prompt in this turn, so that its prefix changes anyway.
    """

    block: int
    deltas: int
    will_summarize: bool


def asked_of(messages: Sequence[BaseMessage], now: str) -> Asked:
    """Return what is recalled for: the newest message of the user, and what was said in the turn before it.

    Args:
        messages: The thread, or as much of it as the model sees.
        now: The user's local time, ISO 8601.
    """
    places = [at for at, message in enumerate(messages) if isinstance(message, HumanMessage)]
    if not places:
        return Asked("")
    before = messages[places[-2] : places[-1]] if len(places) > 1 else ()
    said = [message.text for message in before if isinstance(message, HumanMessage | AIMessage)]
    return Asked(messages[places[-1]].text, "\n".join(said), now)


class TurnMemory:
    """The memory of whoever a run belongs to. A run without an owner or a store has none.

    Args:
        service: Writes turns down; its settings have the deadlines.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._config = service.settings.memory
        self._deadlines = service.deadlines
        self._warnings = Warnings()
        self._writing: set[asyncio.Task[object]] = set()

    async def open(self, run: Run, previous: Injected | None) -> Opening:
        """Read what memory may do in a turn, and what it begins with: once, in one batch.

        Args:
            run: The turn's run.
            previous: What the thread's prompt shows; `None` in a first turn.
        """
        if run.owner is None or run.store is None:
            return Opening(run.context.memory_mode)
        store = run.store
        self._deadlines.begin(run.turn)
        try:
            mode = await self._mode(run, "read")
        except TimeoutError:
            logger.warning("the modes of assistant and thread cannot be read in time, incognito")
            return Opening("incognito")
        before, lines = (previous.at, previous.lines()) if previous else (None, ())
        reading = partial(open_turn, run.owner, run.thread_id, mode, before, lines)
        if not may_read(mode):
            return await arun(store, reading())  # which reads nothing then
        with _tolerated(_WITHOUT):
            opening = await self._deadlines.ask(run.turn, store, "read", lambda: arun_patiently(store, reading))
            return opening if run.context.memory_tokens else replace(opening, snapshot=None, updates=())
        # Nobody knows whether the user has learning paused; that nothing is to be learned is known.
        return Opening(None if may_learn(mode) else mode)

    async def choose(
        self,
        run: Run,
        previous: Injected | None,
        messages: Sequence[BaseMessage],
        room: Callable[[Opening], Room],
        counter: TokenCounter,
    ) -> tuple[Opening, Injected | None]:
        """Read what a turn begins with, and choose what its prompt shows of it.

        Args:
            run: The turn's run.
            previous: What the thread's prompt shows; `None` in a first turn.
            messages: The thread, or as much of it as the model sees.
            room: Says how much the prompt has for what was read.
            counter: Counts tokens.

        Returns:
            What was read, with the texts that the prompt shows, and the choice. Where memory cannot be read, the choice
            before stays for the next turn.
        """
        opening = await self.open(run, previous)
        if opening.snapshot is None:
            return opening, previous
        recalled, given = await self._recall(run, opening, messages), room(opening)
        conditions = TurnConditions(
            thread_id=run.thread_id,
            message_id=run.asked,
            window={str(message.id) for message in messages},
            now=self._service.clock(),
            cache_ttl_seconds=run.context.cache_ttl_seconds,
            will_summarize=given.will_summarize,
            budget=given.block,
            protected_categories=self._config.protected_categories,
            room=given.deltas,
            recalled=recalled,
        )
        injected = inject(previous, opening.snapshot, conditions, counter.text)
        return replace(opening, snapshot=told(injected, opening.snapshot, recalled)), injected

    async def _recall(self, run: Run, opening: Opening, messages: Sequence[BaseMessage]) -> Recalled:
        """Return what of the user's memory has to do with the newest message; nothing in a turn without memory."""
        if run.owner is None or run.store is None or (opening.snapshot and not opening.snapshot.is_used):
            return NOTHING
        # As the journal's days: what the user set counts before what the assistant says.
        zone = opening.zone or zone_named(run.context.time_zone) or UTC
        now = datetime.fromtimestamp(self._service.clock(), zone).isoformat()
        asked = partial(asked_of, messages, now)
        with span("palimpsest.recall"):
            return await self._service.recalling.recall(run.store, run.owner, opening, asked)

    async def shown(
        self, run: Run, mode: MemoryMode, fresh: MemorySnapshot | None, injected: Injected | None
    ) -> MemorySnapshot | None:
        """Return what a call of the model may be shown; `None` as in `Opening`.

        Args:
            run: The turn's run.
            mode: The mode in which the turn's question was said.
            fresh: What was read only just; without it, memory is read again.
            injected: What the thread's prompt shows.
        """
        # A client may send a question with a stricter mode than its run has.
        if run.owner is None or run.store is None or run.context.memory_tokens == 0 or not may_read(mode):
            return None
        if fresh is not None:
            return fresh
        store, reading = run.store, partial(read_snapshot_with, run.owner, injected.lines() if injected else ())
        with _tolerated(_WITHOUT):
            return await self._deadlines.ask(run.turn, store, "read", lambda: arun(store, reading()))
        return None

    def why_without(self, run: Run, opening: Opening) -> WithoutMemory | None:
        """Return why the turn has no memory, and log each reason once."""
        reason = why_without(
            has_owner=run.owner is not None,
            has_store=run.store is not None,
            enabled=self._config.enabled,
            mode=opening.mode,
            is_read=opening.snapshot is not None or run.context.memory_tokens == 0,
            is_away=run.store is not None and self._service.stores.is_away(run.store, "read"),
            is_used=opening.snapshot is None or opening.snapshot.is_used,
        )
        # The first two somebody chose; of the third, the log says when it begins and when it ends.
        if reason is not None and reason not in ("incognito", "not_used", "store_away"):
            self._warnings.say(reason)
        return reason

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
        if owner is None or store is None or not self._config.enabled or not may_learn(mode_of_newest(newest)):
            return Closed(unwritten=unwritten)
        try:
            mode = await self._mode(run, "write")
        except TimeoutError:
            logger.warning("whether the turn may be learned is not known in time: it is not")
            return Closed(not_written="mode_unknown", unwritten=unwritten)
        if not may_learn(mode):
            return Closed(unwritten=unwritten)
        left = list(unwritten)

        async def write() -> Queued | None:
            failed = [
                turn
                for turn in unwritten[:_MOST_AT_ONCE]
                if not await self._catch_up(run, turn, messages, epochs.learn_from)
            ]
            queued = await self._remember(run, "turn", newest, epochs, view)
            # Only now: while nothing can be written, no turn is to blame.
            left[:] = [*(again for one in failed for again in tried_again(one)), *unwritten[_MOST_AT_ONCE:]]
            return queued

        reason: NotWritten = "failed"
        with _tolerated("the turn was not written down; a later one does that"):
            try:
                queued = await self._deadlines.ask(run.turn, store, "write", lambda: self._overtakable(write()))
            except TimeoutError:
                reason = "too_late"
                raise
            except StoreAway:
                reason = "store_away"
                raise
            return Closed(queued, unwritten=tuple(left))
        named = Unwritten(
            asked=run.asked,
            at=asked_at,
            owner=owner.due_key,
            epochs=epochs._replace(learn_from=""),
            is_read=is_read,
            model=run.context.model,
            time_zone=run.context.time_zone,
        )
        self._service.leave()
        return Closed(None, reason, (*left, named) if run.asked else tuple(left))

    async def _catch_up(self, run: Run, turn: Unwritten, messages: Sequence[BaseMessage], learn_from: str) -> bool:
        """Write down a turn of before, and say whether nothing of it is left to do."""
        with tolerated(logger, "a turn of before was not written down"):
            closing = turn.closing(run.thread_id, run.owner, messages, learn_from) if run.owner else None
            if closing and run.store is not None:
                await self._service.aremember(run.store, closing, reader=run.user_id)
            return True
        return False

    async def check_budget(self, run: Run) -> None:
        """Raise `BudgetUsedUp` if the user's memory may ask no model for the rest of the day."""
        if run.owner is not None and run.store is not None:
            store, look = run.store, partial(self._service.accounts.purse.look, run.owner)
            asked = partial(self._deadlines.ask, run.turn, store, "read", lambda: arun(store, look()))
            await self._service.accounts.acheck(run.owner, asked)

    def waits_until(self, run: Run) -> str | None:
        """Return until when (ISO 8601) the user's memory asks no model, as the budget of the day is used up."""
        until = self._service.accounts.purse.used_up_until(run.owner) if run.owner else None
        return None if until is None else iso_time(until)

    def count(self, receipt: Receipt) -> None:
        """Count a turn that has ended."""
        self._service.accounts.metrics.add(of_turn(receipt))
        self._service.accounts.metrics.context(receipt.get("tokens", {}))

    async def write_down(self, run: Run, messages: Sequence[BaseMessage], epochs: TurnEpochs) -> None:
        """Write down what is about to leave the context, unless memory may not learn now.

        Raises:
            StoreAway: If the store is not asked at the moment.
            Exception: Whatever the store raises; `TimeoutError` if it takes too long.
        """
        if run.owner is None or run.store is None:
            return
        if may_learn(await self._mode(run, "write")):
            work = partial(self._remember, run, "cut", messages, epochs)
            await self._deadlines.ask(run.turn, run.store, "write", lambda: self._overtakable(work()))

    async def _mode(self, run: Run, access: Access) -> MemoryMode:
        """Return the run's mode; `TimeoutError` if that takes longer than the turn may wait."""
        async with self._deadlines.within(run.turn, access):
            return await mode_of_run(get_config(), run.context.memory_mode, on_server=run.on_server)

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
        return await self._service.aremember(run.store, closing, reader=run.user_id)

    async def _overtakable(self, work: Coroutine[object, object, T]) -> T:
        """Await a write that a deadline must not take back half done: past it, the write goes on by itself."""
        task = asyncio.create_task(work)
        # The loop itself holds tasks weakly: past the deadline nobody else would hold this one.
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return await asyncio.shield(task)


@contextmanager
def _tolerated(consequence: str) -> Iterator[None]:
    """Tolerate a failing store; of one that is not asked, the log says when that began and when it ends."""
    with tolerated(logger, consequence), suppress(StoreAway):
        yield
