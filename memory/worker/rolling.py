"""The roll-up of an owner's journal into the history sections of their profile."""

import logging
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from memory.control import Epochs, belongs, read_epochs, read_time_zone
from memory.effects import StoreEffects, delete, put, read
from memory.facts.changes import Section
from memory.facts.deletions import forgotten_messages, read_deleted
from memory.facts.profile import read_profile, texts_of, write_profile
from memory.journal.journal import JournalEntry, day_of, prune, read_journal
from memory.journal.rollup import Fold, RollupProgress, chunks, fold, plan_rollup
from memory.message import with_replies
from memory.namespaces import Owner
from memory.screening.door import without_suspects
from memory.worker.effects import AwaitStart, ModelCall, Terms, WorkerEffects

logger = logging.getLogger(__name__)

PROGRESS_KEY = "rolled-up"
"""Key of the item, beside the journal's entries, that tells how far the history has been told."""


def roll_up(owner: Owner, terms: Terms) -> WorkerEffects[bool]:
    """Fold the days that are over into the history, then drop the days that are kept no longer.

    Sections are written before the progress: killed in between, the same days are told again, in the same sections.
    An erase while the model writes wins: nothing is written then, and the days are told anew the next time.

    Returns:
        Whether something was due.
    """
    if not terms.config.enabled:
        return False
    epochs = yield from read_epochs(owner)
    epoch = epochs.epoch
    today = day_of(terms.now(), (yield from read_time_zone(owner)))
    progress = yield from _read_progress(owner, epoch)
    if progress.looked == today:
        return False
    journal = yield from read_journal(owner, epoch)
    planned, reached = plan_rollup(today, progress, journal)
    folds = yield from _without_forgotten(owner, epoch, planned)
    texts = texts_of((yield from read_profile(owner, epoch)))
    sections = []
    if folds:
        yield AwaitStart()
    for one in folds:
        told = "" if one.anew else texts.get(f"history.{one.section}", "")
        for portion in chunks(one.entries):
            told = yield ModelCall(portion[-1].model, partial(fold, existing=told, entries=portion))
        text, left_out = without_suspects(told)
        if left_out:
            logger.warning("left %d sentences out of history.%s: secrets, or orders", left_out, one.section)
        if text:
            sections.append(Section(name=f"history.{one.section}", text=text))
    if (yield from _is_erased(owner, epochs, folds)) or texts_of((yield from read_profile(owner, epoch))) != texts:
        return False
    yield from write_profile(owner, sections, epoch=epoch, now=terms.now())
    yield [put(owner.namespace("journal"), PROGRESS_KEY, {**replace(reached, looked=today).to_json(), "epoch": epoch})]
    if (yield from _is_erased(owner, epochs, folds)):
        # What was just written goes, so that the days are told anew.
        yield [
            delete(owner.namespace("journal"), PROGRESS_KEY),
            *(delete(owner.namespace("profile"), section.name) for section in sections),
        ]
    dropped = yield from prune(owner, today, terms.config.journal_days)
    logger.info("rolled up %s: sections %d, entries dropped %d", owner.due_key, len(sections), dropped)
    return bool(folds)


def tell_again(owner: Owner, epoch: str, dropped: Iterable[str]) -> StoreEffects[None]:
    """Make due again what history sections told of that were dropped (`history.recent`); other names are ignored."""
    sections = {name.removeprefix("history.") for name in dropped if name.startswith("history.")}
    if sections:
        progress = (yield from _read_progress(owner, epoch)).without(sections)
        yield [put(owner.namespace("journal"), PROGRESS_KEY, {**progress.to_json(), "epoch": epoch})]


def sections_telling(owner: Owner, epoch: str, entries: Iterable[JournalEntry]) -> StoreEffects[frozenset[str]]:
    """Return the names of the history sections that tell of the days of these entries."""
    progress = yield from _read_progress(owner, epoch)
    return frozenset(f"history.{section}" for entry in entries if (section := progress.section_of(entry.written)))


def _without_forgotten(owner: Owner, epoch: str, folds: Iterable[Fold]) -> StoreEffects[list[Fold]]:
    """Leave out messages that deleted facts came from, or that say the same: the journal itself still has them."""
    deleted = yield from read_deleted(owner, epoch)
    kept = []
    for one in folds:
        entries = []
        for entry in one.entries:
            forgotten = yield from _forgotten_in(owner, epoch, entry)
            alike = {message.id for message in entry.messages if deleted.is_in(entry.thread_id, message)}
            gone = with_replies(entry.messages, forgotten | alike)
            messages = tuple(message for message in entry.messages if message.id not in gone)
            entries += [replace(entry, messages=messages)] if messages else []
        kept.append(replace(one, entries=tuple(entries)))
    return kept


def _forgotten_in(owner: Owner, epoch: str, entry: JournalEntry) -> StoreEffects[frozenset[str]]:
    return forgotten_messages(owner, epoch, entry.thread_id, [message.id for message in entry.messages])


def _read_progress(owner: Owner, epoch: str) -> StoreEffects[RollupProgress]:
    item = yield from read(owner.namespace("journal"), PROGRESS_KEY)
    return RollupProgress.from_json(item.value) if item and belongs(item.value, epoch) else RollupProgress()


def _is_erased(owner: Owner, epochs: Epochs, folds: Iterable[Fold]) -> StoreEffects[bool]:
    """Say whether something was erased since: everything, a thread, or a fact that came from what is told."""
    if (yield from read_epochs(owner)) != epochs:
        return True
    for entry in {entry.key: entry for one in folds for entry in one.entries}.values():
        if (yield from _forgotten_in(owner, epochs.epoch, entry)):
            return True
    return False
