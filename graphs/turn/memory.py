"""What one run of the chat graph reads from memory, under deadlines: memory never fails a turn."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from graphs.service import MemoryService
from graphs.turn.deadlines import tolerated_store
from graphs.turn.run import Run, mode_in_time
from graphs.turn.state import Receipt, Warnings, WithoutMemory, why_without
from graphs.turn.writing import TurnWriting
from memory.config import zone_named
from memory.context.tokens import TokenCounter
from memory.effects import arun, arun_patiently
from memory.facts.snapshot import MemorySnapshot
from memory.injection.injected import Injected
from memory.injection.past_turns import read_snapshot_with
from memory.injection.selection import TurnConditions, inject, told
from memory.recall.user_index import NOTHING, Asked, Recalled
from memory.tracing import span
from memory.turn import MemoryMode, Opening, may_learn, may_read, open_turn

logger = logging.getLogger(__name__)

_WITHOUT = "the turn goes on without memory"


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
        service: Its settings have the deadlines.

    Attributes:
        writing: What the turn writes to memory.
    """

    def __init__(self, service: MemoryService) -> None:
        self.writing = TurnWriting(service)
        self._service = service
        self._config = service.settings.memory
        self._deadlines = service.deadlines
        self._warnings = Warnings()

    async def open(self, run: Run, previous: Injected | None) -> Opening:
        """Read what memory may do in a turn, and what it begins with: once, in one batch.

        Args:
            run: The turn's run.
            previous: What the thread's prompt shows; `None` in a first turn.
        """
        if run.owner is None or run.store is None:
            return Opening(run.context.memory_mode)
        store = run.store
        self._deadlines.begin(run.turn, self._service.clock())
        try:
            mode = await mode_in_time(run, self._deadlines, "read")
        except TimeoutError:
            logger.warning("the modes of assistant and thread cannot be read in time, incognito")
            return Opening("incognito")
        before, lines = (previous.at, previous.lines()) if previous else (None, ())
        reading = partial(open_turn, run.owner, run.thread_id, mode, before, lines)
        if not may_read(mode):
            return await arun(store, reading())  # which reads nothing then
        with tolerated_store(logger, _WITHOUT):
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
            delta_budget=run.context.delta_tokens,
            room=given.deltas,
            recalled=recalled,
            count=counter.text,
        )
        injected = inject(previous, opening.snapshot, conditions)
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
        with tolerated_store(logger, _WITHOUT):
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

    def count(self, receipt: Receipt) -> None:
        """Count a turn that has ended."""
        self._service.metrics.turn(receipt)
