"""A document that exporting wrote taken in again, a piece at a time, however large it is."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from memory.archive.entries import Json, read_entry, read_fact, read_texts, read_update
from memory.archive.json_parts import JsonPart
from memory.config import MemoryConfig
from memory.control import read_epoch
from memory.effects import StoreEffects, delete
from memory.facts.changes import Reason, Section
from memory.facts.effects import FactEffects
from memory.facts.fact import (
    HELD,
    Fact,
    timestamp,
)
from memory.facts.profile import read_profile, write_profile
from memory.facts.rows import stands
from memory.journal.journal import append
from memory.journal.revision import revision_put
from memory.namespaces import Owner
from memory.outbox.outbox import record
from memory.screening.door import screened

logger = logging.getLogger(__name__)

T = TypeVar("T")

SCHEMA: Final = "palimpsest.memory"
VERSION: Final = 2
VERSIONS: Final = (1, VERSION)
_SCALARS: Final = ("schema", "version", "exported_at", "agent")
_LISTS: Final = ("facts", "history", "journal", "updates", "summaries")
# So many entries, or characters of them, are taken in together; a document of fewer is taken in whole or not at all.
_PIECE_ENTRIES: Final = 500
_PIECE_CHARS: Final = 4 * 1024 * 1024
# Of so many refused entries the places are told; the rest is counted.
_TOLD: Final = 1_000


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

    Facts pass the same checks as what a model extracted: keys and card numbers are refused, what reads as an order or
    may hold a secret is quarantined; only the confidence threshold does not count, and of more than `max_facts` the
    strongest stay. Pending updates wait again. History and summaries are there for the person to have, and are not
    taken in. A bad entry is refused by its place and costs no other one. Where an erase comes in between, nothing is
    taken in.

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
            value = read_texts(value if at is None else [])
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
        entry_of = partial(read_entry, epoch=epoch)
        entries = [entry for part in waiting if part.name == "journal" and (entry := self._read(part, entry_of))]
        yield from append(self._owner, entries)
        draft_of = partial(read_update, owner=self._owner, epoch=epoch, now=self._seconds)
        drafts = [draft for part in waiting if part.name == "updates" and (draft := self._read(part, draft_of))]
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


def _fill_profile(owner: Owner, given: object, *, epoch: str, now: str) -> StoreEffects[tuple[str, ...]]:
    profile = read_texts(given)
    there = yield from read_profile(owner, epoch)
    missing = {name: text for name, text in profile.items() if name not in there and text.strip()}
    fit = {name: text for name, text in missing.items() if screened(text) is None}
    yield from write_profile(owner, [Section(name=name, text=text) for name, text in fit.items()], epoch=epoch, now=now)
    return tuple(fit)
