"""A turn of a conversation, as memory has it: begun by one read, ended by one write, by whichever door it came in.

Memory never fails a turn, and none waits for it past its deadlines. A run without an owner or a store has none.
"""

import logging
import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from graphs.process.events import MemoryQueued, aemit
from graphs.process.metrics import count_turn
from graphs.process.service import MemoryService
from graphs.turn.run import STATELESS, Run, Thread
from graphs.turn.state import MemoryState, NotWritten, Receipt, WithoutMemory
from graphs.turn.stores import StoreAway, tolerated_store
from memory.config import zone_named
from memory.context.running_summary import LEFT_OUT, REMEMBERED_IDS, LeftOut
from memory.context.tokens import TokenCounter
from memory.door import arun, arun_patiently, tolerated
from memory.facts.rows import MemorySnapshot
from memory.forms import plain
from memory.injection.injected import Injected, read_snapshot_with
from memory.injection.selection import TurnConditions, inject, told
from memory.message import iso_time, names_in, role_of, speaker_of, text_of
from memory.model_calls import span
from memory.recall.user_index import NOTHING, Asked, Recalled
from memory.turn import (
    Closing,
    MemoryMode,
    NewestFirst,
    Opening,
    TurnEpochs,
    may_learn,
    may_read,
    open_turn,
    unanswered_with_mode,
    with_mode,
)
from memory.updates.entry import Entry
from memory.updates.transcript import ThreadView
from memory.updates.unwritten import Named, Unwritten, named, tried_again

logger = logging.getLogger(__name__)

Kept = TypeVar("Kept", bound=MemoryState)

_WITHOUT = "the turn goes on without memory"
_MOST_AT_ONCE = 20
"""So many earlier turns are written down by one turn at most; the next turn goes on with the others."""

_FRESH_SECONDS = 2.0
"""So long a turn shows the memory that it began with before it reads the store again."""
_KEPT_TURNS = 64

# Reasons that nobody chose, and that no other line of the log tells.
_SENTENCES: dict[str, str] = {
    "no_identity": "the server names no user: nobody logs in, and PALIMPSEST_SINGLE_USER is not true",
    "no_store": "there is no store: compile the graph with one, or name one in the server's configuration",
    "switched_off": "PALIMPSEST_MEMORY is false: nothing is learned",
    "unreadable": "the store does not answer; the log says how it failed",
}


class BegunTurn(NamedTuple):
    """The memory that a turn begins with.

    Attributes:
        opening: What was read, with the texts that the prompt shows.
        injected: What the prompt shows of it.
        memory: What the state keeps of it: ids, the epochs under which it began, and its receipt.
        marked: Copies of the new messages that carry the turn's mode, if it is not `normal`, and of those that an agent
            wrote in a person's place: nothing is learned of these.
    """

    opening: Opening
    injected: Injected | None
    memory: MemoryState
    marked: list[BaseMessage]


Written = tuple[Entry | None, NotWritten | None, tuple[Unwritten, ...]]
"""What became of a turn that was to be written down: the pending update that it is; why it is none, though the turn is
to be learned; the turns of its thread still to be written down, oldest first."""


class TurnMemory:
    """The memory of the turns that go through one graph, or one agent.

    Args:
        service: Reads and writes; its settings have the deadlines.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._config = service.settings.memory
        self._said: set[str] = set()
        self._fresh: dict[Hashable, tuple[float, MemorySnapshot | None]] = {}

    async def begin(
        self,
        run: Run,
        thread: Thread,
        live: Sequence[BaseMessage],
        tokens: tuple[int, int],
        will_summarize: Callable[[MemorySnapshot], bool],
        counter: TokenCounter,
        left: tuple[Unwritten, ...] = (),
    ) -> BegunTurn:
        """Read what a turn begins with, and choose what its prompt shows of it.

        Args:
            run: The turn's run.
            thread: The thread, as the turn before left it.
            live: Its messages, or as many as the model sees.
            tokens: Of the memory block, and of the facts recalled for single messages, in sum; beyond them a new block
                replaces all of it.
            will_summarize: Says whether messages leave the prompt in this turn, so that its prefix changes anyway.
            counter: Counts tokens.
            left: The turn before, if its run ended before it was written down.
        """
        until = time.monotonic() + self._service.stores.seconds["read"]
        now, opening, injected = self._service.clock(), await self._open(run, thread.injected), thread.injected
        read_at = time.monotonic()
        if opening.snapshot is not None:
            (budget, delta_room), recalled = tokens, await self._recall(run, opening, live, until)
            conditions = TurnConditions(
                thread_id=run.thread_id,
                message_id=thread.asked,
                window={str(message.id) for message in live},
                now=now,
                cache_ttl_seconds=run.context.cache_ttl_seconds,
                will_summarize=will_summarize(opening.snapshot),
                budget=budget,
                protected_categories=self._config.protected_categories,
                delta_budget=run.context.delta_tokens,
                room=delta_room,
                recalled=recalled,
                count=counter.text,
            )
            injected = inject(injected, opening.snapshot, conditions)
            opening = replace(opening, snapshot=told(injected, opening.snapshot, recalled))
        epochs = thread.epochs.followed_by(opening.epochs, thread.asked)
        # What is not learned begins no branch: nobody would know that what follows came after it.
        if not epochs.first and (opening.mode is None or may_learn(opening.mode)):
            epochs = epochs._replace(first=thread.asked, alone_until=await run.alone_until(now))
        # The speaker of earlier messages is in the state, as the messages themselves may have left the thread.
        before = thread.receipt.get("asked")
        said = [*takewhile(lambda one: one.id != before, reversed(thread.messages))]
        names = {*names_in(said), *([epochs.speaker] if thread.receipt else [])}
        speaker = run.known_as if run.is_below else speaker_of(names, run.known_as)
        marked: list[BaseMessage] = [
            with_mode(one, "read_only") for one in said if run.is_below and role_of(one, speaker) == "other"
        ]
        # A mode that could not be read is not noted, as notes stay: the end of the turn reads it again.
        marked += unanswered_with_mode(thread.messages, opening.mode) if opening.mode else []
        memory: Any = {
            **(plain(injected) if injected else {}),
            **epochs._replace(speaker=speaker).to_state(),
            **named((*thread.unwritten, *left)),
            "began": now,
            "receipt": self._receipt(run, thread, opening, injected),
        }
        self._fresh[run.thread, thread.asked] = read_at, opening.snapshot
        if len(self._fresh) > _KEPT_TURNS:  # turns that ended before they asked a model
            self._fresh.pop(next(iter(self._fresh)), None)
        return BegunTurn(opening, injected, memory, [*{one.id: one for one in marked}.values()])

    def _receipt(self, run: Run, thread: Thread, opening: Opening, injected: Injected | None) -> Receipt:
        # If memory cannot be read, the state keeps the earlier choice for the next turn, and this prompt shows none.
        receipt = Receipt(asked=thread.asked, facts=[], updates=[*map(plain, opening.updates)])
        if injected and opening.snapshot:
            receipt["facts"] = [*injected.fact_ids()]
            if lines := injected.lines():
                receipt["recalled"] = list(dict.fromkeys(entry for entry, _ in lines))
        if why := self._why_without(run, opening):
            receipt["without_memory"] = why
        return receipt

    async def _open(self, run: Run, previous: Injected | None) -> Opening:
        """Read what memory may do in a turn, and what it begins with: once, in one batch."""
        if run.place is None:
            return Opening(run.context.memory_mode)
        store, owner = run.place
        try:
            mode = await run.mode(self._service.stores.seconds["read"])
        except TimeoutError:
            logger.warning("the modes of assistant and thread cannot be read in time, incognito")
            return Opening("incognito")
        if not may_read(mode):
            return Opening(mode)
        before, lines = (previous.at, previous.lines()) if previous else (None, ())
        reading = partial(open_turn, owner, run.thread_id, mode, before, lines)
        with tolerated_store(logger, _WITHOUT):
            opening = await self._service.stores.ask(store, "read", lambda: arun_patiently(store, reading))
            return opening if run.context.memory_tokens else replace(opening, snapshot=None, updates=())
        # Whether the user has paused learning is unknown; a mode that learns nothing is known without the store.
        return Opening(None if may_learn(mode) else mode)

    async def _recall(self, run: Run, opening: Opening, live: Sequence[BaseMessage], until: float) -> Recalled:
        """Return what of the user's memory has to do with the newest message; nothing where memory is not used.

        The journal is read until that time at most, on the monotonic clock.
        """
        if run.place is None or not (opening.snapshot and opening.snapshot.control.use):
            return NOTHING
        # As for the journal's days: the user's own zone counts before that of the assistant's context.
        zone = opening.snapshot.control.zone or zone_named(run.context.time_zone) or UTC
        now = datetime.fromtimestamp(self._service.clock(), zone).isoformat()
        # The newest message of the user, with what was said in the turn before it.
        places = [at for at, message in enumerate(live) if isinstance(message, HumanMessage)]
        before = live[places[-2] : places[-1]] if len(places) > 1 else ()
        said = [text_of(message) for message in before if isinstance(message, HumanMessage | AIMessage)]
        asked = Asked(text_of(live[places[-1]]) if places else "", "\n".join(said), now)
        with span("palimpsest.recall"):
            left = max(0.0, until - time.monotonic())
            return await self._service.recalling.recall(*run.place, opening, asked, left)

    def _why_without(self, run: Run, opening: Opening) -> WithoutMemory | None:
        """Return why a turn has no memory or learns nothing for good; what nobody chose, the log says once.

        What a deployment lacks comes before what somebody chose: it is there to be mended.
        """
        why: WithoutMemory | None = None
        if run.store is None:
            why = "no_store"
        elif run.owner is None:
            why = "no_identity"
        elif opening.mode == "incognito":
            why = "incognito"
        elif opening.mode is None or (opening.snapshot is None and run.context.memory_tokens):
            why = "store_away" if self._service.stores.is_away(run.store, "read") else "unreadable"
        elif opening.snapshot is not None and not opening.snapshot.control.use:
            why = "not_used"
        elif not self._config.enabled:
            why = "switched_off"
        if why in _SENTENCES and why not in self._said:
            self._said.add(why)
            logger.warning("turns go on without memory (%s): %s", why, _SENTENCES[why])
        return why

    async def shown(self, run: Run, thread: Thread, mode: MemoryMode) -> MemorySnapshot | None:
        """Return what a call of the model may be shown; `None` as in `Opening`.

        The first call of a turn shows what the turn has just read. Later calls follow tools, which may take minutes:
        they read again, so that nothing is shown that was erased meanwhile.

        Args:
            run: The turn's run.
            thread: The thread.
            mode: The mode in which the turn's question was said; a client may send it with a stricter one than its
                run has.
        """
        read_at, snapshot = self._fresh.pop((run.thread, thread.asked), (-math.inf, None))
        if run.place is None or run.context.memory_tokens == 0 or not may_read(mode):
            return None
        if snapshot is not None and time.monotonic() - read_at <= _FRESH_SECONDS:
            return snapshot
        store, owner = run.place
        reading = partial(read_snapshot_with, owner, thread.injected.lines() if thread.injected else ())
        with tolerated_store(logger, _WITHOUT):
            return await self._service.stores.ask(store, "read", lambda: arun(store, reading()))
        return None

    async def end(self, run: Run, thread: Thread, *, is_whole: bool = True) -> MemoryState:
        """Write a thread's newest turn down, trigger its update, and return what the thread keeps of memory.

        Args:
            run: The turn's run.
            thread: The thread.
            is_whole: Whether its messages are all that there are.
        """
        queued, not_written, unwritten = await self.write_turn(run, thread, is_whole=is_whole)
        receipt: Receipt = {**thread.receipt, "queued": queued.key if queued else None}
        if queued:
            await aemit(MemoryQueued.name, MemoryQueued(entry=queued.key, due=iso_time(queued.due)))
        if not_written:
            receipt["not_written"] = not_written
        left_out = LeftOut.from_state(thread.context.get(LEFT_OUT))
        if left_out.messages:
            receipt["left_out"] = {"messages": left_out.messages, "ids": [*left_out.ids]}
        count_turn(receipt)
        kept: Any = {key: value for key, value in thread.memory.items() if key not in Named.__annotations__}
        return cast("MemoryState", {**kept, "receipt": receipt, **named(unwritten)})

    async def write_turn(self, run: Run, thread: Thread, *, is_whole: bool = False) -> Written:
        """Write down the newest turn of a thread, after those that could not be before; it never fails the turn.

        What cannot be written is kept until this process can write it, or ends.

        Args:
            run: The turn's run.
            thread: The thread.
            is_whole: Whether its messages are all that there are, so that what it lacks was edited away.
        """
        # A turn that the state names already as not written down is tried a last time here.
        before = tuple(one for one in thread.unwritten if one.asked != thread.asked)
        if run.place is None:
            return None, None, before
        (store, owner), learn_from = run.place, thread.epochs.learn_from

        def closing_of(turn: Unwritten) -> Closing | None:
            return turn.closing(run.thread_id, owner, thread.messages, learn_from)

        written = await self._write(run, thread, before, closing_of, is_whole=is_whole)
        # Runs without a thread share its name.
        name = (run.thread, thread.asked) if run.thread_id == STATELESS else run.thread
        self._service.left.note(name, store, [*filter(None, map(closing_of, written[2]))])
        return written

    async def _write(
        self,
        run: Run,
        thread: Thread,
        before: tuple[Unwritten, ...],
        closing_of: Callable[[Unwritten], Closing | None],
        *,
        is_whole: bool,
    ) -> Written:
        is_read = thread.receipt.get("without_memory") not in ("unreadable", "store_away")
        turns = thread.named_unwritten(run, thread.asked, self._service.clock(), is_read=is_read)
        closing = next(filter(None, map(closing_of, turns)), None)
        if run.place is None or closing is None or not self._config.enabled:
            return None, None, before
        try:
            mode = await run.mode(self._service.stores.seconds["write"])
        except TimeoutError:
            logger.warning("whether the turn may be learned is not known in time: it is not")
            return None, "mode_unknown", before
        if not may_learn(mode):
            return None, None, before
        (store, _), view = run.place, None
        # Below another graph, several graphs share a thread id, and each state has only its own messages.
        if is_whole and run.has_saver and not run.is_below:
            # A summary remembers only its newest ids: of older messages nobody knows whether they were edited away.
            ids = thread.running.summarized_message_ids if thread.running else set[str]()
            held = NewestFirst(thread.messages, ids)
            view = ThreadView(held, len(ids) < REMEMBERED_IDS, thread.began, thread.epochs.alone_until, thread.words)

        async def write() -> Written:
            failed = list[Unwritten]()
            for one in before[:_MOST_AT_ONCE]:
                with tolerated(logger, "a turn of before was not written down"):
                    if late := closing_of(one):
                        await self._service.aremember(store, late)
                    continue
                failed.append(one)
            queued = await self._service.aremember(store, replace(closing, late=None, view=view, began=thread.began))
            # Only now: while nothing can be written, no turn is to blame.
            again = tuple(one for turn in failed for one in tried_again(turn))
            return queued, None, (*again, *before[_MOST_AT_ONCE:])

        reason: NotWritten = "failed"
        with tolerated_store(logger, "the turn was not written down; a later one does that"):
            try:
                return await self._service.stores.write(store, write)
            except (TimeoutError, StoreAway) as error:
                reason = "too_late" if isinstance(error, TimeoutError) else "store_away"
                raise
        return None, reason, (*before, *turns)

    async def write_cut(self, run: Run, messages: Sequence[BaseMessage], epochs: TurnEpochs) -> None:
        """Write down what is about to leave the context, unless memory may not learn now.

        Raises:
            StoreAway: If the store is not asked at the moment.
            Exception: Whatever the store raises; `TimeoutError` if it takes too long.
        """
        if run.place is None or not may_learn(await run.mode(self._service.stores.seconds["write"])):
            return
        store, owner = run.place
        closing = Closing(
            owner=owner,
            thread_id=run.thread_id,
            kind="cut",
            messages=messages,
            epochs=epochs,
            model=run.context.model,
            time_zone=run.context.time_zone,
        )
        await self._service.stores.write(store, lambda: self._service.aremember(store, closing))
