"""How an extraction changes the facts: what is new, confirmed, corrected or over; applied twice as once."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

from memory.config import MemoryConfig, stricter
from memory.control import read_control
from memory.effects import StoreEffects, side_by_side
from memory.facts.changes import Change, Extraction, Outcome, Refusal, reasons
from memory.facts.deletions import forgotten, let_go, was_said_before
from memory.facts.fact import Fact, Status, checked_topic, is_protected, moment
from memory.facts.profile import approved_sections, drop_sections_about, read_sections, write_profile
from memory.facts.rows import read_fact_set, save
from memory.facts.rules import (
    MAX_HELD,
    Confirmation,
    FactSet,
    confirm,
    find,
    is_full,
    limit,
    place,
    retire,
    same_content,
)
from memory.facts.waiting import propose
from memory.namespaces import Owner, is_imported

logger = logging.getLogger(__name__)


def change_facts(
    owner: Owner, extraction: Extraction, *, thread_id: str, epoch: str, now: str, config: MemoryConfig
) -> StoreEffects[Outcome]:
    """Write what an extraction changes, as a part of what a caller writes, and return what it did.

    Args:
        owner: Whose memory it is.
        extraction: What the model found.
        thread_id: The thread it was said in.
        epoch: The epoch under which it was said; nothing is written under another than the current one.
        now: ISO 8601.
        config: The limit, and which categories are protected.
    """
    control, gone, before, profile = yield from side_by_side(
        read_control(owner),
        forgotten(owner, epoch, thread_id, extraction.changes),
        read_fact_set(owner, [each.content for each in extraction.changes if each.content]),
        read_sections(owner, epoch),
    )
    # An erase came between the message and now: nothing that was said before it may be written.
    if control.epoch != epoch:
        logger.info("dropped an extraction of an erased epoch: %d changes", len(extraction.changes))
        return Outcome(refused=tuple(change.refused("stale") for change in extraction.changes))
    config = replace(config, approval=stricter(config.approval, control.approval))
    # Sections tell how things are now, and have no dates by which an old conversation would give way.
    sections = () if is_imported(thread_id) else extraction.profile
    if config.approval != "off":
        sections = approved_sections(sections, profile, [fact.content for fact in before.active().values()])
    update = FactUpdate(before, thread_id=thread_id, now=now, config=config)
    update.apply(extraction, gone)
    yield from write_profile(owner, sections, epoch=epoch, now=now)
    yield from save(owner, before, update.fact_set)
    outcome = update.outcome()
    if update.let_go or outcome.waiting:
        # Also where only something new waits: who holds the journal has to leave out what it came from.
        stays = {each for fact in update.fact_set.rows.values() for each in fact.message_ids}
        yield from let_go(owner, epoch, update.let_go, now=now, but=stays)
    if update.fact_set.archived:
        # Or the profile would go on telling what is no longer true; the next update writes such a section anew.
        over = [fact.content for fact in update.fact_set.archived if fact.status != "evicted"]
        yield from drop_sections_about(owner, epoch, over, kept={section.name for section in sections})
    logger.info(
        "applied an extraction: created %d, confirmed %d, superseded %d, waiting %d, refused %s",
        *map(len, (outcome.created, outcome.confirmed, outcome.superseded, outcome.waiting)),
        reasons(outcome.refused),
    )
    return outcome


class FactUpdate:
    """One extraction on its way into the facts: `fact_set` is what they have become, `outcome` tells what happened.

    Attributes:
        fact_set: The facts, within their limit.
        let_go: Those that waited for a yes and made room: for newer forms of themselves, or at the bound.
    """

    def __init__(self, fact_set: FactSet, *, thread_id: str, now: str, config: MemoryConfig) -> None:
        self.fact_set = fact_set
        self.let_go: list[Fact] = []
        self._thread_id, self._now, self._config = thread_id, now, config
        self._created: list[Fact] = []
        self._confirmed: list[str] = []
        self._superseded: list[str] = []
        self._refused: list[Refusal] = []
        self._waiting: list[str] = []

    def apply(self, extraction: Extraction, forgotten: Collection[Change] = ()) -> None:
        """Make the changes, but those that would bring back what was deleted."""
        before = self.fact_set
        for refusal in extraction.refused:
            self._refuse(refusal)
        for change in extraction.changes:
            if change in forgotten:
                self._refused.append(change.refused("forgotten"))
            else:
                self._make(change)
        # The weakest go; new facts that found no room are refused. Of what waits, the oldest goes.
        full = self.fact_set
        self.fact_set = limit(full, self._config, before.rows)
        went = {fact.id: fact for key, fact in full.rows.items() if key not in self.fact_set.rows}
        self.let_go += [fact for fact in went.values() if fact.status == "waiting"]
        lost = [fact for fact in self._created if fact.id in went]
        self._refused += [Refusal(reason="full", content=fact.content, category=fact.category) for fact in lost]

    def outcome(self) -> Outcome:
        """Return what happened."""
        there = {fact.id: fact.status for fact in self.fact_set.rows.values()}
        return Outcome(
            created=tuple(fact.id for fact in self._created if fact.id in there),
            confirmed=_unique(self._confirmed),
            superseded=_unique(self._superseded),
            refused=tuple(self._refused),
            waiting=tuple(each for each in _unique(self._waiting) if there.get(each) == "waiting"),
        )

    def _refuse(self, refusal: Refusal) -> None:
        """Note a refusal; a suspected order, secret or number is kept for review: nothing injects it."""
        self._refused.append(refusal)
        held = sum(fact.status == "quarantined" for fact in self.fact_set.rows.values())
        if refusal.reason in ("instruction_like", "suspected", "unfounded") and held < MAX_HELD:
            known = (same_content(self.fact_set, refusal.content, status) for status in ("active", "quarantined"))
            if not any(known):
                self._add(self._draft(refusal.as_change(), status="quarantined"), refusal.as_change())

    def _make(self, change: Change) -> None:
        """Carry out one change, or refuse it."""
        # What waits for a person is nobody's target: no model was shown it.
        target = next((fact for fact in self.fact_set.active().values() if fact.id == change.target), None)
        if target is not None and is_overtaken(target, change):
            self._refused.append(change.refused("edited"))
        elif target is not None and is_imported(self._thread_id) and _is_older(change, target):
            self._refused.append(change.refused("older"))
        elif change.action == "ends":
            self._end(target, change)
        elif change.action == "confirms" and target is not None:
            self._confirm(target, change)
        elif change.content:  # also where the target is gone: what the user said is true all the same
            self._learn(change, target if change.action == "corrects" else None)

    def _learn(self, change: Change, wrong: Fact | None) -> None:
        """Add what a change says, in the place of what it corrects; what is known is said again."""
        known = same_content(self.fact_set, change.content)
        if known is None and self._propose(change, wrong):
            return
        if known is not None:
            is_new = self._was_made_by(change, known)
            if wrong is None and not is_new:
                self._refused.append(change.refused("duplicate"))
            if not is_new or wrong is None or wrong.id == known.id:
                self._confirm(known, change)
            fact = known
        elif wrong is None and is_full(self.fact_set, self._config):
            self._refused.append(change.refused("full"))
            return
        else:
            fact = self._add(self._draft(change, like=wrong), change)
        if wrong is None or fact.id == wrong.id:
            return
        if known is not None:
            # Or what a person protected would be left to a fact that an eviction may take.
            is_pinned = known.pinned or (is_protected(wrong) and not is_protected(known))
            key, _ = find(self.fact_set, known.id)
            known = replace(known, pinned=is_pinned, replaces=wrong.id)
            self.fact_set = replace(self.fact_set, rows={**self.fact_set.rows, key: known})
        self.fact_set = retire(self.fact_set, wrong.id, "superseded", now=self._now, replaced_by=fact.id)
        self._superseded.append(wrong.id)

    def _propose(self, change: Change, wrong: Fact | None) -> bool:
        """Let a change wait for a person's yes if they want to be asked about it, and say whether they do.

        What no model marked as harmless counts as sensitive. What it corrects stays in use until then.
        """
        if self._config.approval == "off" or (self._config.approval == "sensitive" and change.topic == "none"):
            return False
        known = same_content(self.fact_set, change.content, "waiting")
        if known is not None and self._was_made_by(change, known):
            self._waiting.append(known.id)
            return True
        draft = self._draft(change, status="waiting")
        draft = replace(draft, topic=checked_topic(change.topic), replaces=wrong.id if wrong else "")
        self.fact_set, fact, older = propose(self.fact_set, draft)
        if known is not None:
            self._note_again(fact, change)
        self.let_go += older
        self._waiting.append(fact.id)
        return True

    def _was_made_by(self, change: Change, known: Fact) -> bool:
        """Say whether this very change was applied before, and made the fact."""
        return known.thread_id == self._thread_id and set(change.sources) <= set(known.message_ids)

    def _add(self, draft: Fact, change: Change) -> Fact:
        self.fact_set, fact = place(self.fact_set, draft)
        if fact.created_at != draft.created_at:  # it comes back from history, and so was said again
            self._note_again(fact, change)
        if fact.status == "active":
            self._created.append(fact)
        return fact

    def _draft(self, change: Change, status: Status = "active", like: Fact | None = None) -> Fact:
        """Return what a change says as a fact; in the place of another one, it is as well protected as that."""
        return Fact(
            id="",
            content=change.content,
            category=change.category,
            confidence=change.confidence,
            # An import brings what was said long ago, and it is as old as that.
            created_at=change.said_at or self._now if is_imported(self._thread_id) else self._now,
            updated_at=self._now,
            source="conversation",
            status=status,
            # A conversation corrects what a person protected, and must not lay it open to evictions by that.
            pinned=like is not None and is_protected(like),
            replaces=like.id if like else "",
            epoch=self.fact_set.epoch,
            thread_id=self._thread_id,
            message_ids=change.sources,
            edited_at=like.edited_at if like else "",
            edit=like.edit if like else "",
            valid_from=change.valid_from,
            valid_to=change.valid_to,
        )

    def _confirm(self, target: Fact, change: Change) -> None:
        if self._was_made_by(change, target):
            self._created.append(target)
            return
        self._note_again(target, change)
        self._confirmed.append(target.id)

    def _note_again(self, target: Fact, change: Change) -> None:
        evidence = "\n".join((self._thread_id, *change.sources))
        said_at = change.said_at or self._now
        confirmation = Confirmation(target.id, evidence, said_at, self._thread_id, change.sources)
        self.fact_set = confirm(self.fact_set, confirmation)

    def _end(self, target: Fact | None, change: Change) -> None:
        if target is None:
            return
        # A model may misread one sentence; what a person wrote or protects ends only by a person.
        if is_protected(target, self._config.protected_categories):
            self._refused.append(change.refused("protected"))
            return
        # An import is taken back as a whole: what it ended has to be told from what conversations here ended.
        ended_by = self._thread_id if is_imported(self._thread_id) else ""
        self.fact_set = retire(self.fact_set, target.id, "ended", now=self._now, ended_by=ended_by)
        self._superseded.append(target.id)


def is_overtaken(target: Fact, change: Change) -> bool:
    """Say whether a person changed the fact after what the change comes from was said, or was shown to the model."""
    if not target.edited_at:
        return False
    is_unread = 0 < change.target_revision < target.revision
    return is_unread or was_said_before(change, target.edited_at, target.edit)


def _is_older(change: Change, target: Fact) -> bool:
    """Say whether a change would replace or end what was said after it."""
    said, known = moment(change.said_at), moment(target.created_at)
    return change.action in ("corrects", "ends") and said is not None and known is not None and said < known


def _unique(ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))
