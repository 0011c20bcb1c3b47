"""What exporting wrote taken in again, line by line, however many lines there are."""

import json
import logging
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeVar

from memory.archive.entries import FORMAT, SCHEMA, Json, read_entry, read_fact, read_texts, read_update
from memory.config import MemoryConfig
from memory.control import read_epoch
from memory.door import transaction
from memory.effects import StoreEffects
from memory.facts.changes import Reason, Section
from memory.facts.deletions import read_records, text_key
from memory.facts.effects import FactEffects
from memory.facts.fact import HELD, Fact, timestamp
from memory.facts.profile import read_profile, write_profile
from memory.journal.journal import append
from memory.namespaces import Owner
from memory.screening.door import screened
from memory.updates.outbox import record

logger = logging.getLogger(__name__)

T = TypeVar("T")

_NO_HEADER: Final = (
    f'body must begin with the line that an export begins with ({{"format": "{FORMAT}", "schema": {SCHEMA}}}): what an '
    "earlier version exported is not read, so export it again with this one"
)
# So many lines, or bytes of them, are taken in together; an export of fewer is taken in whole or not at all.
_PIECE_LINES: Final = 500
_PIECE_BYTES: Final = 4 * 1024 * 1024
# Of so many refused lines the numbers are told; the rest is counted.
_TOLD: Final = 1_000


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line that was not taken in: its number, from 1, and why."""

    line: int
    reason: Reason


class _Line(NamedTuple):
    """What a line holds: an entry of the part that it names."""

    number: int
    part: str
    entry: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What taking in an export did.

    Attributes:
        created: Ids of the facts that are new, in the export's order.
        known: How many facts said what was known already.
        rejected: The lines that were not taken in; the first 1,000 of them.
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


class Importer:
    """Takes an export in, line by line; taking it in twice is the same as once, and nothing there is overwritten.

    Facts pass the same checks as what a model extracted: keys and card numbers are refused, what reads as an order or
    may hold a secret is quarantined; only the confidence threshold does not count, and of more than `max_facts` the
    strongest stay. Pending updates wait again. History is there for the person to have, and is not taken in. A bad line
    is refused by its number and costs no other one. Where an erase comes in between, nothing is taken in.

    Args:
        owner: Whose memory.
        config: The limit, and which categories are protected.
        seconds: Now, in seconds since 1970; all facts of an export come at one time, so that undo takes them back.
    """

    def __init__(self, owner: Owner, config: MemoryConfig, seconds: float) -> None:
        self.owner, self._seconds = owner, seconds
        self._now = timestamp(seconds)
        self._line = 0
        self._has_header = False
        self._epoch = ""
        self._is_erased = False
        self._waiting: list[_Line] = []
        self._size = 0
        self.has_written = False
        self.waiting_threads: set[str] = set()
        self._facts = FactEffects(owner, config, lambda: seconds)
        # The numbers of the lines of the new facts, as long as they are there, and their store keys; by their ids.
        self._lines: dict[str, int] = {}
        self._held: set[str] = set()
        self._rejected: list[Rejected] = []
        self._known = self._more_rejected = self._journal = self._updates = 0
        self._sections: tuple[str, ...] = ()

    def take(self, line: bytes) -> None:
        """Take the next line; `ValueError` if the first one is not the header of an export."""
        self._line += 1
        if not line.strip():
            return
        value = json_of(line if self._has_header else line.removeprefix(BOM_UTF8))
        if not self._has_header:
            said = (value.get("format"), value.get("schema")) if isinstance(value, Mapping) else None
            if said != (FORMAT, SCHEMA):
                raise ValueError(_NO_HEADER)
            self._has_header = True
            return
        part, entry = next(iter(value.items())) if isinstance(value, Mapping) and len(value) == 1 else ("", None)
        if part in ("fact", "profile", "journal", "update"):
            self._waiting.append(_Line(self._line, part, entry))
            self._size += len(line)
        elif part != "history":
            self._reject(self._line, "malformed")

    @property
    def has_much(self) -> bool:
        """Whether so much was taken that it is time to `write` it."""
        return len(self._waiting) >= _PIECE_LINES or self._size >= _PIECE_BYTES

    def finish(self) -> StoreEffects[Imported]:
        """Write what is left, and tell what was done.

        Raises:
            ValueError: If there was no header.
        """
        if not self._has_header:
            raise ValueError(_NO_HEADER)
        yield from self.write()
        if self._is_erased:
            return Imported()
        created = sorted(self._lines, key=self._lines.__getitem__)
        done = Imported(
            created=tuple(created),
            known=self._known,
            rejected=tuple(self._rejected),
            more_rejected=self._more_rejected,
            quarantined=tuple(each for each in created if each in self._held),
            sections=self._sections,
            journal=self._journal,
            updates=self._updates,
        )
        counts = (len(done.created), done.known, len(done.rejected) + done.more_rejected)
        logger.info("took in an export: created %d, known %d, refused %d", *counts)
        return done

    @transaction
    def write(self) -> StoreEffects[None]:
        """Write what was taken."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        epoch = yield from read_epoch(self.owner)
        self._epoch = self._epoch or epoch
        self._is_erased = self._is_erased or epoch != self._epoch
        if self._is_erased:
            return
        self.has_written = True
        yield from self._write_facts([line for line in waiting if line.part == "fact"])
        for line in waiting:
            if line.part == "profile" and (texts := self._read(line, read_texts)):
                there = yield from read_profile(self.owner, epoch)
                fit = {name: text for name, text in texts.items() if name not in there and text.strip()}
                sections = [Section(name=name, text=text) for name, text in fit.items() if screened(text) is None]
                yield from write_profile(self.owner, sections, epoch=epoch, now=self._now)
                self._sections = tuple(each.name for each in sections)
        entry_of = partial(read_entry, epoch=epoch)
        entries = [entry for line in waiting if line.part == "journal" and (entry := self._read(line, entry_of))]
        yield from append(self.owner, entries)
        draft_of = partial(read_update, owner=self.owner, epoch=epoch, now=self._seconds)
        drafts = [draft for line in waiting if line.part == "update" and (draft := self._read(line, draft_of))]
        for draft in drafts:  # one that is there already stays as it is, with its progress
            yield from record(draft)
            self.waiting_threads.add(draft.thread_id)
        self._journal += len(entries)
        self._updates += len(drafts)

    def _write_facts(self, lines: Sequence[_Line]) -> StoreEffects[None]:
        if not lines:
            return
        given = {line.number: read_fact(line.entry, epoch=self._epoch, now=self._now) for line in lines}
        facts = {at: fact for at, fact in given.items() if isinstance(fact, Fact)}
        # Who said no, or changed it, is not asked once more.
        waiting = {at: text_key(fact.content) for at, fact in facts.items() if fact.status == "waiting"}
        answered = yield from read_records(self.owner, self._epoch, {*waiting.values()})
        drafts = {at: each for at, each in facts.items() if waiting.get(at) not in answered}
        done, there = yield from self._facts.insert([*drafts.values()], self._lines.keys())
        became: dict[int, Fact | Reason] = {**given, **dict.fromkeys(facts, "duplicate")}
        for at, each in (became | dict(zip(drafts, done, strict=True))).items():
            if isinstance(each, Fact):
                self._lines[each.id] = at
                self._held |= {each.id} if each.status in HELD else set()
            elif each == "duplicate":
                self._known += 1
            else:
                self._reject(at, each)
        for lost in [each for each in self._lines if each not in there]:  # stronger ones have their place
            self._reject(self._lines.pop(lost), "full")

    def _reject(self, line: int, reason: Reason) -> None:
        if len(self._rejected) < _TOLD:
            self._rejected.append(Rejected(line, reason))
        else:
            self._more_rejected += 1

    def _read(self, line: _Line, read: Callable[[Json], T]) -> T | None:
        """Return what an entry is; `None`, and a note of its line, if it is none."""
        try:
            if not isinstance(line.entry, Mapping):
                raise ValueError("an entry must be an object")
            return read(line.entry)
        except (ValueError, OverflowError):
            self._reject(line.number, "malformed")
            return None


def json_of(line: bytes) -> object:
    """Return the value of a line; `None` where it is no JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
