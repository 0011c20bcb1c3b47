"""How the pending updates of one owner get into the tiers: claimed, extracted, applied and acknowledged in one commit.

Killed before that commit, the model is asked again for one portion; after it, the update is done.

Each transaction of a drain ends with the same step (`_next`): it reads what a model is asked about next, and goes on
with the user's lease, or gives the user back.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import partial
from uuid import uuid4

from memory.config import stricter
from memory.control import INITIAL_EPOCH, Control, read_control
from memory.door import StoreEffects, ask, read, scan, side_by_side, transaction
from memory.extraction.extraction import extract_facts
from memory.facts.applying import change_facts
from memory.facts.changes import Extraction
from memory.facts.profile import texts_of
from memory.facts.rows import MemorySnapshot, forgotten_messages, read_snapshot
from memory.journal.entry import JournalEntry, entries_of
from memory.journal.journal import hold_repeats, read_held, redact_journal, tell
from memory.message import StoredMessage, day_of, with_replies
from memory.namespaces import thread_namespace
from memory.text import digest
from memory.updates import learned, outbox
from memory.updates.budget import BudgetUsedUp, Job
from memory.updates.entry import Entry, Overtaken
from memory.updates.lease import Lease, LeaseLost, Worker, read_lease
from memory.updates.receipts import UpdateReceipt, write_receipt
from memory.updates.transcript import Reading, exchanges, together

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Claim:
    """Entries of one thread that a model is asked about.

    Attributes:
        batch: The entries.
        later: What is asked about behind them.
        control: The user's control when they were read.
        reading: What they hold, and what was flushed before.
        parts: The portions that are still to be read: one call of the model each.
        snapshot: What is known of the user, as the model is shown.
        marked: The model's marks in earlier portions, in memory only: if the worker dies between two portions, the
            messages of these wait for a yes.
        unmarked: Ids of messages in earlier portions without a mark as harmless; a long one may go on in the next.
    """

    batch: tuple[Entry, ...]
    later: Sequence[tuple[Entry, ...]]
    control: Control
    reading: Reading
    parts: Sequence[tuple[StoredMessage, ...]]
    snapshot: MemorySnapshot
    marked: Extraction = Extraction()  # noqa: RUF009 - a frozen value
    unmarked: frozenset[str] = frozenset()

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(entry.key for entry in self.batch)


@dataclass(slots=True)
class Drain(Job):
    """The work of applying what is pending for an owner, conversation by conversation, and what it came to.

    Attributes:
        worker: The process that carries it out.
        only: Only this conversation; `None` means all.
        quiet: So many seconds after the last thing that was said there, whichever process wrote that down.
        is_woken: Whether to read at once what waited for its model.
        token: Of its lease, a random one.
        receipts: What each update did, in ids and counts.
        cancelled: How many entries were dropped because of an erase.
        failed: How many are to be tried again, or became dead letters.
    """

    worker: Worker
    only: str | None = None
    quiet: float = 0.0
    is_woken: bool = False
    token: str = field(default_factory=lambda: uuid4().hex)
    receipts: list[UpdateReceipt] = field(default_factory=list)
    cancelled: int = 0
    failed: int = 0
    _left: list[Entry] = field(default_factory=list)
    _goes_on: float | None = None

    @property
    def due(self) -> float | None:
        """When the next of those that are left is due, in seconds since the epoch; `None` if none is left."""
        return self._goes_on or min((entry.due for entry in self._waits()), default=None)

    @property
    def waiting(self) -> frozenset[str]:
        """The conversations that wait for a model that could not be asked."""
        # An overtaken entry has no error: it must not be woken by another's success, in the middle of a conversation.
        return frozenset(entry.thread_id for entry in self._waits() if entry.waits and entry.error)

    def _waits(self) -> list[Entry]:
        return [entry for entry in self._left if entry.state != "dead" and self.only in (None, entry.thread_id)]

    def run(self) -> None:
        """Do it; a failure of one conversation does not stop the next."""
        if not self.config.enabled:
            return
        self.worker.under_way.add(self.token)  # while it goes on, its lease is nobody else's of this process
        try:
            claim: _Claim | None = self.do(self._begin())
            while claim:
                try:
                    receipt, claim = self.do(self._apply(claim, self._extract(claim)))
                    self.receipts.append(receipt)
                except LeaseLost:
                    raise
                except Exception as error:  # a model or a store may fail in any way; the entries stay, and say so
                    claim = self.do(self._after_failure(claim, error))
        except LeaseLost:
            logger.info("another worker has %s", self.owner.due_key)
            self._left, self._goes_on = [], self.clock() + self.config.retry_base_seconds
        finally:
            self.worker.under_way.discard(self.token)

    @transaction
    async def _begin(self) -> _Claim | None:
        """Delete what an erase has cancelled, take the user if there is anything to read, and return what is first."""
        # What `_read` reads of one conversation comes in this batch, too.
        control, stored, *_ = await side_by_side(
            read_control(self.owner),
            outbox.read_entries(self.owner),
            read_lease(self.owner),
            learned.read_flushed(self.owner, self.only or ""),
            scan(self.owner.namespace("facts")),
            scan(self.owner.namespace("profile")),
        )
        self._left = [entry for entry in stored if entry.epoch == control.epoch]
        self.cancelled = len(stored) - len(self._left)
        await outbox.change(self.owner, stored, self._left)
        await outbox.mark(self.owner, self._left)
        now, config = self.clock(), self.config
        asked = [entry for entry in self._left if self.only in (None, entry.thread_id)]
        ready = [entry for entry in asked if entry.is_ready(now, config, is_woken=self.is_woken)]
        if not ready:
            return None
        # No later than if all had been said now: another process's clock may be ahead.
        begun, last = min(entry.created for entry in ready), max(entry.created for entry in ready)
        quiet_from = min(last + self.quiet, begun + config.max_wait_seconds, now + self.quiet)
        if quiet_from > now:
            self._goes_on = quiet_from
            return None
        first, *later = together(ready, config)
        await self._hold([entry.key for entry in first], is_new=True)
        return await self._read(first, later)

    async def _next(self, later: Sequence[tuple[Entry, ...]]) -> _Claim | None:
        """Return what a model is asked about next, and go on with the user; or give them back, if nothing is left.

        Args:
            later: What may be next, in its order.

        Raises:
            LeaseLost: If another worker has the user now: nothing of the transaction is written.
        """
        while later:
            batch, *later = later
            claim, there = await side_by_side(
                self._read(batch, later), outbox.read_entries(self.owner, [entry.key for entry in batch])
            )
            # Entries that changed since this drain began are read by the next one.
            if {*there} == {*batch} and claim.control.epoch == batch[-1].epoch:
                await self._hold(claim.keys)
                return claim
        self._left = await outbox.read_entries(self.owner)
        await outbox.mark(self.owner, self._left)
        await self._hold(None)
        return None

    async def _read(self, batch: Sequence[Entry], later: Sequence[tuple[Entry, ...]] = ()) -> _Claim:
        owner, last = self.owner, batch[-1]
        control, flushed, snapshot = await side_by_side(
            read_control(owner), learned.read_flushed(owner, last.thread_id), read_snapshot(owner)
        )
        reading = Reading.of(batch, flushed, after_erase=last.epoch != INITIAL_EPOCH)
        # In the transaction, which leaves the event loop to others: a long text is cut into many pieces.
        parts = reading.portions(self.config.portion_messages) or [()]
        return _Claim(tuple(batch), later, control, reading, parts, snapshot)

    async def _hold(self, keys: Collection[str] | None, *, is_new: bool = False) -> None:
        """Go on with the user while a model is asked about the updates of these keys; `None` gives the user back.

        Raises:
            LeaseLost: If another worker has them now: nothing of the transaction is written.
        """
        now, me, lease = self.clock(), self.worker, await read_lease(self.owner)
        if not (lease.is_free(now, me) if is_new else lease.token == self.token):
            raise LeaseLost
        until = now + self.config.lease_seconds
        held = Lease() if keys is None else Lease(self.token, until, me.host, me.pid, tuple(keys))
        await ask(held.put(self.owner))

    def _extract(self, claim: _Claim) -> Extraction:
        """Return what a model finds in the next portion, with what it marked in all so far."""
        found, marked, here = Extraction(), claim.marked, {message.id for message in claim.parts[0]}
        if here:
            extract = partial(
                extract_facts,
                messages=claim.parts[0],
                existing=claim.snapshot.at(self.clock()).facts,
                profile=texts_of(claim.snapshot.profile),
                config=self.config,
                time_zone=claim.control.zone,
            )
            found = self.ask(claim.batch[-1].model, "extraction", extract)
        # Of a message in several portions each has to be harmless.
        harmless = (marked.harmless - here) | (found.harmless - claim.unmarked)
        orders = claim.reading.orders | marked.orders | found.orders
        return replace(found, harmless=harmless, secrets=marked.secrets + found.secrets, orders=orders)

    @transaction
    async def _apply(self, claim: _Claim, found: Extraction) -> tuple[UpdateReceipt, _Claim | None]:
        """Write what a portion taught and its receipt; after the last one, write the lines and delete the entries.

        Args:
            claim: The entries, and what was there when the model was asked.
            found: What the model found, and what it marked in all portions so far.

        Returns:
            The receipt, and what is read next.

        Raises:
            LeaseLost: If another worker has the user now.
            Overtaken: If the entries are others now, or something was erased that the model was shown.
        """
        portion, *rest = claim.parts
        later = frozenset(message.id for part in rest for message in part)
        last, owner, now, is_done = claim.batch[-1], self.owner, self.now(), not rest
        # After the last portion of all, what is left is read with the rest.
        keys = claim.keys if rest or claim.later else None
        # A transaction reads each thing once: receipts and lines, which are written below, come in this batch.
        (there, control, flushed), outcome, _, _ = await side_by_side(
            side_by_side(
                outbox.read_entries(owner, keys),
                read_control(owner),
                learned.read_flushed(owner, last.thread_id),
            ),
            change_facts(owner, found, thread_id=last.thread_id, epoch=last.epoch, now=now, config=self.config),
            side_by_side(
                self._hold(claim.keys),
                scan(owner.namespace("receipts")),
                read(thread_namespace(last.thread_id), owner.due_key),
            ),
            self._read_lines(claim),
        )
        is_there = {entry.contents for entry in there}.issuperset(entry.contents for entry in claim.batch)
        if not is_there or (control.epoch, control.erased) != (last.epoch, claim.control.erased):
            raise Overtaken
        await hold_repeats(owner, control)
        new = tuple(message.id for message in portion if not message.seen and message.id not in later)
        receipt = UpdateReceipt.of(outcome, time=now, thread_id=last.thread_id, messages=new)
        await write_receipt(owner, last.key if is_done else digest(last.key, *sorted(later)), receipt)
        # A turn may have taken words out of it, while the model was asked, that are to be read again.
        reading = replace(claim.reading, flushed=flushed)
        after = reading.flushed_after(later, found.orders, self.config.seen_limit)
        await learned.write_flushed(owner, last.thread_id, after)
        if is_done:
            await self._tell(claim, control, found)
            await outbox.change(owner, claim.batch, ())
            await learned.note_learned(owner, last.thread_id, claim.batch)
            return receipt, await self._next(claim.later)
        # The next portion may be about what this one has taught.
        snapshot = await read_snapshot(owner)
        unmarked = claim.unmarked.union(message.id for message in portion) - found.harmless
        return receipt, replace(claim, parts=rest, snapshot=snapshot, marked=found, unmarked=unmarked)

    @transaction
    async def _after_failure(self, claim: _Claim, error: Exception) -> _Claim | None:
        """Note in entries that a model was asked about them in vain, and return what is read next."""
        if isinstance(error, BudgetUsedUp):
            # No failure: what was read of the batch is applied, the rest of it waits as it is.
            logger.warning("updates of %s wait for tomorrow: the budget of the day is used up", self.owner.due_key)
            self._goes_on = error.until
            return await self._next(())
        before = await outbox.read_entries(self.owner, claim.keys)
        is_alone = len(claim.batch) == 1
        after = [entry.failed(error, self.clock(), self.config, is_alone=is_alone) for entry in before]
        # Nobody would write the lines of these, or not for long.
        if unread := [entry for entry in after if entry.state == "dead" or entry.waits == 1]:
            read = await self._read(unread)
            if read.control.epoch == unread[-1].epoch:
                await self._tell(read, read.control)
        await outbox.change(self.owner, before, after)
        for entry in after:
            logger.warning(
                "update %.12s failed with %s, attempts %d, waits %d, now %s",
                *(entry.key, type(error).__name__, entry.attempts, entry.waits, entry.state),
            )
        if not isinstance(error, Overtaken):
            self.failed += len(after)
        return await self._next(claim.later)

    def _read_lines(self, claim: _Claim) -> StoreEffects[tuple[dict[str, JournalEntry], frozenset[str]]]:
        """Read what the journal has of a claim's messages, and which of them deleted facts came from."""
        last, ids = claim.batch[-1], [message.id for message in claim.reading.every]
        is_cut = any(entry.kind == "cut" for entry in claim.batch)
        return side_by_side(
            read_held(self.owner, last.thread_id, ids, whole_thread=is_cut),
            forgotten_messages(self.owner, last.thread_id, ids),
        )

    async def _tell(
        self,
        claim: _Claim,
        control: Control,
        found: Extraction = Extraction(),  # noqa: B008 - a frozen value
    ) -> None:
        """Write what entries say into the journal.

        Args:
            claim: The entries.
            control: The user's, as it is now.
            found: What the model marked as harmless, as secrets and as orders.
        """
        held, forgotten = await self._read_lines(claim)
        last, said, owner = claim.batch[-1], claim.reading.for_journal, self.owner
        zone, approval = control.zone or UTC, stricter(self.config.approval, control.approval)
        gone = with_replies(said, forgotten)
        told = exchanges(message for message in said if message.id not in gone)
        draft = JournalEntry(day_of(self.now(), zone), last.thread_id, (), last.model, source="turn")
        # One of three digits is held here, and nowhere else.
        secrets = control.secrets.learned(found.secrets, self.token, least=3)
        orders = claim.reading.orders | found.orders
        fresh = entries_of(draft, told, zone, claim.reading.cut, approval, found.harmless, secrets, orders)
        await tell(owner, held, fresh)
        if gone:
            await redact_journal(owner, {last.thread_id: gone})
