"""How the pending updates of one owner get into the tiers: claimed, extracted, applied and acknowledged in one commit.

Killed before that commit, the model is asked again for one portion; after it, the update is done.
"""

import logging
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import partial

from memory.budget import BudgetUsedUp
from memory.config import stricter
from memory.control import INITIAL_EPOCH, Control, count_edit, read_control
from memory.door import transaction
from memory.effects import StoreEffects, side_by_side
from memory.extraction.extraction import extract_facts
from memory.facts.applying import change_facts
from memory.facts.changes import Extraction, reasons
from memory.facts.deletions import forgotten_messages
from memory.facts.profile import texts_of
from memory.facts.snapshot import MemorySnapshot, read_snapshot
from memory.journal.entry import JournalEntry, day_of, entries_of
from memory.journal.journal import HeldJournal, read_held, redact, writes_of
from memory.message import StoredMessage, with_replies
from memory.namespaces import Owner
from memory.text import digest
from memory.updates import outbox
from memory.updates.effects import AwaitStart, ModelCall, Terms, WorkerEffects
from memory.updates.entry import Entry
from memory.updates.lease import Lease, read_lease
from memory.updates.reading import Reading, portions, read_together, remembered, together
from memory.updates.receipts import UpdateReceipt, read_seen, receipt_put, seen_put, trim_receipts
from memory.updates.schedule import asked_to_wait, is_retryable, may_blame_text, retry_delay, says_not_now
from memory.updates.transcript import exchanges

logger = logging.getLogger(__name__)

_WAITS_TOGETHER = 3


class _LeaseLost(Exception):
    """Another worker has the user: nothing is written, and no attempt counted."""


class _Overtaken(Exception):
    """What was read for a model is no longer what is there: nothing of its answer is written."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What draining one owner came to.

    Attributes:
        receipts: What each update did, in ids and counts.
        cancelled: How many entries were dropped because of an erase.
        failed: How many are to be tried again, or became dead letters.
        due: When the next of those that are left is due, in seconds since the epoch; `None` if none is left.
        waiting: The models that could not be asked, each with a conversation that waits for it.
    """

    receipts: tuple[UpdateReceipt, ...] = ()
    cancelled: int = 0
    failed: int = 0
    due: float | None = None
    waiting: frozenset[tuple[str, str]] = frozenset()


def drain(owner: Owner, terms: Terms, thread_id: str | None = None, quiet: float = 0.0) -> WorkerEffects[Drained]:
    """Apply what is pending for an owner, conversation by conversation; a failure of one does not stop the next.

    Args:
        owner: Whose memory it is.
        terms: Limits, worker and clock.
        thread_id: Only this conversation; `None` means all.
        quiet: So many seconds after the last thing that was said there, whichever process wrote that down.
    """
    if not terms.config.enabled:
        return Drained()
    work = _Work()
    try:
        yield from _begin(owner, work, terms, thread_id, quiet)
        while work.waiting:
            batch = work.waiting.popleft()
            try:
                yield from _update(batch, work, terms)
            except _LeaseLost:
                raise
            except BudgetUsedUp as used_up:
                # No failure: what was read of the batch is applied, the rest of it waits as it is.
                work.until = used_up.until
                work.waiting.clear()
            except Exception as error:  # a model or a store may fail in any way; the entries stay, and say so
                yield from _after_failure(owner, batch, error, work, terms)
        left = work.left if work.is_over else (yield from _end(owner, terms))
    except _LeaseLost:
        logger.info("another worker has %s", owner.due_key)
        return replace(work.drained([]), due=terms.clock() + terms.config.retry_base_seconds)
    return work.drained([entry for entry in left if thread_id in (None, entry.thread_id)])


@dataclass(slots=True)
class _Work:
    """One drain under way: what waits in it, and what it came to."""

    waiting: deque[tuple[Entry, ...]] = field(default_factory=deque)
    receipts: list[UpdateReceipt] = field(default_factory=list)
    cancelled: int = 0
    failed: int = 0
    until: float | None = None
    more_until: float | None = None
    left: list[Entry] = field(default_factory=list)
    is_over: bool = False

    def drained(self, left: Sequence[Entry]) -> Drained:
        """Return what the drain came to, with what is left of it."""
        due = self.more_until or min((entry.due for entry in left), default=None)
        if self.until is not None and due is not None:
            logger.warning("updates of %s wait for tomorrow: the budget of the day is used up", left[0].owner.due_key)
            due = max(due, self.until)
        waits = frozenset((entry.model, entry.thread_id) for entry in left if entry.waits)
        return Drained(tuple(self.receipts), self.cancelled, self.failed, due, waits)

    def next_keys(self) -> list[str]:
        """Return the keys of what is read next."""
        return [entry.key for entry in self.waiting[0]] if self.waiting else []


@transaction
def _begin(owner: Owner, work: _Work, terms: Terms, thread_id: str | None, quiet: float) -> StoreEffects[None]:
    """Take the user, if anything is to be read, and delete what an erase has cancelled."""
    control, lease, stored, until = yield from side_by_side(
        read_control(owner), read_lease(owner), outbox.read_entries(owner), terms.purse.look(owner)
    )
    cancelled = [entry for entry in stored if thread_id in (None, entry.thread_id) and entry.epoch != control.epoch]
    left = [entry for entry in stored if entry not in cancelled]
    now, longest, answering = terms.clock(), terms.config.retry_max_seconds, terms.answering
    ready = [one for one in left if thread_id in (None, one.thread_id) and one.is_ready(now, longest, answering)]
    work.more_until = _quiet_until(ready, quiet, terms)
    # One of those that wait may be what its model's server does not survive.
    alone: list[tuple[Entry, ...]] = [(entry,) for entry in ready if entry.waits >= _WAITS_TOGETHER]
    ready = [entry for entry in ready if entry.waits < _WAITS_TOGETHER]
    waiting = deque(together(ready, terms.config.portion_messages) + alone)
    if waiting and until is None and not work.more_until:
        if not terms.may_take(lease):
            raise _LeaseLost
        work.waiting = waiting
        yield [terms.lease(work.next_keys()).write(owner)]
    else:
        work.until, work.left, work.is_over = until if waiting else None, outbox.without_dead(left), True
    yield from outbox.remove(cancelled)
    yield [outbox.due_marker(owner, left)]
    work.cancelled = len(cancelled)


def _quiet_until(fresh: Sequence[Entry], quiet: float, terms: Terms) -> float | None:
    """Return until when more may be said, in seconds since the epoch; `None` where it was quiet for long enough."""
    if not fresh:
        return None
    begun, last, now = min(entry.created for entry in fresh), max(entry.created for entry in fresh), terms.clock()
    # No later than if all had been said now: another process's clock may be ahead.
    until = min(last + quiet, begun + terms.config.max_wait_seconds, now + quiet)
    return until if until > now else None


@transaction
def _end(owner: Owner, terms: Terms) -> StoreEffects[list[Entry]]:
    """Give the user back, bring the due marker in line, and return what is left."""
    left, lease = yield from side_by_side(outbox.read_entries(owner), read_lease(owner))
    if lease.token == terms.token:
        yield [Lease().write(owner), outbox.due_marker(owner, left)]
    return outbox.without_dead(left)


@transaction
def _after_failure(
    owner: Owner, batch: Sequence[Entry], error: Exception, work: _Work, terms: Terms
) -> StoreEffects[None]:
    """Note the failure in the entries of a batch; of one that failed for good, each entry is tried alone first."""
    is_overtaken, is_wait, now = isinstance(error, _Overtaken), says_not_now(error), terms.clock()
    pause = asked_to_wait(error, now) if is_wait else 0.0
    if not is_overtaken:
        terms.answering.discard(batch[0].model)

    def is_final(entry: Entry) -> bool:
        return not (is_wait or is_overtaken) and (
            entry.attempts + 1 >= terms.config.max_attempts or not is_retryable(error)
        )

    entries, lease = yield from side_by_side(
        outbox.read_entries(owner, [entry.key for entry in batch]), read_lease(owner)
    )
    if lease.token != terms.token:
        raise _LeaseLost
    is_each_tried = len(batch) > 1 and may_blame_text(error) and any(map(is_final, batch))
    if is_each_tried:  # one message may be to blame for all
        work.waiting.extend((entry,) for entry in entries)
    yield [terms.lease(work.next_keys()).write(owner)]
    if is_each_tried:
        return
    failed = [
        replace(entry, rereads=entry.rereads + 1, due=now + retry_delay(entry.rereads + 1, terms.config))
        if is_overtaken
        else replace(
            entry,
            state="dead" if is_final(entry) else "pending",
            attempts=entry.attempts + (not is_wait),
            waits=entry.waits + is_wait,
            due=now + max(pause, retry_delay((entry.waits if is_wait else entry.attempts) + 1, terms.config)),
            not_before=now + pause if pause else 0.0,
            error=type(error).__name__,
        )
        for entry in entries
    ]
    # Nobody would write the lines of these, or not for long.
    if unread := [entry for entry in failed if entry.state == "dead" or (is_wait and entry.waits == 1)]:
        read = yield from _read(unread)
        if unread[-1].epoch == read.control.epoch:
            yield from read.write_lines(unread[-1], terms)
    yield from outbox.write(failed)
    for entry in failed:
        logger.warning(
            "update %.12s failed with %s, attempts %d, waits %d, read anew %d, now %s",
            *(entry.key, type(error).__name__, entry.attempts, entry.waits, entry.rereads, entry.state),
        )
    work.failed += 0 if is_overtaken else len(failed)


@dataclass(frozen=True, slots=True)
class _Read:
    """What memory holds beside entries of one thread: what they say that is new, and what an update of them needs."""

    control: Control
    reading: Reading
    flushed: dict[str, str]
    held: HeldJournal
    forgotten: frozenset[str]

    def write_lines(
        self, entry: Entry, terms: Terms, harmless: Collection[str] = ()
    ) -> StoreEffects[Mapping[str, int]]:
        """Write what was read into the journal; return how many messages come from a `turn`, and from a `cut`.

        Args:
            entry: The newest of the entries.
            terms: The clock, and what waits for the user's yes.
            harmless: Ids of the messages that the model marked so.
        """
        owner, reading, zone = entry.owner, self.reading, self.control.zone or UTC
        approval = stricter(terms.config.approval, self.control.approval)
        draft = JournalEntry(day_of(terms.now(), zone), entry.thread_id, (), entry.epoch, entry.model)
        cut = {message.id for message in reading.cut}
        gone = with_replies(reading.said, self.forgotten)
        said = [message for message in reading.said if message.id not in gone]
        fresh = entries_of(draft, exchanges(said), zone, cut, approval, harmless)
        if writes := writes_of(owner, self.held, fresh):
            yield writes
        if gone:
            yield from redact(owner, {entry.thread_id: gone})
        held = self.held.entries.values()
        told = {one.id: one.text for each in held for one in each.messages if one.id not in each.held}
        waits = [one for each in fresh for one in each.messages if one.id in each.held]
        if any(told.get(one.id, one.text) != one.text for one in waits):
            # The prompts that show a line know it by its id: after an edit by hand they choose anew.
            yield from count_edit(owner)
        sources = ["cut" if message.id in cut else "turn" for message in said]
        return {source: sources.count(source) for source in sorted(set(sources))}


def _read(entries: Sequence[Entry]) -> StoreEffects[_Read]:
    last = entries[-1]
    owner, thread_id, epoch = last.owner, last.thread_id, last.epoch
    ids = list(dict.fromkeys(message.id for entry in entries for message in entry.messages))
    is_cut = any(entry.kind == "cut" for entry in entries)
    control, flushed, held, forgotten = yield from side_by_side(
        read_control(owner),
        read_seen(owner, thread_id, epoch),
        read_held(owner, epoch, thread_id, ids, whole_thread=is_cut),
        forgotten_messages(owner, epoch, thread_id, ids),
    )
    reading = read_together(entries, flushed, after_erase=epoch != INITIAL_EPOCH)
    return _Read(control, reading, flushed, held, forgotten)


def _update(batch: Sequence[Entry], work: _Work, terms: Terms) -> WorkerEffects[None]:
    """Carry entries of one thread into the tiers, portion by portion, each with a receipt."""
    yield AwaitStart()
    owner = batch[0].owner
    there, read, snapshot = yield from side_by_side(
        outbox.read_entries(owner, [entry.key for entry in batch]), _read(batch), read_snapshot(owner)
    )
    if there != outbox.oldest_first(batch) or batch[-1].epoch != read.control.epoch:
        return  # they changed since this drain began: the next one reads them
    cut = portions(read.reading.talk, terms.config.portion_messages) or [()]
    # A worker that dies between two portions takes the marks of the first along: what it read waits for a yes then.
    harmless = frozenset[str]()
    for number, portion in enumerate(cut, 1):
        if number > 1:  # it may be about what the portion before has taught
            snapshot = yield from read_snapshot(owner)
        extraction = yield from _extraction(batch[-1], portion, snapshot, read.control.zone, terms)
        harmless |= extraction.harmless
        extraction = replace(extraction, harmless=harmless)
        later = frozenset(message.id for part in cut[number:] for message in part)
        erased = read.control.erased
        receipt, left = yield from _apply(owner, batch, portion, later, extraction, erased, work, terms)
        work.receipts.append(receipt)
        if left is not None:  # only now: what failed to commit has ended nothing
            work.left, work.is_over = left, True


def _extraction(
    entry: Entry,
    portion: Sequence[StoredMessage],
    snapshot: MemorySnapshot,
    zone: tzinfo | None,
    terms: Terms,
) -> WorkerEffects[Extraction]:
    """Return what a model finds in a portion; nothing is asked where there is nothing new."""
    if not portion:
        return Extraction()
    extract = partial(
        extract_facts,
        messages=portion,
        existing=snapshot.facts,
        profile=texts_of(snapshot.profile),
        config=terms.config,
        time_zone=zone,
    )
    terms.purse.check(entry.owner)
    try:
        found: Extraction = yield ModelCall(entry.model, extract, entry.owner, "extraction")
    except Exception:
        yield from terms.purse.save(entry.owner)  # a call that fails is paid for, too
        raise
    terms.answering.add(entry.model)
    yield from terms.purse.save(entry.owner)
    return found


@transaction
def _apply(
    owner: Owner,
    claimed: Sequence[Entry],
    portion: Sequence[StoredMessage],
    later: frozenset[str],
    extraction: Extraction,
    erased: int,
    work: _Work,
    terms: Terms,
) -> StoreEffects[tuple[UpdateReceipt, list[Entry] | None]]:
    """Write what a portion taught, its lines and its receipt, and delete the entries; the last gives the user back.

    Args:
        owner: Whose memory.
        claimed: The entries, as they were read for the model.
        portion: What the model was asked about.
        later: Ids of messages that it is asked about later: only after the last portion the entries are done.
        extraction: What it found, and what it marked in all portions so far.
        erased: How often facts were erased before it was asked.
        work: The drain.
        terms: Limits, worker and clock.

    Raises:
        _LeaseLost: If another worker has the user now.
        _Overtaken: If the entries are others now, or something was erased that the model was shown.
    """
    last = claimed[-1]
    thread_id, epoch = last.thread_id, last.epoch
    is_done = not later
    is_last = is_done and not work.waiting
    there, lease, read, outcome, _ = yield from side_by_side(
        outbox.read_entries(owner, None if is_last else [entry.key for entry in claimed]),
        read_lease(owner),
        _read(claimed),
        change_facts(owner, extraction, thread_id=thread_id, epoch=epoch, now=terms.now(), config=terms.config),
        trim_receipts(owner, 1),
    )
    if lease.token != terms.token:
        raise _LeaseLost
    is_there = {entry.contents for entry in there}.issuperset(entry.contents for entry in claimed)
    if not is_there or (read.control.epoch, read.control.erased) != (epoch, erased):
        raise _Overtaken
    lines = (yield from read.write_lines(last, terms, extraction.harmless)) if is_done else {}
    messages = [message for message in read.reading.all if message.id not in later]
    receipt = UpdateReceipt(
        time=terms.now(),
        thread_id=thread_id,
        created=outcome.created,
        confirmed=outcome.confirmed,
        superseded=outcome.superseded,
        refused=reasons(outcome.refused),
        waiting=outcome.waiting,
        messages=tuple(message.id for message in portion if not message.seen and message.id not in later),
        journal=lines,
        epoch=epoch,
    )
    yield [
        # What counts as flushed is never read again.
        seen_put(owner, thread_id, epoch, remembered(read.flushed, messages, terms.config.seen_limit)),
        receipt_put(owner, last.key if is_done else digest(last.key, *sorted(later)), receipt),
    ]
    if is_done:
        yield from outbox.remove(claimed)
    if is_last:
        left = [entry for entry in there if entry not in claimed]
        yield [Lease().write(owner), outbox.due_marker(owner, left)]
        return receipt, outbox.without_dead(left)
    yield [terms.lease(work.next_keys() if is_done else (entry.key for entry in claimed)).write(owner)]
    return receipt, None
