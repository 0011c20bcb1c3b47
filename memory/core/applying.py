"""How an extraction changes the shelf: what is new, confirmed, corrected or over. Pure but for the two `Steps`."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from langgraph.store.base import Op

from memory.config import MemoryConfig
from memory.control import read_epoch
from memory.core.applied import done_before, extraction_mark, note_done, read_done
from memory.core.changes import Applied, Change, Extraction, Reason, Refusal, reasons
from memory.core.facts import Fact, FactNotFound, Status, is_protected
from memory.core.profile import drop_sections_about, read_sections, write_profile
from memory.core.rules import (
    Confirmation,
    Shelf,
    confirm,
    find,
    is_full,
    limit,
    place,
    retire,
    same_content,
)
from memory.core.shelf import give_way, read_shelf, settle, stands, trim_history, write_difference
from memory.core.tombstones import forgotten, read_erasure, take_back_erased, was_said_before
from memory.namespaces import Owner
from memory.storage import Steps, side_by_side

logger = logging.getLogger(__name__)


def apply_steps(
    owner: Owner, extraction: Extraction, *, thread_id: str, epoch: str, now: str, config: MemoryConfig
) -> Steps[Applied]:
    """Apply an extraction to the stored facts; applying it twice is the same as once.

    Args:
        owner: Whose memory it is.
        extraction: What the model found.
        thread_id: The thread it was said in.
        epoch: The epoch under which it was said. Nothing is written under another than the current one, and what
            was written is taken back if an erase comes in between.
        now: ISO 8601.
        config: The limit, and which categories are protected.
    """
    applied, writes = yield from change_facts(
        owner, extraction, thread_id=thread_id, epoch=epoch, now=now, config=config
    )
    if writes:
        yield writes
    return applied if (yield from stands(owner, epoch)) else _stale(extraction)


def change_facts(
    owner: Owner, extraction: Extraction, *, thread_id: str, epoch: str, now: str, config: MemoryConfig
) -> Steps[tuple[Applied, list[Op]]]:
    """Write what an extraction changes, and return what it did, and the writes that note that it was done.

    For callers with more to write: they note it with theirs, and only then look whether the epoch still stands.
    """
    current, erasure, done, gone, before, profile = yield from side_by_side(
        read_epoch(owner),
        read_erasure(owner, epoch),
        read_done(owner, epoch),
        forgotten(owner, epoch, thread_id, extraction.changes),
        read_shelf(owner, epoch, [change.content for change in extraction.changes if change.content]),
        read_sections(owner, epoch),
    )
    if current != epoch:
        return _stale(extraction), []
    mark = extraction_mark(extraction, thread_id)
    if (applied := done_before(done, mark)) is not None:
        return applied, []
    rules = partial(apply_extraction, forgotten=gone, thread_id=thread_id, epoch=epoch, now=now, config=config)
    update = rules(before, extraction)
    edited, _ = yield from side_by_side(
        write_difference(owner, epoch, before, update.shelf),
        write_profile(owner, extraction.profile, epoch=epoch, now=now, stored=profile),
    )
    if edited:  # by a person, since the shelf was read
        was = [replace(before.rows[key], status="superseded", replaced_by=fact.id) for key, fact in edited.items()]
        before = replace(before, rows={**before.rows, **edited}, archived=tuple(was))
        wrong, update = update, rules(before, extraction)
        yield from give_way(owner, epoch, wrong.shelf, update.shelf, edited)
    # Another worker may have noted its own meanwhile: what is noted is read again, just before.
    settled, done, _ = yield from side_by_side(
        settle(owner, epoch, before, config),
        read_done(owner, epoch),
        take_back_erased(owner, epoch, erasure, [fact.id for fact in update.shelf.archived]),
    )
    if update.shelf.archived:
        fresh = {section.name for section in extraction.profile}
        over = [fact.content for fact in update.shelf.archived]
        yield from side_by_side(drop_sections_about(owner, epoch, over, kept=fresh), trim_history(owner))
    applied = update.result(settled)
    logger.info(
        "applied an extraction: created %d, confirmed %d, superseded %d, refused %s",
        *(len(applied.created), len(applied.confirmed), len(applied.superseded), reasons(applied.refused)),
    )
    return applied, [note_done(owner, epoch, done, mark, applied)]


def _stale(extraction: Extraction) -> Applied:
    logger.info("dropped an extraction of an erased epoch: %d changes", len(extraction.changes))
    return Applied(refused=tuple(Refusal(reason="stale", content=change.content) for change in extraction.changes))


def apply_extraction(
    shelf: Shelf,
    extraction: Extraction,
    *,
    thread_id: str,
    epoch: str,
    now: str,
    config: MemoryConfig,
    forgotten: frozenset[Change] = frozenset(),
) -> "Update":
    """Return the update that an extraction makes of a shelf: the new shelf, within its limit, and what happened."""
    update = Update(shelf, thread_id=thread_id, epoch=epoch, now=now, config=config)
    for refusal in extraction.refused:
        update.refuse(refusal)
    for change in extraction.changes:
        if change in forgotten:
            update.refuse(_refusal("forgotten", change))
        else:
            update.make(change)
    update.enforce_limit()
    return update


class Update:
    """One extraction on its way into a shelf. `shelf` is what it has become, `result` tells what happened."""

    def __init__(self, shelf: Shelf, *, thread_id: str, epoch: str, now: str, config: MemoryConfig) -> None:
        self.shelf = shelf
        self._before = frozenset(shelf.rows)
        self._thread_id, self._epoch, self._now, self._config = thread_id, epoch, now, config
        self._created: list[Fact] = []
        self._confirmed: list[str] = []
        self._superseded: list[str] = []
        self._refused: list[Refusal] = []

    def refuse(self, refusal: Refusal) -> None:
        """Note a refusal; what looks like an instruction is kept for review, where nothing injects it."""
        self._refused.append(refusal)
        if refusal.reason == "instruction_like":
            self._add(_as_change(refusal), status="quarantined")

    def make(self, change: Change) -> None:
        """Carry out one change, or refuse it."""
        target = self._target(change)
        if target is not None and is_overtaken(target, change):
            self._refused.append(_refusal("edited", change))
        elif change.action == "confirms" and target is not None:
            self._confirm(target, change)
        elif change.action == "ends":
            self._end(target, change)
        elif change.action == "corrects" and target is not None:
            self._correct(target, change)
        elif change.content:
            self._learn(change)

    def enforce_limit(self) -> None:
        """Let the weakest go; new facts that found no room are refused."""
        self.shelf = limit(self.shelf, self._config, frozenset(self.shelf.rows) - self._before)
        present = {fact.id for fact in self.shelf.rows.values()}
        lost = [fact for fact in self._created if fact.id not in present]
        self._created = [fact for fact in self._created if fact.id in present]
        self._refused += [Refusal(reason="full", content=fact.content, category=fact.category) for fact in lost]

    def result(self, settled: Shelf) -> Applied:
        """Return what happened, as far as the settled shelf still shows it."""
        present = {fact.id for fact in settled.rows.values()}
        return Applied(
            created=tuple(fact.id for fact in self._created if fact.id in present),
            confirmed=_unique(self._confirmed),
            superseded=_unique(self._superseded),
            refused=tuple(self._refused),
        )

    def _target(self, change: Change) -> Fact | None:
        if change.target is None:
            return None
        try:
            return find(self.shelf, change.target)[1]
        except FactNotFound:
            return None

    def _learn(self, change: Change) -> Fact | None:
        known = same_content(self.shelf, change.content)
        if known is not None:
            return self._repeat(known, change)
        if is_full(self.shelf, self._config):
            self._refused.append(_refusal("full", change))
            return None
        return self._add(change)

    def _repeat(self, known: Fact, change: Change) -> Fact:
        if self._made(known, change):
            self._created.append(known)
        else:
            self._refused.append(_refusal("duplicate", change))
            self._confirm(known, change)
        return known

    def _made(self, known: Fact, change: Change) -> bool:
        """Say whether this very change was applied before, and made the fact."""
        return known.thread_id == self._thread_id and set(change.sources) <= set(known.message_ids)

    def _add(self, change: Change, status: Status = "active", *, like: Fact | None = None) -> Fact | None:
        """Put what a change says on the shelf; in the place of another fact, it is as well protected as that."""
        if status != "active" and (
            same_content(self.shelf, change.content) or same_content(self.shelf, change.content, status)
        ):
            return None
        draft = Fact(
            id="",
            content=change.content,
            category=change.category,
            confidence=change.confidence,
            created_at=self._now,
            updated_at=self._now,
            source="conversation",
            status=status,
            pinned=like is not None and is_protected(like),
            epoch=self._epoch,
            thread_id=self._thread_id,
            message_ids=change.sources,
            edited_at=like.edited_at if like else "",
            edit=like.edit if like else "",
        )
        self.shelf, fact = place(self.shelf, draft)
        if status == "active":
            self._created.append(fact)
        return fact

    def _confirm(self, target: Fact, change: Change) -> None:
        evidence = "\n".join((self._thread_id, *change.sources))
        said_at = change.said_at or self._now
        confirmation = Confirmation(target.id, evidence, said_at, self._thread_id, change.sources)
        self.shelf = confirm(self.shelf, confirmation)
        self._confirmed.append(target.id)

    def _correct(self, target: Fact, change: Change) -> None:
        known = same_content(self.shelf, change.content)
        if known is not None and known.id == target.id:
            self._confirm(target, change)
            return
        successor = known or self._add(change, like=target)
        if known is not None and not self._made(known, change):  # the message that corrects says it again
            self._confirm(known, change)
        if successor is not None:
            self.shelf = retire(self.shelf, target.id, "superseded", now=self._now, replaced_by=successor.id)
            self._superseded.append(target.id)

    def _end(self, target: Fact | None, change: Change) -> None:
        if target is None:
            return
        if is_protected(target, self._config.protected_categories):
            self._refused.append(_refusal("protected", change))
            return
        self.shelf = retire(self.shelf, target.id, "ended", now=self._now)
        self._superseded.append(target.id)


def is_overtaken(target: Fact, change: Change) -> bool:
    """Say whether a person changed the fact after what the change comes from was said, or was shown to the model."""
    if not target.edited_at:
        return False
    is_unread = 0 < change.target_revision < target.revision
    return is_unread or was_said_before(change, target.edited_at, target.edit)


def _refusal(reason: Reason, change: Change) -> Refusal:
    return Refusal(
        reason=reason,
        content=change.content,
        category=change.category,
        confidence=change.confidence,
        sources=change.sources,
        said_at=change.said_at,
    )


def _as_change(refusal: Refusal) -> Change:
    return Change(
        action="new",
        content=refusal.content,
        category=refusal.category,
        confidence=refusal.confidence,
        sources=refusal.sources,
        said_at=refusal.said_at,
    )


def _unique(ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))
