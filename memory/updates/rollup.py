"""The roll-up of a journal: what summaries took away on days that are over is told in the profile's recent history."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from functools import partial
from html import escape
from itertools import groupby
from typing import Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.store.base import Op

from memory import prompts
from memory.control import Control, read_control
from memory.door import ask, put, read, side_by_side, transaction
from memory.facts.changes import Section
from memory.facts.profile import StoredSection, drop_sections, read_profile, texts_of, write_profile
from memory.forms import of_item, plain
from memory.journal.entry import JournalEntry, days_before
from memory.message import StoredMessage, day_of
from memory.namespaces import Owner
from memory.recall.past import read_past
from memory.screening.door import without_suspects
from memory.text import one_line
from memory.updates.budget import BudgetUsedUp, Job

SECTION: Final = "history.recent"
DAYS: Final = 14
"""So many days are told where it is told anew; what is older is only what the section went on telling."""
CHUNK_CHARS: Final = 12_000
"""So much of the journal is given to the model at a time; what is more is folded in call by call."""
REPLY_CHARS: Final = 200
"""So much of each of the assistant's messages."""
PROGRESS_KEY: Final = "rolled-up"
"""Key of the item, beside the journal's entries, that tells how far the history has been told."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the history has been told.

    Attributes:
        until: The last day (ISO 8601) that it tells of; empty if never.
        looked: The user's day on which it was last looked whether something is due: once a day, by one process.
        edit: The number of the user's newest edit by hand when it was told.
    """

    until: str = ""
    looked: str = ""
    edit: int = 0

    def put(self, owner: Owner) -> Op:
        """Return the write of it."""
        return put(owner.namespace("journal"), PROGRESS_KEY, plain(self))


async def _read_progress(owner: Owner) -> Progress:
    """Read how far the history has been told; what a hand garbled is told anew."""
    return of_item(Progress, await read(owner.namespace("journal"), PROGRESS_KEY))


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be told, oldest first, what is told before it, and what was there when that was read."""

    portions: Sequence[Sequence[JournalEntry]]
    text: str
    reached: Progress
    profile: Mapping[str, str]
    control: Control


def roll_up(job: Job) -> bool:
    """Tell what is due of days that are over; say whether anything was, and is told.

    Only lines that a summary took out of a thread (`cut`) are told: the others still stand in their threads, and a busy
    day would cost many model calls. If the process dies, the model fails, or the budget is used up before it begins,
    the same days are told with the next day.
    """
    plan: _Plan | None = job.do(_begin(job)) if job.config.enabled else None
    if plan is None:
        return False
    text, has_begun = plan.text, False
    try:
        for portion in plan.portions:
            call = partial(fold_in, existing=text, entries=portion)
            text, has_begun = job.ask(portion[-1].model, "rollup", call, has_begun=has_begun), True
    except BudgetUsedUp:  # no failure: it is due again tomorrow
        return False
    return job.do(_end(job, plan, text))  # type: ignore[no-any-return]


@transaction
async def _begin(job: Job) -> _Plan | None:
    """Plan what is due now that a day is over, and note that it was looked for today; `None` if nothing is due."""
    owner = job.owner
    control, progress = await side_by_side(read_control(owner), _read_progress(owner))
    zone = control.zone or UTC
    today = day_of(job.now(), zone)
    if progress.looked == today:
        return None
    await ask(replace(progress, looked=today).put(owner))
    sections = await read_profile(owner)
    section = sections.get(SECTION, StoredSection(""))
    # What a person wrote stands, and later days are added to that.
    edited = day_of(section.edited_at, zone) if section.edited_at else ""
    text, after, anew = section.text, max(edited, progress.until), max(edited, days_before(today, DAYS + 1))
    # An erase took the section. A day in the future was noted under a clock that was ahead: all until then would wait.
    if not text or after >= today:
        text, after = section.by_hand, anew
    past = await read_past(owner)
    over = [entry for entry in past if entry.source == "cut" and entry.written < today]
    if all(entry.written <= after for entry in over):
        return None
    # It may tell, in other words, of a fact that was deleted by hand since.
    if progress.edit != control.edit:
        text, after = section.by_hand, min(after, anew)
    lines = [entry for entry in over if entry.written > after]
    lines.sort(key=lambda entry: (entry.written, entry.key))
    return _Plan([*chunks(lines)], text, Progress(lines[-1].written, today, control.edit), texts_of(sections), control)


@transaction
async def _end(job: Job, plan: _Plan, text: str) -> bool:
    """Write what the model made of the days, unless something was erased, or changed by hand, since it was shown."""
    was, owner = plan.control, job.owner
    now = await read_control(owner)
    is_changed = (now.epoch, now.erased, now.edit) != (was.epoch, was.erased, was.edit)
    if is_changed or texts_of(await read_profile(owner)) != plan.profile:
        return False
    told = Section(name=SECTION, text=without_suspects(text))
    await write_profile(owner, [told], job.now())
    await ask(plan.reached.put(owner))
    return True


def chunks(entries: Iterable[JournalEntry]) -> Iterator[tuple[JournalEntry, ...]]:
    """Yield the entries in portions for one model call each: of one model's choice, and not too long."""
    for _, of_one_model in groupby(entries, key=lambda entry: entry.model):
        portion: list[JournalEntry] = []
        size = 0
        for entry in of_one_model:
            length = len(_line(entry))
            if portion and size + length > CHUNK_CHARS:
                yield tuple(portion)
                portion, size = [], 0
            portion.append(entry)
            size += length
        yield tuple(portion)


def _line(entry: JournalEntry) -> str:
    """Return what a model is told of an entry: an account of the user needs no more of a reply than what it was."""

    def told(message: StoredMessage) -> str:
        return f"{message.speaker}: {one_line(message.text)[: CHUNK_CHARS if message.role == 'user' else REPLY_CHARS]}"

    # Escaped, so that no text can end the tag.
    return f"{entry.day} {escape(' '.join(map(told, entry.messages)), quote=False)}"


def fold_in(model: BaseChatModel, existing: str, entries: Sequence[JournalEntry]) -> str:
    """Ask the model for the section's text once it also tells of these entries; `ValueError` if it answers nothing.

    Args:
        model: Reads and writes.
        existing: What the section says now; empty if it is written anew.
        entries: What is to be added, oldest first.
    """
    lines = "\n".join(map(_line, entries))
    request = prompts.ROLL_UP.format(existing=existing or "(nothing yet)")
    answer = model.invoke(
        [SystemMessage(request), HumanMessage(f"<journal>\n{lines}\n</journal>")], {"tags": ["nostream"]}
    )
    text = one_line(answer.text)
    if not text:
        raise ValueError("the model's roll-up is empty: try again")
    return text


async def untell(owner: Owner, changed: Iterable[JournalEntry], is_told: Callable[[str], bool]) -> None:
    """Drop what of the profile tells of something that was erased; recent history is told anew from what is left.

    Args:
        owner: Whose profile.
        changed: The journal entries that it was erased from, as they were.
        is_told: Says by its text which sections tell of it.
    """
    until = (await _read_progress(owner)).until
    was_told = any(entry.source == "cut" and entry.written <= until for entry in changed)
    await drop_sections(owner, lambda name, text: (was_told and name == SECTION) or is_told(text))
