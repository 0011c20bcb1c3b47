"""How the pending updates of one owner get into the tiers: claimed, extracted, applied and acknowledged in one commit.

Killed before that commit, the model is asked again for one portion; after it, the update is done.

Each transaction of a drain ends with the same step (`_next`): it reads what a model is asked about next, and goes on
with the user's lease, or gives the user back.
"""

import logging
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import partial

from memory.budget import BudgetUsedUp
from memory.config import stricter
from memory.control import INITIAL_EPOCH, Control, count_edit, read_control
from memory.door import StoreEffects, side_by_side, transaction
from memory.extraction.extraction import extract_facts
from memory.facts.applying import change_facts
from memory.facts.changes import Extraction
from memory.facts.deletions import forgotten_messages
from memory.facts.profile import texts_of
from memory.facts.snapshot import MemorySnapshot, read_snapshot
from memory.journal.entry import JournalEntry, day_of, entries_of
from memory.journal.journal import read_held, redact, tell
from memory.message import StoredMessage, with_replies
from memory.namespaces import Owner
from memory.text import digest
from memory.updates import outbox
from memory.updates.effects import ModelCall, Terms, WorkerEffects
from memory.updates.entry import Entry, Overtaken
from memory.updates.lease import Lease, LeaseLost, read_lease, renew
from memory.updates.reading import Reading, portions, read_together, remembered, together
from memory.updates.receipts import UpdateReceipt, read_seen, receipt_put, refusals, seen_put, trim_receipts
from memory.updates.transcript import exchanges

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Drained:
    """What draining one owner came to.

    Attributes:
        receipts: What each update did, in ids and counts.
        cancelled: How many entries were dropped because of an erase.
        failed: How many are to be tried again, or became dead letters.
        due: When the next of those that are left is due, in seconds since the epoch; `None` if none is left.
        waiting: The conversations that wait for a model that could not be asked.
    """

    receipts: tuple[UpdateReceipt, ...] = ()
    cancelled: int = 0
    failed: int = 0
    due: float | None = None
    waiting: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Claim:
    """Entries of one thread that a model is asked about, and what memory holds beside them."""

    batch: tuple[Entry, ...]
    control: Control
    reading: Reading
    flushed: dict[str, str]
    held: dict[str, JournalEntry]
    forgotten: frozenset[str]


@dataclass(slots=True)
class _Work:
    """One drain under way: what is read now and then, what it came to, what is left, and when that may go on."""

    waiting: deque[tuple[Entry, ...]] = field(default_factory=deque)
    claim: _Claim | None = None
    snapshot: MemorySnapshot | None = None
    receipts: list[UpdateReceipt] = field(default_factory=list)
    cancelled: int = 0
    failed: int = 0
    left: list[Entry] = field(default_factory=list)
    goes_on: float | None = None


def drain(
    owner: Owner, terms: Terms, thread_id: str | None = None, quiet: float = 0.0, *, is_woken: bool = False
) -> WorkerEffects[Drained]:
    """Apply what is pending for an owner, conversation by conversation; a failure of one does not stop the next.

    Args:
        owner: Whose memory it is.
        terms: Limits, worker and clock.
        thread_id: Only this conversation; `None` means all.
        quiet: So many seconds after the last thing that was said there, whichever process wrote that down.
        is_woken: Whether to read at once what waited for its model.
    """
    work = _Work()
    if not terms.config.enabled:
        return Drained()
    try:
        yield from _begin(owner, work, terms, thread_id, quiet, is_woken)
        while claim := work.claim:
            try:
                yield from _update(owner, claim, work, terms)
            except LeaseLost:
                raise
            except BudgetUsedUp as used_up:
                # No failure: what was read of the batch is applied, the rest of it waits as it is.
                logger.warning("updates of %s wait for tomorrow: the budget of the day is used up", owner.due_key)
                work.goes_on = used_up.until
                work.waiting.clear()
                yield from _end(owner, work, terms)
            except Exception as error:  # a model or a store may fail in any way; the entries stay, and say so
                yield from _after_failure(owner, claim.batch, error, work, terms)
    except LeaseLost:
        logger.info("another worker has %s", owner.due_key)
        work.left, work.goes_on = [], terms.clock() + terms.config.retry_base_seconds
    left = [entry for entry in work.left if entry.state != "dead" and thread_id in (None, entry.thread_id)]
    due = work.goes_on or min((entry.due for entry in left), default=None)
    waiting = frozenset(entry.thread_id for entry in left if entry.waits)
    return Drained(tuple(work.receipts), work.cancelled, work.failed, due, waiting)


@transaction
def _begin(
    owner: Owner, work: _Work, terms: Terms, thread_id: str | None, quiet: float, is_woken: bool
) -> StoreEffects[None]:
    """Delete what an erase has cancelled, and take the user if anything is to be read."""
    control, lease, stored = yield from side_by_side(read_control(owner), read_lease(owner), outbox.read_entries(owner))
    asked = [entry for entry in stored if thread_id in (None, entry.thread_id)]
    cancelled = [entry for entry in asked if entry.epoch != control.epoch]
    work.left, work.cancelled = [entry for entry in stored if entry not in cancelled], len(cancelled)
    yield from outbox.change(owner, stored, work.left)
    config, now = terms.config, terms.clock()
    ready = [one for one in asked if one not in cancelled and one.is_ready(now, config, is_woken=is_woken)]
    if not ready:
        return
    # No later than if all had been said now: another process's clock may be ahead.
    begun, last = min(entry.created for entry in ready), max(entry.created for entry in ready)
    quiet_from = min(last + quiet, begun + config.max_wait_seconds, now + quiet)
    if quiet_from > now:
        work.goes_on = quiet_from
        return
    if not lease.is_free(now, terms.worker):
        raise LeaseLost
    work.waiting.extend(together([entry for entry in ready if not entry.is_suspect(config)], config.portion_messages))
    work.waiting.extend((entry,) for entry in ready if entry.is_suspect(config))
    yield [terms.lease().write(owner)]
    yield from _next(owner, work, terms)


def _next(owner: Owner, work: _Work, terms: Terms) -> StoreEffects[None]:
    """Read what a model is asked about next, and go on with the user; or give them back, if nothing is left.

    Raises:
        LeaseLost: If another worker has the user now: nothing of the transaction is written.
    """
    work.claim = None
    while work.waiting and not work.claim:
        batch = work.waiting.popleft()
        keys = tuple(entry.key for entry in batch)
        there, claim, work.snapshot = yield from side_by_side(
            outbox.read_entries(owner, keys), _read(batch), read_snapshot(owner)
        )
        # Entries that changed since this drain began are read by the next one.
        if there == outbox.oldest_first(batch) and claim.control.epoch == batch[-1].epoch:
            work.claim = claim
            yield from renew(owner, terms.token, terms.lease(keys))
    if not work.claim:
        work.left = yield from outbox.read_entries(owner)
        yield from outbox.change(owner, work.left, work.left)
        yield from renew(owner, terms.token, Lease())


_end = transaction(_next)


def _read(batch: Sequence[Entry]) -> StoreEffects[_Claim]:
    last = batch[-1]
    owner, thread_id, epoch = last.owner, last.thread_id, last.epoch
    ids = list(dict.fromkeys(message.id for entry in batch for message in entry.messages))
    is_cut = any(entry.kind == "cut" for entry in batch)
    control, flushed, held, forgotten = yield from side_by_side(
        read_control(owner),
        read_seen(owner, thread_id, epoch),
        read_held(owner, epoch, thread_id, ids, whole_thread=is_cut),
        forgotten_messages(owner, epoch, thread_id, ids),
    )
    reading = read_together(batch, flushed, after_erase=epoch != INITIAL_EPOCH)
    return _Claim(tuple(batch), control, reading, flushed, held, forgotten)


def _update(owner: Owner, claim: _Claim, work: _Work, terms: Terms) -> WorkerEffects[None]:
    """Carry entries of one thread into the tiers, portion by portion, each with a receipt."""
    parts = portions(claim.reading.talk, terms.config.portion_messages) or [()]
    # A worker that dies between two portions takes the marks of the first along: what it read waits for a yes then.
    harmless = frozenset[str]()
    for number, portion in enumerate(parts, 1):
        found = Extraction()
        if portion and (snapshot := work.snapshot):
            extract = partial(
                extract_facts,
                messages=portion,
                existing=snapshot.facts,
                profile=texts_of(snapshot.profile),
                config=terms.config,
                time_zone=claim.control.zone,
            )
            found = yield from terms.ask(owner, ModelCall(claim.batch[-1].model, extract, "extraction"))
        harmless |= found.harmless
        later = frozenset(message.id for part in parts[number:] for message in part)
        receipt = yield from _apply(owner, claim, portion, later, replace(found, harmless=harmless), work, terms)
        work.receipts.append(receipt)


@transaction
def _apply(
    owner: Owner,
    claim: _Claim,
    portion: Sequence[StoredMessage],
    later: frozenset[str],
    found: Extraction,
    work: _Work,
    terms: Terms,
) -> StoreEffects[UpdateReceipt]:
    """Write what a portion taught and its receipt; after the last one, write the lines and delete the entries.

    Args:
        owner: Whose memory.
        claim: The entries, and what was there when the model was asked.
        portion: What the model was asked about.
        later: Ids of messages that it is asked about later: only after the last portion the entries are done.
        found: What it found, and what it marked in all portions so far.
        work: The drain.
        terms: Limits, worker and clock.

    Raises:
        LeaseLost: If another worker has the user now.
        Overtaken: If the entries are others now, or something was erased that the model was shown.
    """
    batch, last = claim.batch, claim.batch[-1]
    keys = tuple(entry.key for entry in batch)
    is_done = not later
    is_last = is_done and not work.waiting  # then all that is left is read with the rest
    there, now, outcome, _, _ = yield from side_by_side(
        outbox.read_entries(owner, None if is_last else keys),
        _read(batch),
        change_facts(owner, found, thread_id=last.thread_id, epoch=last.epoch, now=terms.now(), config=terms.config),
        trim_receipts(owner, 1),
        renew(owner, terms.token, terms.lease(keys)),
    )
    is_there = {entry.contents for entry in there}.issuperset(entry.contents for entry in batch)
    if not is_there or (now.control.epoch, now.control.erased) != (last.epoch, claim.control.erased):
        raise Overtaken
    receipt = UpdateReceipt(
        time=terms.now(),
        thread_id=last.thread_id,
        created=outcome.created,
        confirmed=outcome.confirmed,
        superseded=outcome.superseded,
        refused=refusals(outcome.refused),
        waiting=outcome.waiting,
        messages=tuple(message.id for message in portion if not message.seen and message.id not in later),
        epoch=last.epoch,
    )
    read = [message for message in now.reading.all if message.id not in later]
    yield [
        # What counts as flushed is never read again.
        seen_put(owner, last.thread_id, last.epoch, remembered(now.flushed, read, terms.config.seen_limit)),
        receipt_put(owner, last.key if is_done else digest(last.key, *sorted(later)), receipt),
    ]
    if is_done:
        yield from _write_lines(now, terms, found.harmless)
        yield from outbox.change(owner, batch, (), is_whole=False)
        yield from _next(owner, work, terms)
    else:
        work.snapshot = yield from read_snapshot(owner)  # the next portion may be about what this one has taught
    return receipt


@transaction
def _after_failure(
    owner: Owner, batch: Sequence[Entry], error: Exception, work: _Work, terms: Terms
) -> StoreEffects[None]:
    """Note the failure in the entries of a batch."""
    before = yield from outbox.read_entries(owner, [entry.key for entry in batch])
    is_alone = len(batch) == 1
    after = [entry.failed(error, terms.clock(), terms.config, is_alone=is_alone) for entry in before]
    # Nobody would write the lines of these, or not for long.
    if unread := [entry for entry in after if entry.state == "dead" or entry.waits == 1]:
        read = yield from _read(unread)
        if unread[-1].epoch == read.control.epoch:
            yield from _write_lines(read, terms)
    yield from outbox.change(owner, before, after, is_whole=False)
    for entry in after:
        logger.warning(
            "update %.12s failed with %s, attempts %d, waits %d, read anew %d, now %s",
            *(entry.key, type(error).__name__, entry.attempts, entry.waits, entry.rereads, entry.state),
        )
    if not isinstance(error, Overtaken):
        work.failed += len(after)
    yield from _next(owner, work, terms)


def _write_lines(read: _Claim, terms: Terms, harmless: Collection[str] = ()) -> StoreEffects[None]:
    """Write what entries say into the journal.

    Args:
        read: The entries.
        terms: The clock, and what waits for the user's yes.
        harmless: Ids of the messages that the model marked so.
    """
    last, said, zone = read.batch[-1], read.reading.said, read.control.zone or UTC
    approval = stricter(terms.config.approval, read.control.approval)
    draft = JournalEntry(day_of(terms.now(), zone), last.thread_id, (), last.epoch, last.model, source="turn")
    cut = {message.id for message in read.reading.cut}
    gone = with_replies(said, read.forgotten)
    told = exchanges(message for message in said if message.id not in gone)
    fresh = entries_of(draft, told, zone, cut, approval, harmless)
    yield from tell(last.owner, read.held, fresh)
    if gone:
        yield from redact(last.owner, {last.thread_id: gone})
    held = read.held.values()
    shown = {one.id: one.text for each in held for one in each.messages if one.id not in each.held}
    waits = [one for each in fresh for one in each.messages if one.id in each.held]
    if any(shown.get(one.id, one.text) != one.text for one in waits):
        # The prompts that show a line know it by its id: after an edit by hand they choose anew.
        yield from count_edit(last.owner)
