"""What exporting wrote taken in again, line by line, however many lines there are."""

import json
import logging
from codecs import BOM_UTF8
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from langgraph.store.base import BaseStore

from memory.archive.entries import FORMAT, SCHEMA, read_entry, read_fact, read_sections, read_update
from memory.config import MemoryConfig
from memory.control import read_control, read_rows
from memory.door import arun, transaction
from memory.facts.changes import Reason
from memory.facts.fact import HELD, Fact
from memory.facts.profile import read_profile, texts_of, write_profile
from memory.facts.records import text_key
from memory.facts.store import FactEffects
from memory.journal.entry import JournalEntry
from memory.journal.journal import append, read_journal_entries
from memory.message import iso_time
from memory.namespaces import Owner
from memory.screening.door import screened
from memory.updates.outbox import read_entries, record

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


class LineRefusal(NamedTuple):
    """A line that was not taken in: its number, from 1, and why."""

    line: int
    reason: Reason


@dataclass(slots=True, kw_only=True)
class Imported:
    """What taking in an export did.

    Attributes:
        lines: The numbers of the lines of the facts that are new, by their ids, in the export's order.
        held: Ids of facts that came to wait for a person.
        known: How many facts said what was known already.
        refused: The lines that were not taken in; the first 1,000 of them.
        refused_more: How many more there are.
        sections: Names of the profile sections that were empty and now are not.
        journal: How many journal entries were taken in, new or not.
        updates: How many updates wait again.
        threads: The threads that these are of.
    """

    lines: dict[str, int] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    known: int = 0
    refused: list[LineRefusal] = field(default_factory=list)
    refused_more: int = 0
    sections: list[str] = field(default_factory=list)
    journal: int = 0
    updates: int = 0
    threads: set[str] = field(default_factory=set)

    @property
    def created(self) -> list[str]:
        """The ids of the facts that are new."""
        return [*self.lines]

    @property
    def quarantined(self) -> list[str]:
        """Those of them that wait for review."""
        return [each for each in self.lines if each in self.held]

    def refuse(self, line: int, reason: Reason) -> None:
        """Note a line that is not taken in."""
        if len(self.refused) < _TOLD:
            self.refused.append(LineRefusal(line, reason))
        else:
            self.refused_more += 1


Piece = Mapping[int, tuple[str, object]]
"""Lines that are written together, by their numbers, from 1: each the name of its part, and the entry."""


async def aimport(
    store: BaseStore, owner: Owner, config: MemoryConfig, seconds: float, lines: AsyncIterable[bytes]
) -> Imported:
    """Take an export in, line by line; taking it in twice is the same as once, and nothing there is overwritten.

    Facts pass the same checks as what a model extracted: keys and card numbers are refused, what reads as an order or
    may hold a secret is quarantined; only the confidence threshold does not count, and of more than `max_facts` the
    strongest stay. Pending updates wait again. History is there for the person to have, and is not taken in. A bad line
    is refused by its number and costs no other one. Where an erase comes in between, nothing more is taken in.

    Args:
        store: Where memory is kept.
        owner: Whose memory.
        config: The limit, and which categories are protected.
        seconds: Now, in seconds since 1970; all facts of an export come at one time, so that undo takes them back.
        lines: The export, which may be larger than memory: it is written in pieces, so not all or nothing.

    Raises:
        ValueError: If the first line is not the header of an export, or the lines themselves raise it: what was read
            before is taken in, and may be sent again.
    """
    facts, done, is_there = FactEffects(owner, config, lambda: seconds), Imported(), False
    epoch = (await arun(store, read_control(owner))).epoch
    async for piece in _pieces(lines, done):
        is_there = await arun(store, _write_piece(facts, epoch, seconds, piece, done))
    if not is_there:
        return Imported()
    counts = (len(done.lines), done.known, len(done.refused) + done.refused_more)
    logger.info("took in an export: created %d, known %d, refused %d", *counts)
    return done


async def _pieces(lines: AsyncIterable[bytes], done: Imported) -> AsyncIterator[Piece]:
    """Yield what is written together, at last what is left, and note the lines that are none."""
    taken, size, number, has_header = dict[int, tuple[str, object]](), 0, 0, False
    async for line in lines:
        number += 1
        if not line.strip():
            continue
        value = json_of(line.removeprefix(BOM_UTF8))
        said = value if isinstance(value, dict) else {}
        if not has_header:
            if (said.get("format"), said.get("schema")) != (FORMAT, SCHEMA):
                raise ValueError(_NO_HEADER)
            has_header = True
            continue
        part, entry = next(iter(said.items())) if len(said) == 1 else ("", None)
        if part in ("fact", "profile", "journal", "update"):
            taken[number] = part, entry
            size += len(line)
        elif part != "history":
            done.refuse(number, "malformed")
        if len(taken) >= _PIECE_LINES or size >= _PIECE_BYTES:
            yield taken
            taken, size = {}, 0
    if not has_header:
        raise ValueError(_NO_HEADER)
    yield taken


@transaction
async def _write_piece(facts: FactEffects, epoch: str, seconds: float, taken: Piece, done: Imported) -> bool:
    """Write lines, and note what came of them; say no, and write nothing, if all was erased meanwhile."""
    owner, now, journal = facts.owner, iso_time(seconds), list[JournalEntry]()
    control = await read_control(owner)
    if control.epoch != epoch:
        return False
    became = {at: read_fact(entry, now) for at, (part, entry) in taken.items() if part == "fact"}
    if became:
        await _write_facts(facts, became, done)
    for number, (part, entry) in taken.items():
        try:
            if part == "fact":
                continue
            if not isinstance(entry, Mapping):
                raise ValueError("an entry must be an object")
            if part == "profile":
                sections, profile = read_sections(entry), texts_of(await read_profile(owner))
                fit = [each for each in sections if each.name not in profile and screened(each.text) is None]
                await write_profile(owner, fit, now)
                done.sections += [each.name for each in fit]
            elif part == "journal":
                line = read_entry(entry)
                is_secret = any(control.secrets.are_in(one.text) for one in line.messages)
                journal.append(line.screened((), control.secrets) if is_secret else line)
            else:  # one that is there already stays as it is, with its progress
                update = read_update(entry, owner=owner, epoch=epoch, now=seconds)
                there = [each.key for each in await read_entries(owner, [update.key]) if each.epoch == epoch]
                if there or await record(update):
                    done.threads.add(update.thread_id)
                    done.updates += 1
        except (ValueError, OverflowError):
            done.refuse(number, "malformed")
    # What is there may say by now what was edited, or answered again, since the export.
    told = {each.key for each in await read_journal_entries(owner, [line.key for line in journal])}
    await append(owner, [line for line in journal if line.key not in told])
    done.journal += len(journal)
    return True


async def _write_facts(facts: FactEffects, became: dict[int, Fact | Reason], done: Imported) -> None:
    read = {line: fact for line, fact in became.items() if isinstance(fact, Fact)}
    # Who said no, or changed it, is not asked once more.
    waiting = {line: text_key(fact.content) for line, fact in read.items() if fact.status in HELD}
    answered = {item.key for item in await read_rows(facts.owner, "history", {*waiting.values()})}
    drafts = {line: each for line, each in read.items() if waiting.get(line) not in answered}
    written, there = await facts.insert([*drafts.values()], done.lines.keys())
    for line, each in (became | dict.fromkeys(read, "duplicate") | dict(zip(drafts, written, strict=True))).items():
        if isinstance(each, Fact):
            done.lines[each.id] = line
            done.held |= {each.id} if each.status in HELD else set()
        elif each == "duplicate":
            done.known += 1
        else:
            done.refuse(line, each)
    for lost in [each for each in done.lines if each not in there]:  # stronger ones have their place
        done.refuse(done.lines.pop(lost), "full")


def json_of(line: bytes) -> object:
    """Return the value of a line; `None` where it is no JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
