"""A document that exporting wrote taken in again, a piece at a time, however large it is."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from memory.archive.json_parts import JsonPart
from memory.config import MemoryConfig
from memory.control import INITIAL_EDIT, read_epoch
from memory.effects import StoreEffects, delete
from memory.facts.changes import Reason, Section
from memory.facts.effects import FactEffects
from memory.facts.fact import (
    HELD,
    SOURCES,
    Fact,
    checked_category,
    checked_confidence,
    checked_content,
    checked_period,
    checked_topic,
    moment,
    timestamp,
)
from memory.facts.profile import SECTIONS, read_profile, write_profile
from memory.facts.rows import stands
from memory.journal.entry import JournalEntry
from memory.journal.journal import append
from memory.journal.revision import revision_put
from memory.message import StoredMessage
from memory.namespaces import Owner
from memory.outbox.entry import Entry
from memory.outbox.outbox import record
from memory.screening.door import holds_secret, is_instruction_like
from memory.text import sanitize

logger = logging.getLogger(__name__)

Json = Mapping[str, object]
T = TypeVar("T")

SCHEMA: Final = "palimpsest.memory"
VERSION: Final = 2
VERSIONS: Final = (1, VERSION)
_MAX_MESSAGE_CHARS: Final = 100_000
_SCALARS: Final = ("schema", "version", "exported_at", "agent")
_LISTS: Final = ("facts", "history", "journal", "updates", "summaries")
# So many entries, or characters of them, are taken in together; a document of fewer is taken in whole or not at all.
_PIECE_ENTRIES: Final = 500
_PIECE_CHARS: Final = 4 * 1024 * 1024
# Of so many refused entries the places are told; the rest is counted.
_TOLD: Final = 1_000


def read_fact(raw: object, *, epoch: str, now: str) -> Fact | Reason:
    """Return the fact that an entry of a document describes, or why it is refused.

    Args:
        raw: The entry.
        epoch: The user's current epoch.
        now: ISO 8601; all facts of a document come at one time.
    """
    if not isinstance(raw, Mapping):
        return "malformed"
    try:
        content = checked_content(raw.get("content"))
        category = checked_category(raw.get("category"))
        confidence = checked_confidence(raw.get("confidence"))
    except ValueError as error:
        said = str(error)
        if said.startswith("category"):
            return "unknown_category"
        if said.startswith("confidence"):
            return "bad_confidence"
        return "too_long" if "at most" in said else "empty"
    if holds_secret(content):
        return "secret"
    # What waited for a person waits on; a document must not say yes in their place.
    held = next((status for status in HELD if status == raw.get("status")), None)
    return Fact(
        id="",
        content=content,
        category=category,
        confidence=confidence,
        created_at=_time(raw.get("createdAt"), now),
        updated_at=now,
        source=next((source for source in SOURCES if source == raw.get("source")), "api"),
        status="quarantined" if is_instruction_like(content) else held or "active",
        pinned=raw.get("pinned") is True,
        epoch=epoch,
        thread_id=short_text(raw.get("thread_id")),
        message_ids=short_texts(raw.get("message_ids")),
        edited_at=_time(raw.get("editedAt"), ""),
        valid_from=checked_period(raw.get("validFrom")),
        valid_to=checked_period(raw.get("validTo")),
        topic=checked_topic(raw.get("topic")),
    )


def _time(value: object, otherwise: str) -> str:
    return value if isinstance(value, str) and moment(value) is not None else otherwise


def short_text(value: object) -> str:
    """Return an id or a name as a store takes it; empty for what is no text."""
    return sanitize(value, 200) if isinstance(value, str) else ""


def short_texts(value: object) -> tuple[str, ...]:
    """Return the ids of a list, at most 100."""
    return tuple(short_text(each) for each in value[:100] if isinstance(each, str)) if isinstance(value, list) else ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """One entry that was not taken in: the list it stands in, its place there (from 0), and why."""

    part: str
    index: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What taking in a document did.

    Attributes:
        created: Ids of the facts that are new, in the document's order.
        known: How many facts said what was known already.
        rejected: The entries that were not taken in; the first 1,000 of them.
        more_rejected: How many more there are.
        quarantined: Ids of new facts that wait for review.
        sections: Names of the profile sections that were empty and now are not.
        journal: How many journal entries were taken in.
        updates: How many updates wait again.
    """

    created: tuple[str, ...] = ()
    known: int = 0
    rejected: tuple[Rejected, ...] = ()
    more_rejected: int = 0
    quarantined: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    journal: int = 0
    updates: int = 0

    @property
    def refused(self) -> tuple[tuple[int, Reason], ...]:
        """Position and reason of each fact that was not taken."""
        return tuple((each.index, each.reason) for each in self.rejected if each.part == "facts")


class Importer:
    """Takes a document in, part by part; taking it in twice is the same as once, and nothing there is overwritten.

    Facts pass the same checks as what a model extracted: secrets are refused, what reads as an order is quarantined;
    only the confidence threshold does not count, and of more than `max_facts` the strongest stay. Pending updates wait
    again. History and summaries are there for the person to have, and are not taken in. A bad entry is refused by its
    place and costs no other one. Where an erase comes in between, nothing is taken in.

    Args:
        owner: Whose memory.
        config: The limit, and which categories are protected.
        seconds: Now, in seconds since 1970; all facts of a document come at one time, so that undo takes them back.
    """

    def __init__(self, owner: Owner, config: MemoryConfig, seconds: float) -> None:
        self._owner, self._seconds = owner, seconds
        self._now = timestamp(seconds)
        self._named: set[str] = set()
        self._epoch = ""
        self._is_erased = False
        self._waiting: list[JsonPart] = []
        self._size = 0
        self.has_written = False
        self.waiting_threads: set[str] = set()
        self._facts = FactEffects(owner, config, lambda: seconds)
        # The store keys of the document's new facts, as long as they are there, and their places in it; by their ids.
        self._fresh: dict[str, str] = {}
        self._places: dict[str, int] = {}
        self._held: set[str] = set()
        self._done = Imported()

    def take(self, part: JsonPart) -> None:
        """Take the next part; `ValueError`, which names the field, if it cannot be one of such a document."""
        name, at, value, size = part
        if name in _SCALARS and at is None:
            if name == "schema" and value != SCHEMA:
                raise ValueError(f"schema must be {SCHEMA!r}")
            if name == "version" and (isinstance(value, bool) or value not in VERSIONS):
                raise ValueError(f"version must be {' or '.join(map(str, VERSIONS))}; others are not known")
            self._named.add(name)
            return
        # What a document is has to be known first: by its end, half of it is in the store.
        if "schema" not in self._named:
            raise ValueError(f"schema must be {SCHEMA!r}, and stand before the rest")
        if "version" not in self._named:
            raise ValueError("version must stand before the rest")
        if name == "profile":
            value = _sections(value if at is None else [])
        elif name not in _LISTS:
            raise ValueError(f"{name[:64]} is no part of such a document")
        elif at is None and value != []:
            raise ValueError(f"{name} must be a list of objects")
        if name not in ("history", "summaries") and value != []:
            self._waiting.append(JsonPart(name, at, value))
            self._size += size

    @property
    def has_much(self) -> bool:
        """Whether so much was taken that it is time to `write` it."""
        return len(self._waiting) >= _PIECE_ENTRIES or self._size >= _PIECE_CHARS

    def finish(self) -> StoreEffects[Imported]:
        """Write what is left, and tell what was done.

        Raises:
            ValueError: If the document does not say what it is.
        """
        if missing := [name for name in ("schema", "version") if name not in self._named]:
            raise ValueError(f"{missing[0]} must be in the document")
        yield from self.write()
        if self._is_erased:
            return Imported()
        created = sorted(self._fresh, key=self._places.__getitem__)
        waits = tuple(each for each in created if each in self._held)
        done = replace(self._done, created=tuple(created), quarantined=waits)
        counts = (len(done.created), done.known, len(done.rejected) + done.more_rejected)
        logger.info("took in a document: created %d, known %d, refused %d", *counts)
        return done

    def write(self) -> StoreEffects[None]:
        """Write what was taken."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        epoch = yield from read_epoch(self._owner)
        self._epoch = self._epoch or epoch
        self._is_erased = self._is_erased or epoch != self._epoch
        if self._is_erased:
            return
        self.has_written = True
        yield from self._write_facts([part for part in waiting if part.name == "facts"])
        for part in waiting:
            if part.name == "profile":
                sections = yield from _fill_profile(self._owner, part.value, epoch=epoch, now=self._now)
                self._done = replace(self._done, sections=sections)
        entries = [entry for part in waiting if part.name == "journal" and (entry := self._read(part, self._entry))]
        yield from append(self._owner, entries)
        drafts = [draft for part in waiting if part.name == "updates" and (draft := self._read(part, self._draft))]
        for draft in drafts:  # one that is there already stays as it is, with its progress
            yield from record(draft)
            self.waiting_threads.add(draft.thread_id)
        done = self._done
        self._done = replace(done, journal=done.journal + len(entries), updates=done.updates + len(drafts))
        if not (yield from stands(self._owner, epoch)):
            # That took facts and profile back; it does not look through the journal.
            yield [
                *(delete(self._owner.namespace("journal"), entry.key) for entry in entries),
                revision_put(self._owner),
            ]
            self._is_erased = True

    def _write_facts(self, parts: Sequence[JsonPart]) -> StoreEffects[None]:
        if not parts:
            return
        read = [(part.place or 0, read_fact(part.value, epoch=self._epoch, now=self._now)) for part in parts]
        drafts = [(at, fact) for at, fact in read if isinstance(fact, Fact)]
        inserted = yield from self._facts.insert(
            self._epoch, [fact for _, fact in drafts], frozenset(self._fresh.values())
        )
        became = dict(zip((at for at, _ in drafts), inserted.done, strict=True))
        for at, fact in read:
            done = became.get(at, fact)
            if isinstance(done, Fact):
                self._places[done.id], self._fresh[done.id] = at, ""
                self._held |= {done.id} if done.status in HELD else set()
            elif done == "duplicate":
                self._done = replace(self._done, known=self._done.known + 1)
            else:
                self._reject("facts", at, done)
        for lost in [each for each in self._fresh if each not in inserted.keys]:  # stronger ones have their place
            self._reject("facts", self._places.pop(lost), "full")
            del self._fresh[lost]
        self._fresh = {each: inserted.keys[each] for each in self._fresh}

    def _reject(self, part: str, at: int, reason: Reason) -> None:
        done = self._done
        if len(done.rejected) < _TOLD:
            self._done = replace(done, rejected=(*done.rejected, Rejected(part, at, reason)))
        else:
            self._done = replace(done, more_rejected=done.more_rejected + 1)

    def _read(self, part: JsonPart, read: Callable[[Json], T]) -> T | None:
        """Return what an entry is; `None`, and a note of its place, if it is none."""
        try:
            if not isinstance(part.value, Mapping):
                raise ValueError("an entry must be an object")
            return read(part.value)
        except (ValueError, OverflowError):
            self._reject(part.name, part.place or 0, "malformed")
            return None

    def _entry(self, value: Json) -> JournalEntry:
        entry = JournalEntry.from_json({**value, "epoch": ""})
        if moment(entry.day) is None:
            raise ValueError("day must be ISO 8601")
        messages = _messages(entry.messages)
        return replace(entry, thread_id=short_text(entry.thread_id), messages=messages, epoch=self._epoch)

    def _draft(self, value: Json) -> Entry:
        """Return the pending update of an entry, as if it had been written down now; its messages keep their times."""
        kind, thread_id = value.get("kind"), short_text(value.get("thread_id"))
        said = value.get("messages")
        if kind not in ("turn", "cut") or not thread_id or not isinstance(said, list):
            raise ValueError("an update must have kind, thread_id and messages")
        messages = _messages(map(StoredMessage.from_json, said))
        if not messages:
            raise ValueError("an update must have messages")
        created = moment(str(value.get("created")))
        return Entry(
            kind="turn" if kind == "turn" else "cut",
            owner=self._owner,
            thread_id=thread_id,
            epoch=self._epoch,
            created=min(self._seconds, created.timestamp()) if created else self._seconds,
            due=self._seconds,
            # These were said before any edit that this store knows of: all that were made here count as later.
            messages=tuple(replace(message, edit=INITIAL_EDIT) for message in messages),
            edited_away=short_texts(value.get("edited_away")),
            model=short_text(value.get("model")),
        )


def _messages(messages: Iterable[StoredMessage]) -> tuple[StoredMessage, ...]:
    """Return the messages as a store takes them; `ValueError` if a time is none."""
    read = tuple(messages)
    if any(moment(message.time) is None for message in read):
        raise ValueError("times must be ISO 8601")
    return tuple(
        replace(message, id=short_text(message.id), text=sanitize(message.text, _MAX_MESSAGE_CHARS)) for message in read
    )


def _fill_profile(owner: Owner, given: object, *, epoch: str, now: str) -> StoreEffects[tuple[str, ...]]:
    profile = _sections(given)
    there = yield from read_profile(owner, epoch)
    missing = {name: text for name, text in profile.items() if name not in there and text.strip()}
    fit = {name: text for name, text in missing.items() if not holds_secret(text) and not is_instruction_like(text)}
    yield from write_profile(owner, [Section(name=name, text=text) for name, text in fit.items()], epoch=epoch, now=now)
    return tuple(fit)


def _sections(profile: object) -> dict[str, str]:
    if not isinstance(profile, Mapping):
        raise ValueError("profile must be an object of texts")
    for name, text in profile.items():
        if name not in SECTIONS or not isinstance(text, str):
            raise ValueError(f"profile must hold texts under {', '.join(SECTIONS)}")
    return dict(profile)
