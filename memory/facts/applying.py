"""How an extraction changes the facts: what is new, confirmed, corrected or over; applied twice as once."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from langgraph.store.base import Op

from memory.config import MemoryConfig
from memory.control import belongs, read_epoch
from memory.effects import StoreEffects, put, read, side_by_side
from memory.facts.changes import REASONS, Change, Extraction, Outcome, Reason, Refusal, one_of, reasons
from memory.facts.deletions import forgotten, read_erasure, take_back_erased, was_said_before
from memory.facts.fact import Fact, FactNotFound, Status, is_protected
from memory.facts.profile import drop_sections_about, read_sections, write_profile
from memory.facts.rows import APPLIED, give_way, read_fact_set, settle, trim_history, write_difference
from memory.facts.rules import Confirmation, FactSet, confirm, find, is_full, limit, place, retire, same_content
from memory.namespaces import Owner
from memory.text import digest

KEPT: Final = 32


def extraction_mark(extraction: Extraction, thread_id: str) -> str:
    """Return what an extraction is recognized by: a digest, no text."""
    return digest("applied", thread_id, json.dumps(extraction.to_json(), sort_keys=True))[:32]


Done = list[list[Any]]
"""`[mark, what applying it did]` of each extraction that was applied lately, oldest first."""


def done_before(done: Done, mark: str) -> Outcome | None:
    """Return what applying this extraction did, or `None` if it was not applied lately."""
    return next((_applied(value) for each, value in done if each == mark and isinstance(value, Mapping)), None)


def note_done(owner: Owner, epoch: str, done: Done, mark: str, outcome: Outcome) -> Op:
    """Return the write that notes what applying this did, in ids and reasons; the newest 32 are kept."""
    value = {
        "created": list(outcome.created),
        "confirmed": list(outcome.confirmed),
        "superseded": list(outcome.superseded),
        "refused": [refusal.reason for refusal in outcome.refused],
    }
    kept = [*(each for each in done if each[0] != mark), [mark, value]][-KEPT:]
    return put(owner.namespace("history"), APPLIED, {"epoch": epoch, "done": kept})


def read_done(owner: Owner, epoch: str) -> StoreEffects[Done]:
    """Read which extractions were applied lately."""
    item = yield from read(owner.namespace("history"), APPLIED)
    done = item.value.get("done") if item and belongs(item.value, epoch) else None
    return [each for each in done if isinstance(each, list) and len(each) == 2] if isinstance(done, list) else []


def _applied(value: Mapping[str, Any]) -> Outcome:
    return Outcome(
        created=tuple(value["created"]),
        confirmed=tuple(value["confirmed"]),
        superseded=tuple(value["superseded"]),
        refused=tuple(Refusal(reason=one_of(REASONS, reason)) for reason in value["refused"]),
    )


logger = logging.getLogger(__name__)


def change_facts(
    owner: Owner, extraction: Extraction, *, thread_id: str, epoch: str, now: str, config: MemoryConfig
) -> StoreEffects[tuple[Outcome, list[Op]]]:
    """Write what an extraction changes, and return what it did, and the writes that note that it was done.

    Callers have more to write: they note it with theirs, and only then look whether the epoch still stands.

    Args:
        owner: Whose memory it is.
        extraction: What the model found.
        thread_id: The thread it was said in.
        epoch: The epoch under which it was said; nothing is written under another than the current one.
        now: ISO 8601.
        config: The limit, and which categories are protected.
    """
    current, erasure, done, gone, before, profile = yield from side_by_side(
        read_epoch(owner),
        read_erasure(owner, epoch),
        read_done(owner, epoch),
        forgotten(owner, epoch, thread_id, extraction.changes),
        read_fact_set(owner, epoch, [change.content for change in extraction.changes if change.content]),
        read_sections(owner, epoch),
    )
    if current != epoch:
        return refused_as_stale(extraction), []
    mark = extraction_mark(extraction, thread_id)
    if (outcome := done_before(done, mark)) is not None:
        return outcome, []
    rules = partial(apply_extraction, forgotten=gone, thread_id=thread_id, epoch=epoch, now=now, config=config)
    update = rules(before, extraction)
    edited, _ = yield from side_by_side(
        write_difference(owner, epoch, before, update.fact_set),
        write_profile(owner, extraction.profile, epoch=epoch, now=now, stored=profile),
    )
    if edited:  # by a person, since the shelf was read
        was = [replace(before.rows[key], status="superseded", replaced_by=fact.id) for key, fact in edited.items()]
        before = replace(before, rows={**before.rows, **edited}, archived=tuple(was))
        wrong, update = update, rules(before, extraction)
        yield from give_way(owner, epoch, wrong.fact_set, update.fact_set, edited)
    # Another worker may have noted its own meanwhile: what is noted is read again, just before.
    settled, done, _ = yield from side_by_side(
        settle(owner, epoch, before, config),
        read_done(owner, epoch),
        take_back_erased(owner, epoch, erasure, [fact.id for fact in update.fact_set.archived]),
    )
    if update.fact_set.archived:
        fresh = {section.name for section in extraction.profile}
        over = [fact.content for fact in update.fact_set.archived]
        yield from side_by_side(drop_sections_about(owner, epoch, over, kept=fresh), trim_history(owner))
    outcome = update.result(settled)
    logger.info(
        "applied an extraction: created %d, confirmed %d, superseded %d, refused %s",
        *(len(outcome.created), len(outcome.confirmed), len(outcome.superseded), reasons(outcome.refused)),
    )
    return outcome, [note_done(owner, epoch, done, mark, outcome)]


def refused_as_stale(extraction: Extraction) -> Outcome:
    """Return what becomes of an extraction whose epoch an erase has ended: nothing."""
    logger.info("dropped an extraction of an erased epoch: %d changes", len(extraction.changes))
    return Outcome(refused=tuple(Refusal(reason="stale", content=change.content) for change in extraction.changes))


def apply_extraction(
    fact_set: FactSet,
    extraction: Extraction,
    *,
    thread_id: str,
    epoch: str,
    now: str,
    config: MemoryConfig,
    forgotten: frozenset[Change] = frozenset(),
) -> "FactUpdate":
    """Return the update that an extraction makes of a shelf: the new shelf, within its limit, and what happened."""
    update = FactUpdate(fact_set, thread_id=thread_id, epoch=epoch, now=now, config=config)
    for refusal in extraction.refused:
        update.refuse(refusal)
    for change in extraction.changes:
        if change in forgotten:
            update.refuse(_refusal("forgotten", change))
        else:
            update.make(change)
    update.enforce_limit()
    return update


class FactUpdate:
    """One extraction on its way into a shelf. `fact_set` is what it has become, `result` tells what happened."""

    def __init__(self, fact_set: FactSet, *, thread_id: str, epoch: str, now: str, config: MemoryConfig) -> None:
        self.fact_set = fact_set
        self._before = frozenset(fact_set.rows)
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
        self.fact_set = limit(self.fact_set, self._config, frozenset(self.fact_set.rows) - self._before)
        present = {fact.id for fact in self.fact_set.rows.values()}
        lost = [fact for fact in self._created if fact.id not in present]
        self._created = [fact for fact in self._created if fact.id in present]
        self._refused += [Refusal(reason="full", content=fact.content, category=fact.category) for fact in lost]

    def result(self, settled: FactSet) -> Outcome:
        """Return what happened, as far as the settled shelf still shows it."""
        present = {fact.id for fact in settled.rows.values()}
        return Outcome(
            created=tuple(fact.id for fact in self._created if fact.id in present),
            confirmed=_unique(self._confirmed),
            superseded=_unique(self._superseded),
            refused=tuple(self._refused),
        )

    def _target(self, change: Change) -> Fact | None:
        if change.target is None:
            return None
        try:
            return find(self.fact_set, change.target)[1]
        except FactNotFound:
            return None

    def _learn(self, change: Change) -> Fact | None:
        known = same_content(self.fact_set, change.content)
        if known is not None:
            return self._repeat(known, change)
        if is_full(self.fact_set, self._config):
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
            same_content(self.fact_set, change.content) or same_content(self.fact_set, change.content, status)
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
        self.fact_set, fact = place(self.fact_set, draft)
        if status == "active":
            self._created.append(fact)
        return fact

    def _confirm(self, target: Fact, change: Change) -> None:
        evidence = "\n".join((self._thread_id, *change.sources))
        said_at = change.said_at or self._now
        confirmation = Confirmation(target.id, evidence, said_at, self._thread_id, change.sources)
        self.fact_set = confirm(self.fact_set, confirmation)
        self._confirmed.append(target.id)

    def _correct(self, target: Fact, change: Change) -> None:
        known = same_content(self.fact_set, change.content)
        if known is not None and known.id == target.id:
            self._confirm(target, change)
            return
        successor = known or self._add(change, like=target)
        if known is not None and not self._made(known, change):  # the message that corrects says it again
            self._confirm(known, change)
        if successor is not None:
            self.fact_set = retire(self.fact_set, target.id, "superseded", now=self._now, replaced_by=successor.id)
            self._superseded.append(target.id)

    def _end(self, target: Fact | None, change: Change) -> None:
        if target is None:
            return
        if is_protected(target, self._config.protected_categories):
            self._refused.append(_refusal("protected", change))
            return
        self.fact_set = retire(self.fact_set, target.id, "ended", now=self._now)
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
