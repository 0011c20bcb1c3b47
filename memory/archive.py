"""Everything that is remembered about a user as one JSON document, and such a document taken in again."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory.config import MemoryConfig
from memory.control import read_epoch
from memory.core.changes import Reason, Section
from memory.core.facts import (
    SOURCES,
    Fact,
    checked_category,
    checked_confidence,
    checked_content,
    strongest_first,
    timestamp,
)
from memory.core.items import to_item
from memory.core.profile import SECTIONS, read_profile, write_profile
from memory.core.rules import Shelf, is_full, limit, place
from memory.core.screening import holds_secret, is_instruction_like
from memory.core.shelf import read_history, read_shelf, settle, stands, write_difference
from memory.core.tombstones import moment
from memory.daily.journal import JournalEntry, append, read_journal
from memory.namespaces import Owner
from memory.storage import Steps, delete
from memory.text import normalize, sanitize

logger = logging.getLogger(__name__)

Json = Mapping[str, object]

SCHEMA: Final = "palimpsest.memory"
VERSION: Final = 1
MAX_FACTS: Final = 2_000
MAX_JOURNAL_ENTRIES: Final = 10_000
_MAX_MESSAGE_CHARS: Final = 100_000
_INNER: Final = ("epoch", "schema")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What taking in a document did.

    Attributes:
        created: Ids of the facts that are new, in the document's order.
        known: How many facts said what was known already.
        refused: Position and reason of each fact that was not taken.
        quarantined: Ids of new facts that wait for review.
        sections: Names of the profile sections that were empty and now are not.
        journal: How many journal entries the document holds.
    """

    created: tuple[str, ...] = ()
    known: int = 0
    refused: tuple[tuple[int, Reason], ...] = ()
    quarantined: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    journal: int = 0


def export_steps(owner: Owner, seconds: float) -> Steps[Json]:
    """Return the document: facts and their history, the profile, the journal. Pending updates are no part of it."""
    epoch = yield from read_epoch(owner)
    shelf = yield from read_shelf(owner, epoch)
    history = yield from read_history(owner, epoch)
    profile = yield from read_profile(owner, epoch)
    journal = yield from read_journal(owner, epoch)
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "exported_at": timestamp(seconds),
        "agent": owner.agent_name,
        "facts": [_plain(to_item(fact)) for fact in strongest_first(list(shelf.rows.values()))],
        "history": [_plain(to_item(fact)) for fact in history],
        "profile": {name: section.text for name, section in profile.items()},
        "journal": [_plain(entry.to_json()) for entry in journal],
    }


def _plain(item: Json) -> Json:
    return {name: value for name, value in item.items() if name not in _INNER}


def import_steps(owner: Owner, document: Json, config: MemoryConfig, seconds: float) -> Steps[Imported]:
    """Take a document in; taking it in twice is the same as once, and what is there already is never overwritten.

    Facts pass the same checks as what a model extracted: secrets are refused, what reads as an order is
    quarantined; only the confidence threshold does not count. Their history is not taken in. Where an erase comes in
    between, nothing is.

    Raises:
        ValueError: If it is no such document; the message names the field.
    """
    facts, profile, entries = checked_document(document)
    now = timestamp(seconds)
    epoch = yield from read_epoch(owner)
    before = yield from read_shelf(owner, epoch, [str(fact.get("content", "")) for fact in facts])
    intake = Intake(before, epoch=epoch, now=now, config=config)
    for index, raw in enumerate(facts):
        intake.take(index, raw)
    yield from write_difference(owner, epoch, before, intake.finished())
    yield from settle(owner, epoch, before, config)
    sections = yield from _fill_profile(owner, profile, epoch=epoch, now=now)
    yield from append(owner, [replace(entry, epoch=epoch) for entry in entries])
    if not (yield from stands(owner, epoch)):
        yield [delete(owner.namespace("journal"), entry.key) for entry in entries]
        return Imported()
    done = replace(intake.result(), sections=sections, journal=len(entries))
    logger.info(
        "took in a document: created %d, known %d, refused %d", len(done.created), done.known, len(done.refused)
    )
    return done


def _fill_profile(owner: Owner, profile: Mapping[str, str], *, epoch: str, now: str) -> Steps[tuple[str, ...]]:
    there = yield from read_profile(owner, epoch)
    missing = {name: text for name, text in profile.items() if name not in there and text.strip()}
    fit = {name: text for name, text in missing.items() if not holds_secret(text) and not is_instruction_like(text)}
    yield from write_profile(owner, [Section(name=name, text=text) for name, text in fit.items()], epoch=epoch, now=now)
    return tuple(fit)


def checked_document(
    document: Json,
) -> tuple[Sequence[Json], Mapping[str, str], Sequence[JournalEntry]]:
    """Return facts, profile sections and journal entries of a document; `ValueError` naming the field if it is none."""
    if document.get("schema") != SCHEMA:
        raise ValueError(f"schema must be {SCHEMA!r}")
    if document.get("version") != VERSION:
        raise ValueError(f"version must be {VERSION}; other versions are not known")
    facts = _objects(document, "facts", MAX_FACTS)
    journal = [_entry(index, each) for index, each in enumerate(_objects(document, "journal", MAX_JOURNAL_ENTRIES))]
    return facts, _sections(document.get("profile", {})), journal


def _objects(document: Json, name: str, most: int) -> list[Json]:
    found = document.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise ValueError(f"{name} must be a list of objects")
    if len(found) > most:
        raise ValueError(f"{name} must have at most {most} entries")
    return found


def _sections(profile: object) -> dict[str, str]:
    if not isinstance(profile, Mapping):
        raise ValueError("profile must be an object of texts")
    for name, text in profile.items():
        if name not in SECTIONS or not isinstance(text, str):
            raise ValueError(f"profile must hold texts under {', '.join(SECTIONS)}")
    return dict(profile)


def _entry(index: int, value: Json) -> JournalEntry:
    try:
        entry = JournalEntry.from_json({**value, "epoch": ""})
    except ValueError as error:
        raise ValueError(f"journal.{index} is no journal entry") from error
    if moment(entry.day) is None or any(moment(message.time) is None for message in entry.messages):
        raise ValueError(f"journal.{index} must have ISO 8601 times")
    messages = tuple(
        replace(message, id=_text(message.id), text=sanitize(message.text, _MAX_MESSAGE_CHARS))
        for message in entry.messages
    )
    return replace(entry, thread_id=_text(entry.thread_id), messages=messages)


class Intake:
    """A document's facts on their way onto a shelf."""

    def __init__(self, shelf: Shelf, *, epoch: str, now: str, config: MemoryConfig) -> None:
        self._before = frozenset(shelf.rows)
        self._shelf, self._epoch, self._now, self._config = shelf, epoch, now, config
        self._created: list[Fact] = []
        self._refused: list[tuple[int, Reason]] = []
        self._known = 0
        self._said = {(fact.status, normalize(fact.content)) for fact in shelf.rows.values()}

    def take(self, index: int, raw: Json) -> None:
        """Take one fact, or note why not."""
        try:
            draft = self._draft(raw)
        except ValueError as error:
            self._refused.append((index, _reason(str(error))))
            return
        if holds_secret(draft.content):
            self._refused.append((index, "secret"))
        elif (draft.status, normalize(draft.content)) in self._said:
            self._known += 1
        elif draft.status == "active" and is_full(self._shelf, self._config):
            self._refused.append((index, "full"))
        else:
            self._shelf, fact = place(self._shelf, draft)
            self._created.append(fact)
            self._said.add((fact.status, normalize(fact.content)))

    def finished(self) -> Shelf:
        """Return the shelf with what was taken, within its limit."""
        return limit(self._shelf, self._config, frozenset(self._shelf.rows) - self._before)

    def result(self) -> Imported:
        """Tell what became of the facts."""
        present = {fact.id for fact in self.finished().rows.values()}
        created = [fact for fact in self._created if fact.id in present]
        return Imported(
            created=tuple(fact.id for fact in created),
            known=self._known,
            refused=tuple(self._refused),
            quarantined=tuple(fact.id for fact in created if fact.status == "quarantined"),
        )

    def _draft(self, raw: Json) -> Fact:
        content = checked_content(raw.get("content"))
        suspect = raw.get("status") == "quarantined" or is_instruction_like(content)
        return Fact(
            id="",
            content=content,
            category=checked_category(raw.get("category")),
            confidence=checked_confidence(raw.get("confidence")),
            created_at=_time(raw.get("createdAt"), self._now),
            updated_at=self._now,
            source=next((source for source in SOURCES if source == raw.get("source")), "api"),
            status="quarantined" if suspect else "active",
            pinned=raw.get("pinned") is True,
            epoch=self._epoch,
            thread_id=_text(raw.get("thread_id")),
            message_ids=_texts(raw.get("message_ids")),
        )


def _reason(message: str) -> Reason:
    if message.startswith("category"):
        return "unknown_category"
    if message.startswith("confidence"):
        return "bad_confidence"
    return "too_long" if "at most" in message else "empty"


def _time(value: object, now: str) -> str:
    return value if isinstance(value, str) and moment(value) is not None else now


def _text(value: object) -> str:
    return sanitize(value, 200) if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_text(each) for each in value[:100] if isinstance(each, str)) if isinstance(value, list) else ()
