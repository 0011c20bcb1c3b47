"""One owner's pending updates on their way into the tiers, as a job that yields store operations and model calls.

Killed at any point, the next worker ends in the same place: what the model found is journaled in an entry before
it is applied, applying twice is the same as once, and the entries go last.
"""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from memory.control import INITIAL_EPOCH, Epochs, read_epochs, read_time_zone
from memory.effects import StoreEffects, side_by_side
from memory.erase import forget_rows
from memory.extraction.extraction import extract_facts
from memory.facts.applying import change_facts
from memory.facts.changes import Extraction, Outcome, reasons
from memory.facts.deletions import forgotten_messages, read_erasure
from memory.facts.profile import drop_sections, texts_of
from memory.facts.rows import take_back
from memory.facts.snapshot import MemorySnapshot, read_snapshot
from memory.journal.journal import JournalEntry, append, day_of, entries_of, redact
from memory.message import StoredMessage, with_replies
from memory.namespaces import Owner
from memory.outbox import outbox
from memory.outbox.entry import Entry, ExtractionProgress, Lease, is_held
from memory.outbox.receipts import UpdateReceipt, read_seen, receipt_put, seen_put, trim_receipts
from memory.outbox.transcript import exchanges
from memory.queue.schedule import is_retryable, may_blame_text, retry_delay
from memory.worker.effects import AwaitStart, ModelCall, Terms, WorkerEffects
from memory.worker.reading import Reading, covered, portions, read_together, remembered, together

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Drained:
    """What draining one owner came to.

    Attributes:
        receipts: What each update did, in ids and counts.
        cancelled: How many entries were dropped because of an erase.
        failed: How many are to be tried again, or became dead letters.
        due: When the next of those that are left is due, in seconds since the epoch; `None` if none is left.
    """

    receipts: tuple[UpdateReceipt, ...] = ()
    cancelled: int = 0
    failed: int = 0
    due: float | None = None


def drain(owner: Owner, terms: Terms, thread_id: str | None = None) -> WorkerEffects[Drained]:
    """Apply what is pending for an owner, conversation by conversation; a failure of one does not stop the next.

    Args:
        owner: Whose memory it is.
        terms: Under which terms.
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
    ready = [entry for entry in entries if not _is_cancelled(entry, epochs) and _is_ready(entry, terms)]
    waiting = deque(_batches(ready, terms.config.portion_messages))
    while waiting:
        batch = waiting.popleft()
        if any(is_held(entry.lease, terms.clock(), terms.worker, terms.is_alive) for entry in batch):
            continue
        try:
            receipt = yield from _update(batch, terms)
        except Exception as error:  # a model or a store may fail in any way; the entries stay, and say so
            apart = yield from _taken_apart(batch, error, terms)
            waiting.extend(apart)
            failed += 0 if apart else (yield from _note_failure(batch, error, terms))
        else:
            receipts.extend([receipt] if receipt else [])
            done |= {entry.key for entry in batch}
    left = yield from outbox.settle(
        owner, [entry for entry in stored if entry.key not in done and entry.state != "dead"]
    )
    due = min((entry.due for entry in left if thread_id in (None, entry.thread_id)), default=None)
    return Drained(tuple(receipts), len(cancelled), failed, due)


def _is_cancelled(entry: Entry, epochs: Epochs) -> bool:
    return epochs.cancels(entry.epoch, entry.thread_id, entry.thread_epoch)


def _is_ready(entry: Entry, terms: Terms) -> bool:
    """A fresh entry is ready whenever somebody asks; one that failed waits until it is due again.

    No delay is longer than the longest: one that is was written under a clock that was ahead.
    """
    wait = entry.due - terms.clock()
    return entry.state != "dead" and (entry.attempts == 0 or not 0 < wait <= terms.config.retry_max_seconds)


def _batches(entries: Sequence[Entry], limit: int) -> list[tuple[Entry, ...]]:
    """Group what is updated together; what was extracted before and not applied comes first, as it was extracted."""
    started = [covered(entry, entries) for entry in entries if entry.extracted]
    rest = [entry for entry in entries if not any(entry in batch for batch in started)]
    return started + together(rest, limit)


def _taken_apart(batch: Sequence[Entry], error: Exception, terms: Terms) -> StoreEffects[list[tuple[Entry, ...]]]:
    """Free what failed together for good, to be tried one by one: one message may be to blame for all."""
    is_final = any(_is_final(entry, error, terms) for entry in batch)
    if len(batch) == 1 or not is_final or not may_blame_text(error):
        return []
    free = [replace(entry, state="pending", lease=None) for entry in (yield from _left_to_me(batch, terms))]
    yield from outbox.write(free)
    return [(entry,) for entry in free]


def _left_to_me(batch: Sequence[Entry], terms: Terms) -> StoreEffects[list[Entry]]:
    entries = yield from outbox.read_entries(batch[0].owner, [entry.key for entry in batch])
    return [entry for entry in entries if entry.lease is None or _is_mine(entry, terms)]


def _note_failure(batch: Sequence[Entry], error: Exception, terms: Terms) -> StoreEffects[int]:
    failed = [_failed(entry, error, terms) for entry in (yield from _left_to_me(batch, terms))]
    yield from outbox.write(failed)
    for entry in failed:
        logger.warning(
            "update %.12s failed with %s, attempt %d, now %s", entry.key, entry.error, entry.attempts, entry.state
        )
    return len(failed)


def _failed(entry: Entry, error: Exception, terms: Terms) -> Entry:
    attempts = entry.attempts + 1
    return replace(
        entry,
        state="dead" if _is_final(entry, error, terms) else "pending",
        attempts=attempts,
        due=terms.clock() + retry_delay(attempts, terms.config),
        lease=None,
        error=type(error).__name__,
    )


def _is_final(entry: Entry, error: Exception, terms: Terms) -> bool:
    return entry.attempts + 1 >= terms.config.max_attempts or not is_retryable(error)


def _update(batch: Sequence[Entry], terms: Terms) -> WorkerEffects[UpdateReceipt | None]:
    """Carry entries of one thread, the carrier of a journaled extraction last, into the tiers.

    Returns:
        The receipt, or `None` if somebody else took the entries or an erase cancelled them.
    """
    yield AwaitStart()
    claimed = yield from _claim(batch, terms)
    if not claimed:
        return None
    carrier = claimed[-1]
    owner, thread_id, epoch = carrier.owner, carrier.thread_id, carrier.epoch
    is_mine, epochs, flushed, snapshot, erasure = yield from side_by_side(
        _are_mine(claimed, terms),
        read_epochs(owner),
        read_seen(owner, thread_id, epoch),
        read_snapshot(owner),
        read_erasure(owner, epoch),
    )
    if not is_mine:
        return None
    # Claiming may have written again what an erase had deleted; its text must not reach a model.
    if _is_cancelled(carrier, epochs):
        yield from outbox.remove(claimed)
        return None
    reading = read_together(claimed, flushed, after_erase=epoch != INITIAL_EPOCH)
    extraction = yield from _extraction(claimed, reading, snapshot, terms)
    if extraction is None:
        return None
    outcome, note = yield from change_facts(
        owner, extraction, thread_id=thread_id, epoch=epoch, now=terms.now(), config=terms.config
    )
    yield from _journal_cut(carrier, reading, terms)
    # Not before everything is applied: what counts as flushed is never read again.
    flushed = remembered(flushed, reading.all, terms.config.seen_limit)
    receipt = _receipt(carrier, reading, outcome, terms)
    yield [*note, seen_put(owner, thread_id, epoch, flushed), receipt_put(owner, carrier.key, receipt)]
    # After the last write, so that an erase either sees these rows or is seen here.
    epochs, erased, stored, _ = yield from side_by_side(
        read_epochs(owner),
        read_erasure(owner, epoch),
        outbox.read_entries(owner, [entry.key for entry in claimed]),
        trim_receipts(owner),
    )
    if erased != erasure:
        # The model was shown a profile that may have told of what is erased by now.
        told = {section.name for section in extraction.profile}
        yield from drop_sections(owner, epoch, lambda name, _: name in told)
    is_cancelled = _is_cancelled(carrier, epochs)
    if epochs.epoch != epoch:
        yield from take_back(owner, epoch)
    if is_cancelled:
        yield from forget_rows(owner, thread_id, epoch)
    # The entries go last: a worker that is killed before this is followed by one that ends in the same place.
    yield from outbox.remove_read(claimed, stored)
    return None if is_cancelled else receipt


def _journal_cut(carrier: Entry, reading: Reading, terms: Terms) -> StoreEffects[None]:
    """Write what left the context into the journal, but nothing that a deleted fact came from."""
    if not reading.cut:
        return
    zone = yield from read_time_zone(carrier.owner)
    draft = JournalEntry(day_of(terms.now(), zone), carrier.thread_id, (), carrier.epoch, carrier.model)
    yield from append(carrier.owner, entries_of(draft, exchanges(reading.cut), zone))
    ids = [message.id for message in reading.cut]
    if gone := (yield from forgotten_messages(carrier.owner, carrier.epoch, carrier.thread_id, ids)):
        yield from redact(carrier.owner, {carrier.thread_id: with_replies(reading.cut, gone)})


def _claim(batch: Sequence[Entry], terms: Terms) -> StoreEffects[tuple[Entry, ...]]:
    """Put this worker's lease on the entries; return none if somebody else was faster, or changed them meanwhile.

    Somebody may still do so at the same moment: `_are_mine` tells who was the last.
    """
    if (yield from outbox.read_entries(batch[0].owner, [entry.key for entry in batch])) != outbox.oldest_first(batch):
        return ()
    claimed = tuple(replace(entry, state="running", lease=_lease(terms)) for entry in batch)
    yield from outbox.write(claimed)
    return claimed


def _lease(terms: Terms) -> Lease:
    return Lease(terms.worker, terms.clock() + terms.config.lease_seconds)


def _are_mine(claimed: Sequence[Entry], terms: Terms) -> StoreEffects[bool]:
    """Say whether every entry is still there under this worker's lease; if not, those that are get free again."""
    entries = yield from outbox.read_entries(claimed[0].owner, [entry.key for entry in claimed])
    mine = [entry for entry in entries if _is_mine(entry, terms)]
    if len(mine) == len(claimed):
        return True
    yield from outbox.write(replace(entry, state="pending", lease=None) for entry in mine)
    return False


def _is_mine(entry: Entry, terms: Terms) -> bool:
    return entry.lease is not None and entry.lease.worker == terms.worker


def _extraction(
    claimed: Sequence[Entry], reading: Reading, snapshot: MemorySnapshot, terms: Terms
) -> WorkerEffects[Extraction | None]:
    """Return what the messages say: as journaled before, the rest from the model, journaled portion by portion.

    `None` if the entries were taken away while the model was asked.
    """
    carrier = claimed[-1]
    size = terms.config.portion_messages
    found, done = _journaled(claimed, size)
    for number, portion in enumerate(portions(reading.talk, size)[done:], done + 1):
        part = yield from _ask(carrier, portion, snapshot, terms)
        # Others may have taken over while the model was slow, and found it in other words: then theirs count.
        if not (yield from _are_mine(claimed, terms)):
            return None
        found = _joined(found, part)
        keys, without = tuple(entry.key for entry in claimed), _edited_away(claimed)
        journal = ExtractionProgress(entries=keys, edited_away=without, portions=number, size=size, result=found)
        yield from outbox.write([replace(carrier, lease=_lease(terms), extracted=journal)])
    return found


def _journaled(claimed: Sequence[Entry], size: int) -> tuple[Extraction, int]:
    """Return what an earlier worker found, and in how many portions of the messages.

    Nothing, if it read other entries, or others of their messages, or cut other portions than today's.
    """
    journal = claimed[-1].extracted
    if not journal or journal.size not in (None, size) or {*journal.entries} != {entry.key for entry in claimed}:
        return Extraction(), 0
    if journal.edited_away != _edited_away(claimed):
        return Extraction(), 0
    return journal.result, journal.portions


def _edited_away(claimed: Sequence[Entry]) -> tuple[str, ...]:
    return tuple(sorted({message_id for entry in claimed for message_id in entry.edited_away}))


def _ask(
    carrier: Entry, portion: Sequence[StoredMessage], snapshot: MemorySnapshot, terms: Terms
) -> WorkerEffects[Extraction]:
    extract = partial(
        extract_facts,
        messages=portion,
        existing=snapshot.facts,
        profile=texts_of(snapshot.profile),
        config=terms.config,
    )
    found: Extraction = yield ModelCall(carrier.model, extract)
    return found


def _joined(first: Extraction, second: Extraction) -> Extraction:
    return Extraction(
        changes=first.changes + second.changes,
        refused=first.refused + second.refused,
        profile=first.profile + second.profile,
    )


def _receipt(carrier: Entry, reading: Reading, outcome: Outcome, terms: Terms) -> UpdateReceipt:
    return UpdateReceipt(
        time=terms.now(),
        thread_id=carrier.thread_id,
        created=outcome.created,
        confirmed=outcome.confirmed,
        superseded=outcome.superseded,
        refused=reasons(outcome.refused),
        messages=tuple(message.id for message in reading.talk if not message.seen),
        epoch=carrier.epoch,
    )
