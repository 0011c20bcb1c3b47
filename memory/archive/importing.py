"""What exporting wrote taken in again, line by line, however many lines there are."""

import json
import logging
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from memory.archive.entries import FORMAT, SCHEMA, read_entry, read_fact, read_texts, read_update
from memory.config import MemoryConfig
from memory.control import read_epoch
from memory.door import StoreEffects, transaction
from memory.facts.changes import Reason, Section
from memory.facts.deletions import read_records, text_key
from memory.facts.effects import FactEffects
from memory.facts.fact import HELD, Fact, timestamp
from memory.facts.profile import read_profile, write_profile
from memory.journal.entry import JournalEntry
from memory.journal.journal import append
from memory.namespaces import Owner
from memory.screening.door import screened
from memory.updates.outbox import record

logger = logging.getLogger(__name__)

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
class Refused:
    """A line that was not taken in: its number, from 1, and why."""

    line: int
    reason: Reason


@dataclass(slots=True, kw_only=True)
class Imported:
    """What taking in an export did.

    Attributes:
        created: Ids of the facts that are new, in the export's order.
        known: How many facts said what was known already.
        refused: The lines that were not taken in; the first 1,000 of them.
        refused_more: How many more there are.
        quarantined: Ids of new facts that wait for review.
        sections: Names of the profile sections that were empty and now are not.
        journal: How many journal entries were taken in.
        updates: How many updates wait again.
    """

    created: list[str] = field(default_factory=list)
    known: int = 0
    refused: list[Refused] = field(default_factory=list)
    refused_more: int = 0
    quarantined: list[str] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    journal: int = 0
    updates: int = 0

    def refuse(self, line: int, reason: Reason) -> None:
        """Note a line that is not taken in."""
        if len(self.refused) < _TOLD:
            self.refused.append(Refused(line, reason))
        else:
            self.refused_more += 1


class _New(NamedTuple):
    """A fact that was taken in: the number of its line, and whether it waits for a person."""

    line: int
    is_held: bool


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
        self.owner, self._seconds, self._now = owner, seconds, timestamp(seconds)
        self.has_written = False
        self.waiting_threads: set[str] = set()
        self._facts = FactEffects(owner, config, lambda: seconds)
        self._line = self._size = 0
        self._has_header = self._is_erased = False
        self._epoch = ""
        # What was taken and is not written yet: the number of the line, the name of its part, the entry.
        self._waiting: list[tuple[int, str, object]] = []
        self._new: dict[str, _New] = {}
        self._done = Imported()

    def take(self, line: bytes) -> None:
        """Take the next line; `ValueError` if the first one is not the header of an export."""
        self._line += 1
        if not line.strip():
            return
        value = json_of(line if self._has_header else line.removeprefix(BOM_UTF8))
        said = value if isinstance(value, dict) else {}
        if not self._has_header:
            if (said.get("format"), said.get("schema")) != (FORMAT, SCHEMA):
                raise ValueError(_NO_HEADER)
            self._has_header = True
            return
        part, entry = next(iter(said.items())) if len(said) == 1 else ("", None)
        if part in ("fact", "profile", "journal", "update"):
            self._waiting.append((self._line, part, entry))
            self._size += len(line)
        elif part != "history":
            self._done.refuse(self._line, "malformed")

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
        done = self._done
        done.created = sorted(self._new, key=self._new.__getitem__)
        done.quarantined = [each for each in done.created if self._new[each].is_held]
        counts = (len(done.created), done.known, len(done.refused) + done.refused_more)
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
        yield from self._write_facts({line: entry for line, part, entry in waiting if part == "fact"})
        journal: list[JournalEntry] = []
        for line, part, entry in waiting:
            if part == "fact":
                continue
            try:
                if not isinstance(entry, Mapping):
                    raise ValueError("an entry must be an object")
                if part == "profile":
                    yield from self._write_profile(read_texts(entry))
                elif part == "journal":
                    journal.append(read_entry(entry, epoch=epoch))
                else:  # one that is there already stays as it is, with its progress
                    update = read_update(entry, owner=self.owner, epoch=epoch, now=self._seconds)
                    yield from record(update)
                    self.waiting_threads.add(update.thread_id)
                    self._done.updates += 1
            except (ValueError, OverflowError):
                self._done.refuse(line, "malformed")
        yield from append(self.owner, journal)
        self._done.journal += len(journal)

    def _write_profile(self, texts: Mapping[str, str]) -> StoreEffects[None]:
        there = yield from read_profile(self.owner, self._epoch)
        fit = {name: text for name, text in texts.items() if name not in there and text.strip()}
        sections = [Section(name=name, text=text) for name, text in fit.items() if screened(text) is None]
        yield from write_profile(self.owner, sections, epoch=self._epoch, now=self._now)
        self._done.sections = [each.name for each in sections]

    def _write_facts(self, entries: Mapping[int, object]) -> StoreEffects[None]:
        if not entries:
            return
        became: dict[int, Fact | Reason] = {
            line: read_fact(entry, epoch=self._epoch, now=self._now) for line, entry in entries.items()
        }
        facts = {line: fact for line, fact in became.items() if isinstance(fact, Fact)}
        # Who said no, or changed it, is not asked once more.
        waiting = {line: text_key(fact.content) for line, fact in facts.items() if fact.status == "waiting"}
        answered = yield from read_records(self.owner, self._epoch, {*waiting.values()})
        drafts = {line: each for line, each in facts.items() if waiting.get(line) not in answered}
        done, there = yield from self._facts.insert([*drafts.values()], self._new.keys())
        became |= dict.fromkeys(facts, "duplicate")
        became |= zip(drafts, done, strict=True)
        for line, each in became.items():
            if isinstance(each, Fact):
                self._new[each.id] = _New(line, each.status in HELD)
            elif each == "duplicate":
                self._done.known += 1
            else:
                self._done.refuse(line, each)
        for lost in [each for each in self._new if each not in there]:  # stronger ones have their place
            self._done.refuse(self._new.pop(lost).line, "full")


def json_of(line: bytes) -> object:
    """Return the value of a line; `None` where it is no JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
