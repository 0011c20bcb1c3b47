"""How the pending updates of one owner get into the tiers: claimed, extracted, applied and acknowledged in one commit.

Killed before that commit, the model is asked again for one portion; after it, the update is done.
"""

import logging
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
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
from memory.journal.journal import HeldJournal, read_held, redact
from memory.message import StoredMessage
from memory.namespaces import Owner
from memory.outbox import outbox
from memory.outbox.entry import Entry
from memory.outbox.receipts import UpdateReceipt, read_seen, receipt_put, seen_put, trim_receipts
from memory.queue.schedule import asked_to_wait, is_retryable, may_blame_text, retry_delay, says_not_now
from memory.text import digest
from memory.worker.effects import AwaitStart, ModelCall, Terms, WorkerEffects
from memory.worker.journaling import Journaling
from memory.worker.reading import Reading, portions, read_together, remembered, together

logger = logging.getLogger(__name__)

_WAITS_TOGETHER = 3


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


def drain(owner: Owner, terms: Terms, thread_id: str | None = None) -> WorkerEffects[Drained]:
    """Apply what is pending for an owner, conversation by conversation; a failure of one does not stop the next.

    Args:
        owner: Whose memory it is.
        terms: Limits, worker and clock.
        thread_id: Only this conversation; `None` means all.
    """
    if not terms.config.enabled:
        return Drained()
    control, stored = yield from side_by_side(read_control(owner), outbox.read_entries(owner))
    entries = [entry for entry in stored if thread_id in (None, entry.thread_id)]
    cancelled = [entry for entry in entries if entry.epoch != control.epoch]
    now, longest, answering = terms.clock(), terms.config.retry_max_seconds, terms.answering
    ready = [one for one in entries if one.epoch == control.epoch and one.is_ready(now, longest, answering)]
    # One of those that wait may be what its model's server does not survive.
    alone: list[tuple[Entry, ...]] = [(entry,) for entry in ready if entry.waits >= _WAITS_TOGETHER]
    ready = [entry for entry in ready if entry.waits < _WAITS_TOGETHER]
    waiting = deque(together(ready, terms.config.portion_messages) + alone)
    until = (yield from terms.purse.look(owner)) if waiting else None
    receipts: list[UpdateReceipt] = []
    failed = 0
    while waiting and until is None:
        batch = waiting.popleft()
        if any(map(terms.is_held, batch)):
            continue
        try:
            yield from _update(batch, terms, receipts)
        except BudgetUsedUp as used_up:
            # No failure: what was read of the batch is applied, the rest of it waits as it is.
            until = used_up.until
            yield from _release(owner, batch, terms)
        except _Overtaken:
            logger.info("what was read of %d updates is read anew: it has changed", len(batch))
            yield from _release(owner, batch, terms)
        except Exception as error:  # a model or a store may fail in any way; the entries stay, and say so
            parted, noted = yield from _after_failure(owner, batch, error, terms)
            waiting.extend((entry,) for entry in parted)
            failed += noted
    left = yield from _settle(owner, cancelled)
    due = min((entry.due for entry in left if thread_id in (None, entry.thread_id)), default=None)
    if until is not None and due is not None:
        logger.warning("updates of %s wait for tomorrow: the budget of the day is used up", owner.due_key)
        due = max(due, until)
    waits = frozenset((entry.model, entry.thread_id) for entry in left if entry.waits)
    return Drained(tuple(receipts), len(cancelled), failed, due, waits)


@transaction
def _settle(owner: Owner, cancelled: Sequence[Entry]) -> StoreEffects[list[Entry]]:
    """Delete entries that an erase has cancelled, bring the due marker in line, and return what is left."""
    yield from outbox.remove(cancelled)
    return (yield from outbox.settle(owner))


@transaction
def _release(owner: Owner, batch: Sequence[Entry], terms: Terms) -> StoreEffects[None]:
    """Write the entries of a batch that nobody else has taken over as ones that nobody works on."""
    entries = yield from outbox.read_entries(owner, [entry.key for entry in batch])
    yield from outbox.write(entry.released() for entry in entries if terms.holds(entry))


@transaction
def _after_failure(
    owner: Owner, batch: Sequence[Entry], error: Exception, terms: Terms
) -> StoreEffects[tuple[Sequence[Entry], int]]:
    """Release a batch that failed for good, so that each entry is tried alone; of any other, note the failure.

    Returns:
        The entries to try alone, and in how many the failure was noted.
    """
    is_wait, now = says_not_now(error), terms.clock()
    pause = asked_to_wait(error, now) if is_wait else 0.0
    terms.answering.discard(batch[0].model)

    def is_final(entry: Entry) -> bool:
        return not is_wait and (entry.attempts + 1 >= terms.config.max_attempts or not is_retryable(error))

    entries = yield from outbox.read_entries(owner, [entry.key for entry in batch])
    # What another worker took over meanwhile is that worker's to judge.
    mine = [entry for entry in entries if entry.lease is None or terms.holds(entry)]
    if len(batch) > 1 and may_blame_text(error) and any(map(is_final, batch)):
        # One message may be to blame for all.
        alone = [entry.released() for entry in mine]
        yield from outbox.write(alone)
        return alone, 0
    failed = [
        replace(
            entry,
            state="dead" if is_final(entry) else "pending",
            attempts=entry.attempts + (not is_wait),
            waits=entry.waits + is_wait,
            due=now + max(pause, retry_delay((entry.waits if is_wait else entry.attempts) + 1, terms.config)),
            not_before=now + pause if pause else 0.0,
            lease=None,
            error=type(error).__name__,
        )
        for entry in mine
    ]
    # Nobody would write the lines of these, or not for long.
    if unread := [entry for entry in failed if entry.state == "dead" or (is_wait and entry.waits == 1)]:
        read = yield from _read(unread)
        if unread[-1].epoch == read.control.epoch:
            yield from _write_lines(read.journaling(unread[-1], terms))
    yield from outbox.write(failed)
    for entry in failed:
        tries = ("wait", entry.waits) if is_wait else ("attempt", entry.attempts)
        logger.warning("update %.12s failed with %s, %s %d, now %s", entry.key, entry.error, *tries, entry.state)
    return (), len(failed)


@dataclass(frozen=True, slots=True)
class _Read:
    """What memory holds beside entries of one thread: what they say that is new, and what an update of them needs."""

    control: Control
    reading: Reading
    flushed: dict[str, str]
    held: HeldJournal
    forgotten: frozenset[str]

    def journaling(self, entry: Entry, terms: Terms, harmless: Collection[str] = ()) -> Journaling:
        """Return the lines of what was read; `entry` is the newest of the entries."""
        return Journaling.of(
            entry,
            self.reading,
            self.held,
            self.forgotten,
            zone=self.control.zone,
            now=terms.now(),
            approval=stricter(terms.config.approval, self.control.approval),
            harmless=harmless,
        )


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


def _update(batch: Sequence[Entry], terms: Terms, receipts: list[UpdateReceipt]) -> WorkerEffects[None]:
    """Carry entries of one thread into the tiers, portion by portion, each with a receipt."""
    yield AwaitStart()
    owner = batch[0].owner
    if (found := (yield from _claim(owner, batch, terms))) is None:
        return
    claimed, read, snapshot = found
    cut = portions(read.reading.talk, terms.config.portion_messages) or [()]
    # A worker that dies between two portions takes the marks of the first along: what it read waits for a yes then.
    harmless = frozenset[str]()
    for number, portion in enumerate(cut, 1):
        if number > 1:  # it may be about what the portion before has taught
            snapshot = yield from read_snapshot(owner)
        extraction = yield from _extraction(claimed[-1], portion, snapshot, read.control.zone, terms)
        harmless |= extraction.harmless
        extraction = replace(extraction, harmless=harmless)
        later = frozenset(message.id for part in cut[number:] for message in part)
        receipts.append((yield from _apply(owner, claimed, portion, later, extraction, read.control.erased, terms)))


@transaction
def _claim(
    owner: Owner, batch: Sequence[Entry], terms: Terms
) -> StoreEffects[tuple[tuple[Entry, ...], _Read, MemorySnapshot] | None]:
    """Put this worker's lease on the entries, and read what an update of them needs; `None` if there is none to make.

    Somebody else was faster then, or changed them meanwhile.
    """
    there, read, snapshot = yield from side_by_side(
        outbox.read_entries(owner, [entry.key for entry in batch]), _read(batch), read_snapshot(owner)
    )
    if there != outbox.oldest_first(batch):
        return None
    if batch[-1].epoch != read.control.epoch:
        yield from outbox.remove(batch)
        return None
    claimed = tuple(replace(entry, state="running", lease=terms.lease()) for entry in batch)
    yield from outbox.write(claimed)
    return claimed, read, snapshot


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
    terms: Terms,
) -> StoreEffects[UpdateReceipt]:
    """Write what a portion taught, its lines and its receipt, and take it off the entries.

    Args:
        owner: Whose memory.
        claimed: The entries, as they were read for the model.
        portion: What the model was asked about.
        later: Ids of messages that it is asked about later: only after the last portion the entries are done.
        extraction: What it found, and what it marked in all portions so far.
        erased: How often facts were erased before it was asked.
        terms: Limits, worker and clock.

    Raises:
        _Overtaken: If the entries are others now, or something was erased that the model was shown.
    """
    last = claimed[-1]
    thread_id, epoch = last.thread_id, last.epoch
    there, read, outcome, _ = yield from side_by_side(
        outbox.read_entries(owner, [entry.key for entry in claimed]),
        _read(claimed),
        change_facts(owner, extraction, thread_id=thread_id, epoch=epoch, now=terms.now(), config=terms.config),
        trim_receipts(owner, 1),
    )
    mine = {entry.contents for entry in there if terms.holds(entry)}
    is_changed = any(entry.contents not in mine for entry in claimed)
    if is_changed or (read.control.epoch, read.control.erased) != (epoch, erased):
        raise _Overtaken
    is_done = not later
    journaling = read.journaling(last, terms, extraction.harmless) if is_done else None
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
        journal=journaling.counts if journaling else {},
        epoch=epoch,
    )
    yield [
        # What counts as flushed is never read again.
        seen_put(owner, thread_id, epoch, remembered(read.flushed, messages, terms.config.seen_limit)),
        receipt_put(owner, last.key if is_done else digest(last.key, *sorted(later)), receipt),
    ]
    if journaling:
        yield from _write_lines(journaling)
        yield from outbox.remove(claimed)
    else:
        yield from outbox.write(replace(entry, lease=terms.lease()) for entry in claimed)
    return receipt


def _write_lines(journaling: Journaling) -> StoreEffects[None]:
    if journaling.writes:
        yield list(journaling.writes)
    if journaling.gone:
        yield from redact(journaling.owner, journaling.gone)
    if journaling.hides:
        # The prompts that show a line know it by its id: after an edit by hand they choose anew.
        yield from count_edit(journaling.owner)
