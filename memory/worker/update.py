"""How the pending updates of one owner get into the tiers: claimed, extracted, applied, acknowledged.

Killed at any point, the next worker ends in the same place: what the model found is journaled in an entry before
it is applied, applying twice is the same as once, and the entries go last.
"""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial

from langgraph.store.base import Item

from memory.budget import BudgetUsedUp
from memory.control import INITIAL_EPOCH, Epochs, read_approval, read_epochs, read_known_time_zone
from memory.effects import StoreEffects, side_by_side
from memory.erase import forget_rows
from memory.extraction.extraction import extract_facts
from memory.facts.applying import change_facts
from memory.facts.changes import Extraction, reasons
from memory.facts.deletions import LastErasure, read_erasure
from memory.facts.profile import drop_sections, texts_of
from memory.facts.rows import take_back
from memory.facts.snapshot import MemorySnapshot, read_snapshot
from memory.journal.journal import HeldJournal, read_held
from memory.namespaces import Owner
from memory.outbox import outbox
from memory.outbox.entry import Entry, ExtractionProgress, edited_away_in
from memory.outbox.receipts import UpdateReceipt, read_seen, receipt_put, seen_put, trim_receipts
from memory.queue.schedule import asked_to_wait, is_retryable, may_blame_text, retry_delay, says_not_now
from memory.worker.effects import AwaitStart, ModelCall, Terms, WorkerEffects
from memory.worker.journaling import Journaling
from memory.worker.reading import Reading, covered, portions, read_together, remembered, together

logger = logging.getLogger(__name__)

_WAITS_TOGETHER = 3


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
    epochs, stored = yield from side_by_side(read_epochs(owner), outbox.read_entries(owner))
    entries = [entry for entry in stored if thread_id in (None, entry.thread_id)]
    cancelled = [entry for entry in entries if _is_cancelled(entry, epochs)]
    yield from outbox.remove(cancelled)
    receipts: list[UpdateReceipt] = []
    done = {entry.key for entry in cancelled}
    failed = 0
    now, longest, answering = terms.clock(), terms.config.retry_max_seconds, terms.answering
    ready = [one for one in entries if not _is_cancelled(one, epochs) and one.is_ready(now, longest, answering)]
    # One of those that wait may be what its model's server does not survive.
    alone: list[tuple[Entry, ...]] = [(entry,) for entry in ready if entry.waits >= _WAITS_TOGETHER]
    ready = [entry for entry in ready if entry.waits < _WAITS_TOGETHER]
    # What was extracted and not applied comes first, in the batch in which it was extracted.
    started = [covered(entry, ready) for entry in ready if entry.extracted]
    rest = [entry for entry in ready if not any(entry in batch for batch in started)]
    waiting = deque(started + together(rest, terms.config.portion_messages) + alone)
    until = (yield from terms.purse.look(owner)) if waiting else None
    while waiting and until is None:
        batch = waiting.popleft()
        if any(map(terms.is_held, batch)):
            continue
        try:
            receipt = yield from _update(batch, terms)
        except BudgetUsedUp as used_up:
            # No failure: what was read of the batch is journaled, the rest of it waits as it is.
            until = used_up.until
            yield from outbox.write((yield from _released(batch, terms)))
        except Exception as error:  # a model or a store may fail in any way; the entries stay, and say so
            parted, noted = yield from _after_failure(batch, error, terms)
            waiting.extend((entry,) for entry in parted)
            failed += noted
        else:
            receipts.extend([receipt] if receipt else [])
            done |= {entry.key for entry in batch}
    left = yield from outbox.settle(
        owner, [entry for entry in stored if entry.key not in done and entry.state != "dead"]
    )
    due = min((entry.due for entry in left if thread_id in (None, entry.thread_id)), default=None)
    if until is not None and due is not None:
        logger.warning("updates of %s wait for tomorrow: the budget of the day is used up", owner.due_key)
        due = max(due, until)
    waits = frozenset((entry.model, entry.thread_id) for entry in left if entry.waits)
    return Drained(tuple(receipts), len(cancelled), failed, due, waits)


def _released(batch: Sequence[Entry], terms: Terms) -> StoreEffects[list[Entry]]:
    """Read the entries of a batch that nobody else has taken over, as ones that nobody works on."""
    entries = yield from outbox.read_entries(batch[0].owner, [entry.key for entry in batch])
    return [entry.released() for entry in entries if entry.lease is None or terms.holds(entry)]


def _is_cancelled(entry: Entry, epochs: Epochs) -> bool:
    return epochs.cancels(entry.epoch, entry.thread_id, entry.thread_epoch)


def _after_failure(batch: Sequence[Entry], error: Exception, terms: Terms) -> StoreEffects[tuple[Sequence[Entry], int]]:
    """Release a batch that failed for good, so that each entry is tried alone; of any other, note the failure.

    Returns:
        The entries to try alone, and in how many the failure was noted.
    """
    is_wait, now = says_not_now(error), terms.clock()
    pause = asked_to_wait(error, now) if is_wait else 0.0
    terms.answering.discard(batch[0].model)

    def is_final(entry: Entry) -> bool:
        return not is_wait and (entry.attempts + 1 >= terms.config.max_attempts or not is_retryable(error))

    entries = yield from outbox.read_entries(batch[0].owner, [entry.key for entry in batch])
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
    # Before they are marked: from then on nobody would write these lines, or not for long.
    if unread := [entry for entry in failed if entry.state == "dead" or (is_wait and entry.waits == 1)]:
        yield from _journal_unread(unread, terms)
    yield from outbox.write(failed)
    for entry in failed:
        tries = ("wait", entry.waits) if is_wait else ("attempt", entry.attempts)
        logger.warning("update %.12s failed with %s, %s %d, now %s", entry.key, entry.error, *tries, entry.state)
    return (), len(failed)


def _update(batch: Sequence[Entry], terms: Terms) -> WorkerEffects[UpdateReceipt | None]:
    """Carry entries of one thread into the tiers; the last of them holds the progress of an extraction, if any does.

    Returns:
        The receipt, or `None` if somebody else took the entries or an erase cancelled them.
    """
    yield AwaitStart()
    claimed = yield from _claim(batch, terms)
    if not claimed:
        return None
    last = claimed[-1]
    owner, thread_id, epoch = last.owner, last.thread_id, last.epoch
    is_mine, epochs, flushed, snapshot, erasure, (zone, held, chosen) = yield from side_by_side(
        _are_mine(claimed, terms),
        read_epochs(owner),
        read_seen(owner, thread_id, epoch),
        read_snapshot(owner),
        read_erasure(owner, epoch),
        side_by_side(read_known_time_zone(owner), _read_held(claimed), read_approval(owner)),
    )
    if not is_mine:
        return None
    # Claiming may have written again what an erase had deleted; its text must not reach a model.
    if _is_cancelled(last, epochs):
        yield from outbox.remove(claimed)
        return None
    reading = read_together(claimed, flushed, after_erase=epoch != INITIAL_EPOCH)
    config = replace(terms.config, approval=terms.config.approval | chosen)
    extraction = yield from _extraction(claimed, reading, snapshot, zone, replace(terms, config=config))
    if extraction is None:
        return None
    outcome, note = yield from change_facts(
        owner, extraction, thread_id=thread_id, epoch=epoch, now=terms.now(), config=terms.config
    )
    journaling = Journaling.of(last, reading, held, zone=zone, now=terms.now(), approval=config.approval)
    # Not before everything is applied: what counts as flushed is never read again.
    flushed = remembered(flushed, reading.all, terms.config.seen_limit)
    receipt = UpdateReceipt(
        time=terms.now(),
        thread_id=thread_id,
        created=outcome.created,
        confirmed=outcome.confirmed,
        superseded=outcome.superseded,
        refused=reasons(outcome.refused),
        waiting=outcome.waiting,
        messages=tuple(message.id for message in reading.talk if not message.seen),
        journal=journaling.counts,
        epoch=epoch,
    )
    overwritten, *_ = yield journaling.with_reading(
        *note, seen_put(owner, thread_id, epoch, flushed), receipt_put(owner, last.key, receipt)
    )
    is_cancelled = yield from _look_again(claimed, extraction, erasure, journaling, overwritten)
    return None if is_cancelled else receipt


def _look_again(
    claimed: Sequence[Entry],
    extraction: Extraction,
    erasure: LastErasure,
    journaling: Journaling,
    overwritten: Item | None,
) -> StoreEffects[bool]:
    """Take back what an erase or another worker made wrong meanwhile, then remove the entries.

    It is called after the last write, so that an erase either sees these rows or is seen here.

    Returns:
        Whether an erase cancelled the update.
    """
    last = claimed[-1]
    owner, epoch = last.owner, last.epoch
    epochs, erased, stored, gone, _ = yield from side_by_side(
        read_epochs(owner),
        read_erasure(owner, epoch),
        outbox.read_entries(owner, [entry.key for entry in claimed]),
        journaling.read_forgotten(),
        trim_receipts(owner),
    )
    yield from journaling.settle(overwritten, gone)
    if erased != erasure:
        # The model was shown a profile that may have told of what is erased by now.
        told = {section.name for section in extraction.profile}
        yield from drop_sections(owner, epoch, lambda name, _: name in told)
    is_cancelled = _is_cancelled(last, epochs)
    if epochs.epoch != epoch:
        yield from take_back(owner, epoch)
    if is_cancelled:
        yield from forget_rows(owner, last.thread_id, epoch)
    # The entries go last: a worker that is killed before this is followed by one that ends in the same place.
    read = {entry.contents for entry in claimed}
    # One that says something else now stays: nobody has read that.
    yield from outbox.remove(entry for entry in stored if entry.contents in read)
    return is_cancelled


def _journal_unread(entries: Sequence[Entry], terms: Terms) -> StoreEffects[None]:
    """Write the lines of entries that no model has read: what was said is known, whatever one makes of it."""
    last = entries[-1]
    owner, thread_id, epoch = last.owner, last.thread_id, last.epoch
    epochs, flushed, zone, (held, chosen) = yield from side_by_side(
        read_epochs(owner),
        read_seen(owner, thread_id, epoch),
        read_known_time_zone(owner),
        side_by_side(_read_held(entries), read_approval(owner)),
    )
    reading = read_together(entries, flushed, after_erase=epoch != INITIAL_EPOCH)
    journaling = Journaling.of(last, reading, held, zone=zone, now=terms.now(), approval=terms.config.approval | chosen)
    if _is_cancelled(last, epochs) or not journaling.writes:
        return
    overwritten, *_ = yield journaling.with_reading()
    epochs, gone = yield from side_by_side(read_epochs(owner), journaling.read_forgotten())
    if _is_cancelled(last, epochs):
        yield from forget_rows(owner, thread_id, epoch)
    else:
        yield from journaling.settle(overwritten, gone)


def _read_held(entries: Sequence[Entry]) -> StoreEffects[HeldJournal]:
    """Read what the journal has of what entries of one thread hold."""
    last = entries[-1]
    ids = dict.fromkeys(message.id for entry in entries for message in entry.messages)
    is_cut = any(entry.kind == "cut" for entry in entries)
    return read_held(last.owner, last.epoch, last.thread_id, ids, whole_thread=is_cut)


def _claim(batch: Sequence[Entry], terms: Terms) -> StoreEffects[tuple[Entry, ...]]:
    """Put this worker's lease on the entries; return none if somebody else was faster, or changed them meanwhile.

    Somebody may still do so at the same moment: `_are_mine` tells who was the last.
    """
    if (yield from outbox.read_entries(batch[0].owner, [entry.key for entry in batch])) != outbox.oldest_first(batch):
        return ()
    claimed = tuple(replace(entry, state="running", lease=terms.lease()) for entry in batch)
    yield from outbox.write(claimed)
    return claimed


def _are_mine(claimed: Sequence[Entry], terms: Terms) -> StoreEffects[bool]:
    """Say whether every entry is still there under this worker's lease; if not, those that are get free again."""
    entries = yield from outbox.read_entries(claimed[0].owner, [entry.key for entry in claimed])
    mine = [entry for entry in entries if terms.holds(entry)]
    if len(mine) == len(claimed):
        return True
    yield from outbox.write(entry.released() for entry in mine)
    return False


def _extraction(
    claimed: Sequence[Entry], reading: Reading, snapshot: MemorySnapshot, zone: tzinfo | None, terms: Terms
) -> WorkerEffects[Extraction | None]:
    """Return what the messages say: as journaled before, the rest from the model, journaled portion by portion.

    `None` if the entries were taken away while the model was asked.
    """
    last = claimed[-1]
    size = terms.config.portion_messages
    found, done = Extraction(), 0
    if last.extracted and last.extracted.covers(claimed, size):
        found, done = last.extracted.result, last.extracted.portions
    for number, portion in enumerate(portions(reading.talk, size)[done:], done + 1):
        extract = partial(
            extract_facts,
            messages=portion,
            existing=snapshot.facts,
            profile=texts_of(snapshot.profile),
            config=terms.config,
            time_zone=zone,
        )
        terms.purse.check(last.owner)
        try:
            part: Extraction = yield ModelCall(last.model, extract, last.owner, "extraction")
        except Exception:
            yield from terms.purse.save(last.owner)  # a call that fails is paid for, too
            raise
        terms.answering.add(last.model)
        yield from terms.purse.save(last.owner)
        # Others may have taken over while the model was slow, and found it in other words: then theirs count.
        if not (yield from _are_mine(claimed, terms)):
            return None
        found = Extraction(
            changes=found.changes + part.changes,
            refused=found.refused + part.refused,
            profile=found.profile + part.profile,
        )
        progress = ExtractionProgress(
            entries=tuple(entry.key for entry in claimed),
            edited_away=edited_away_in(claimed),
            portions=number,
            size=size,
            result=found,
        )
        yield from outbox.write([replace(last, lease=terms.lease(), extracted=progress)])
    return found
