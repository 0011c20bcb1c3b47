"""How an extraction changes the facts: what is new, confirmed, corrected or over; applied twice as once."""

import logging
from collections.abc import Collection
from dataclasses import replace

from memory.config import MemoryConfig, stricter
from memory.control import count_edit, read_control
from memory.door import StoreEffects, side_by_side
from memory.facts.changes import Change, Extraction, Outcome, Refusal, reasons
from memory.facts.confirmations import Confirmation
from memory.facts.deletions import forgotten, was_said_before
from memory.facts.fact import Fact, Status, is_protected, moment
from memory.facts.profile import approved_sections, read_profile, write_profile
from memory.facts.rows import read_fact_set, save
from memory.facts.rules import FactSet
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
    control, unwanted, facts, profile = yield from side_by_side(
        read_control(owner),
        forgotten(owner, epoch, thread_id, extraction.changes),
        read_fact_set(owner, [each.content for each in extraction.changes if each.content], now=now),
        read_profile(owner, epoch),
    )
    # An erase came between the message and now: nothing that was said before it may be written.
    if control.epoch != epoch:
        logger.info("dropped an extraction of an erased epoch: %d changes", len(extraction.changes))
        return Outcome(refused=tuple(change.refused("stale") for change in extraction.changes))
    config = replace(config, approval=stricter(config.approval, control.approval))
    # Sections tell how things are now, and have no dates by which an old conversation would give way.
    sections = () if is_imported(thread_id) else extraction.profile
    if config.approval != "off":
        sections = approved_sections(sections, profile, [fact.content for fact in facts.active()])
    update = FactUpdate(facts, thread_id, config)
    outcome = update.apply(extraction, unwanted)
    yield from write_profile(owner, sections, epoch=epoch, now=now)
    if update.let_go or outcome.waiting:
        # Also where only something new waits: who holds the journal has to leave out what it came from.
        facts.edit = yield from count_edit(owner)
        stays = {each for fact in facts.rows.values() for each in fact.message_ids}
        facts.let_go(update.let_go, but=stays)
    yield from save(facts, kept={section.name for section in sections})
    logger.info(
        "applied an extraction: created %d, confirmed %d, superseded %d, waiting %d, refused %s",
        *map(len, (outcome.created, outcome.confirmed, outcome.superseded, outcome.waiting)),
        reasons(outcome.refused),
    )
    return outcome


class FactUpdate:
    """One extraction on its way into the facts of a thread's user.

    Args:
        facts: What is there, and what it becomes.
        thread_id: The thread that it is from.
        config: The limit, which categories are protected, and what waits for the user's yes.

    Attributes:
        let_go: Facts that waited for a yes, and went as too many waited.
    """

    def __init__(self, facts: FactSet, thread_id: str, config: MemoryConfig) -> None:
        self.let_go: list[Fact] = []
        self._facts, self._thread_id, self._config = facts, thread_id, config
        self._created: dict[str, None] = {}
        self._confirmed: dict[str, None] = {}
        self._superseded: dict[str, None] = {}
        self._waiting: dict[str, None] = {}
        self._refused: list[Refusal] = []

    def apply(self, extraction: Extraction, forgotten: Collection[Change] = ()) -> Outcome:
        """Make the changes, but those that would bring back what was deleted, and return what happened."""
        for refusal in extraction.refused:
            self._refused.append(refusal)
            # A suspected order, secret or number is kept for review: nothing injects it.
            if refusal.reason in ("instruction_like", "suspected", "unfounded") and not self._facts.saying(
                refusal.content
            ):
                self._facts.add(self._draft(refusal, "quarantined"), self._config)
        for change in extraction.changes:
            if change in forgotten:
                self._refused.append(change.refused("forgotten"))
            else:
                self._make(change)
        # The weakest go; new facts that found no room are refused. Of what waits, the oldest goes.
        went = self._facts.limit(self._config)
        self.let_go = [fact for fact in went if fact.status == "waiting"]
        lost = [fact for fact in went if fact.id in self._created]
        self._refused += [Refusal(reason="full", content=fact.content, category=fact.category) for fact in lost]
        there = self._facts.rows
        return Outcome(
            created=tuple(each for each in self._created if each in there),
            confirmed=tuple(self._confirmed),
            superseded=tuple(self._superseded),
            refused=tuple(self._refused),
            waiting=tuple(each for each in self._waiting if each in there),
        )

    def _make(self, change: Change) -> None:
        """Carry out one change, or refuse it."""
        # What waits for a person is nobody's target: no model was shown it.
        target = self._facts.rows.get(change.target or "")
        target = target if target and target.status == "active" else None
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

    def _end(self, target: Fact | None, change: Change) -> None:
        if target is None:
            return
        # A model may misread one sentence; what a person wrote or protects ends only by a person.
        if is_protected(target, self._config.protected_categories):
            self._refused.append(change.refused("protected"))
            return
        # An import is taken back as a whole: what it ended has to be told from what conversations here ended.
        self._facts.retire(target.id, "ended", ended_by=self._thread_id if is_imported(self._thread_id) else "")
        self._superseded[target.id] = None

    def _learn(self, change: Change, wrong: Fact | None) -> None:
        """Add what a change says, in the place of what it corrects; what is known is said again."""
        fact = self._facts.saying(change.content)
        if fact is None and self._must_wait(change):
            self._propose(change, wrong)
            return
        if fact is None and wrong is None and self._facts.is_full(self._config):
            self._refused.append(change.refused("full"))
            return
        if fact is None:
            fact = self._facts.place(self._draft(change))
            self._created[fact.id] = None
        else:
            if wrong is None:
                self._refused.append(change.refused("duplicate"))
            self._confirm(fact, change)
        if wrong is not None and wrong.id != fact.id:
            self._facts.supersede(wrong, fact)
            self._superseded[wrong.id] = None

    def _must_wait(self, change: Change) -> bool:
        """Say whether the user wants to be asked first. What no model marked as harmless counts as sensitive."""
        return self._config.approval == "all" or (self._config.approval == "sensitive" and change.topic != "none")

    def _propose(self, change: Change, wrong: Fact | None) -> None:
        """Let a change wait for a person's yes; what it corrects stays in use until then."""
        draft = replace(self._draft(change, "waiting"), topic="" if change.topic == "none" else change.topic)
        known = self._facts.saying(change.content, "waiting")
        if known is None:
            fact = self._facts.place(replace(draft, replaces=wrong.id if wrong else ""))
        else:  # it waits on, from now
            fact = self._facts.put(replace(known, updated_at=max(known.updated_at, draft.updated_at)))
            self._note_again(fact, change)
        self._waiting[fact.id] = None

    def _draft(self, change: Change, status: Status = "active") -> Fact:
        """Return what a change says as a fact."""
        now = self._facts.now
        return Fact(
            content=change.content,
            category=change.category,
            confidence=change.confidence,
            # An import brings what was said long ago, and it is as old as that.
            created_at=change.said_at or now if is_imported(self._thread_id) else now,
            updated_at=now,
            source="conversation",
            status=status,
            epoch=self._facts.epoch,
            thread_id=self._thread_id,
            message_ids=change.sources,
            valid_from=change.valid_from,
            valid_to=change.valid_to,
        )

    def _confirm(self, fact: Fact, change: Change) -> None:
        self._note_again(fact, change)
        self._confirmed[fact.id] = None

    def _note_again(self, fact: Fact, change: Change) -> None:
        """Note that a change says a fact again, unless it is what made it."""
        thread_id, sources = self._thread_id, change.sources
        if fact.thread_id != thread_id or not set(sources) <= set(fact.message_ids):
            evidence = "\n".join((thread_id, *sources))
            said_at = change.said_at or self._facts.now
            self._facts.confirm(fact.id, Confirmation(evidence, said_at, thread_id, sources))


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
