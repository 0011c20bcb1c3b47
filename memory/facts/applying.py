"""How an extraction changes the facts: what is new, confirmed, corrected or over; applied twice as once."""

import logging
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from memory.config import MemoryConfig, stricter
from memory.door import side_by_side
from memory.facts.changes import Change, Extraction, Outcome, Reason, Refusal, reasons, was_said_before
from memory.facts.fact import Fact, Status, Why, moment, review_digest
from memory.facts.fact_set import FactSet, first_revisions
from memory.facts.profile import approved_sections, read_profile, write_profile
from memory.facts.records import Confirmation, message_keys, text_key
from memory.facts.rows import read_fact_set, save
from memory.namespaces import Owner, is_imported
from memory.screening.values import NO_SECRETS

logger = logging.getLogger(__name__)

# A suspected order, secret or number is kept for review: nothing injects it.
_HELD: Final[Mapping[Reason, Why]] = {"instruction_like": "order", "suspected": "secret", "unfounded": "number"}


async def change_facts(
    owner: Owner, extraction: Extraction, *, thread_id: str, epoch: str, now: str, config: MemoryConfig
) -> Outcome:
    """Write what an extraction changes, as a part of what a caller writes, and return what it did.

    Args:
        owner: Whose memory it is.
        extraction: What the model found.
        thread_id: The thread it was said in.
        epoch: The epoch under which it was said; nothing is written under another than the current one.
        now: ISO 8601.
        config: The limit, and which categories are protected.
    """
    changes = extraction.changes
    looked_up = first_revisions(owner, [each.content for each in changes])
    looked_up += [key for each in changes for key in _record_keys(thread_id, each)]
    facts, profile = await side_by_side(read_fact_set(owner, looked_up, now=now, config=config), read_profile(owner))
    # An erase came between the message and now: nothing that was said before it may be written.
    if facts.control.epoch != epoch:
        logger.info("dropped an extraction of an erased epoch: %d changes", len(changes))
        return Outcome(refused=tuple(change.refused("stale") for change in changes))
    facts.learn_secrets(extraction.secrets, uuid.uuid4().hex)
    # An imported conversation writes no section: sections tell how things are now, and have no dates to compare.
    told = () if is_imported(thread_id) else extraction.profile
    sections = tuple(each for each in told if not facts.control.secrets.are_in(each.text))
    if stricter(config.approval, facts.control.approval) != "off":
        sections = approved_sections(sections, profile, [fact.content for fact in facts.active()])
    outcome = apply(facts, extraction, thread_id)
    await write_profile(owner, sections, now)
    await save(facts, kept={section.name for section in sections})
    logger.info(
        "applied an extraction: created %d, confirmed %d, superseded %d, waiting %d, refused %s",
        *map(len, (outcome.created, outcome.confirmed, outcome.superseded, outcome.waiting)),
        reasons(outcome.refused),
    )
    return outcome


def _record_keys(thread_id: str, change: Change) -> list[str]:
    """Return the keys of the deletion records that would refuse a change: one for its words, one for each message."""
    return [text_key(change.content), *message_keys({thread_id: change.sources})]


def apply(facts: FactSet, extraction: Extraction, thread_id: str) -> Outcome:
    """Make the changes that were found in a thread, but those that would bring back what was deleted. Pure."""
    done = _Applying(facts, thread_id)
    refused = [change.refused(reason) for change in extraction.changes if (reason := done.make(change))]
    refused = [*extraction.refused, *refused]
    for refusal in refused:
        why = _HELD.get(refusal.reason)
        if why and not facts.saying(refusal.content):
            facts.add(replace(done.draft(refusal, "quarantined"), why=why))
    _set_aside(facts, extraction, thread_id)
    # The weakest go; new facts that found no room are refused.
    lost = [fact for fact in facts.limit() if fact.id in done.made]
    refused += [Refusal(reason="full", content=fact.content, category=fact.category) for fact in lost]
    made = [facts.rows[each] for each in done.made if each in facts.rows]
    waiting = tuple(fact.id for fact in made if fact.status == "waiting")
    if waiting:
        facts.count_edit()
    return Outcome(
        created=tuple(fact.id for fact in made if fact.status == "active"),
        confirmed=tuple(done.confirmed),
        superseded=tuple(done.superseded),
        refused=tuple(refused),
        waiting=waiting,
    )


def _set_aside(facts: FactSet, extraction: Extraction, thread_id: str) -> None:
    """Quarantine facts whose messages this extraction marks as orders, or that repeat a secret which it found.

    Facts in words that a person released stay.
    """
    secrets = facts.control.secrets if extraction.secrets else NO_SECRETS
    for fact in facts.active():
        is_learned = fact.source == "conversation" and fact.thread_id == thread_id
        is_order = is_learned and not extraction.orders.isdisjoint(fact.message_ids)
        if (is_order or secrets.are_in(fact.content)) and fact.reviewed != review_digest(fact.content):
            if facts.saying(fact.content, "quarantined"):
                facts.drop(fact.id)
            else:
                facts.put(replace(fact, status="quarantined", why="order" if is_order else "secret"))


class _Applying:
    """One extraction on its way into the facts of a thread's user, and what becomes of facts, by their ids."""

    def __init__(self, facts: FactSet, thread_id: str) -> None:
        self._facts, self._thread_id, self._is_import = facts, thread_id, is_imported(thread_id)
        self._approval = stricter(facts.config.approval, facts.control.approval)
        # In the order in which it was done.
        self.made, self.confirmed, self.superseded = (dict[str, None]() for _ in range(3))

    def make(self, change: Change) -> Reason | None:
        """Carry out one change, or return why it is refused."""
        facts = self._facts
        if facts.control.secrets.are_in(change.content):
            return "suspected"
        # It must not bring back what a person deleted, or changed, after it was said.
        if facts.is_forgotten(change, _record_keys(self._thread_id, change)):
            return "forgotten"
        # What waits for a person is nobody's target: no model was shown it.
        target = facts.rows.get(change.target or "")
        target = target if target and target.status == "active" else None
        if target and is_overtaken(target, change):
            return "edited"
        if target and self._is_import and _is_older(change, target):
            return "older"
        if change.action == "ends":
            if target and facts.is_safe(target):
                return "protected"  # a model may misread one sentence: what a person protects ends only by a person
            if target:
                # An import is taken back as a whole: what it ended is told from what conversations here ended.
                facts.archive(target.id, "ended", ended_by=self._thread_id if self._is_import else "")
                self.superseded[target.id] = None
            return None
        if change.action == "confirms" and target:
            self._again(target, change)
            return None
        # Also where the target is gone: what the user said is true all the same.
        return self._learn(change, target if change.action == "corrects" else None) if change.content else None

    def _learn(self, change: Change, wrong: Fact | None) -> Reason | None:
        """Add what a change says, in the place of what it corrects; what is known is said again."""
        facts = self._facts
        known = facts.known(change.content, change.valid_to)
        # What no model marked as harmless counts as sensitive.
        if not known and (self._approval == "all" or (self._approval == "sensitive" and change.topic != "none")):
            self._propose(change, wrong)
            return None
        if not known and wrong is None and facts.is_full():
            return "full"
        fact = known or facts.place(self.draft(change))
        if known:
            self._again(known, change)
        else:
            self.made[fact.id] = None
        if wrong is not None and wrong.id != fact.id:
            facts.supersede(wrong, fact)
            self.superseded[wrong.id] = None
        return "duplicate" if known and wrong is None else None

    def _propose(self, change: Change, wrong: Fact | None) -> None:
        """Let a change wait for a person's yes; what it corrects stays in use until then."""
        facts = self._facts
        if known := facts.saying(change.content, "waiting"):  # its days of waiting are counted from now
            self._again(facts.put(replace(known, updated_at=max(known.updated_at, facts.now))), change)
        else:
            topic = "" if change.topic == "none" else change.topic
            draft = replace(self.draft(change, "waiting"), topic=topic, replaces=wrong.id if wrong else "")
            self.made[facts.place(draft).id] = None

    def _again(self, fact: Fact, change: Change) -> None:
        """Note that a change says a fact again, unless it is what made it."""
        if fact.thread_id != self._thread_id or not set(change.sources) <= set(fact.message_ids):
            again = Confirmation(change.said_at or self._facts.now, self._thread_id, change.sources)
            self._facts.confirm(fact.id, again)
        done = self.confirmed if fact.status == "active" else self.made
        done[fact.id] = None

    def draft(self, change: Change, status: Status = "active") -> Fact:
        """Return what a change says as a fact."""
        now = self._facts.now
        return Fact(
            content=change.content,
            category=change.category,
            confidence=change.confidence,
            # An import brings what was said long ago, and it is as old as that.
            created_at=change.said_at or now if self._is_import else now,
            updated_at=now,
            source="conversation",
            status=status,
            thread_id=self._thread_id,
            message_ids=change.sources,
            valid_from=change.valid_from,
            valid_to=change.valid_to,
        )


def is_overtaken(target: Fact, change: Change) -> bool:
    """Say whether a person changed the fact after what the change comes from was said, or was shown to the model."""
    is_unread = 0 < change.target_revision < target.revision
    return bool(target.edited_at) and (is_unread or was_said_before(change, target.edited_at, target.edit))


def _is_older(change: Change, target: Fact) -> bool:
    """Say whether a change would replace or end what was said after it."""
    said, known = moment(change.said_at), moment(target.created_at)
    return change.action in ("corrects", "ends") and said is not None and known is not None and said < known
