"""The roll-up of a journal into history: days become recent, recent becomes earlier, earlier becomes background."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC
from functools import partial
from html import escape
from itertools import groupby
from typing import Literal, Self

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.store.base import Op

from memory import prompts
from memory.control import Control, read_control, read_epoch
from memory.door import StoreEffects, put, read, side_by_side, transaction
from memory.facts.changes import Section
from memory.facts.profile import Profile, drop_sections, read_profile, texts_of, write_profile
from memory.forms import plain, read_as
from memory.journal.entry import JournalEntry, day_of, days_before
from memory.journal.journal import prune
from memory.message import StoredMessage
from memory.namespaces import Owner
from memory.recall.past import read_past
from memory.screening.door import without_suspects
from memory.text import one_line
from memory.updates.budget import BudgetUsedUp
from memory.updates.lease import Job, LeaseLost, ModelCall, WorkerEffects, read_lease

logger = logging.getLogger(__name__)

HistorySection = Literal["recent", "earlier", "background"]

WEEK = 7
MONTH = 30
CHUNK_CHARS = 12_000
"""So much of the journal is given to the model at a time; what is more is folded in call by call."""

REPLY_CHARS = 200
"""So much of each of the assistant's messages."""

PROGRESS_KEY = "rolled-up"
"""Key of the item, beside the journal's entries, that tells how far the history has been told."""


@dataclass(frozen=True, slots=True)
class RollupProgress:
    """Up to which day (ISO 8601) the journal was folded into each section; empty if never.

    Attributes:
        recent: The last day that `recent` tells of.
        earlier: The last day that `earlier` tells of.
        background: The last day that `background` tells of.
        looked: The user's day on which it was last looked whether something is due.
        edit: The number of the user's newest edit by hand then.
        epoch: The user's epoch then.
    """

    recent: str = ""
    earlier: str = ""
    background: str = ""
    looked: str = ""
    edit: str = ""
    epoch: str = ""

    @property
    def days(self) -> dict[HistorySection, tuple[str, str]]:
        """After which day, and until which, each section tells; the oldest first."""
        return {
            "background": ("", self.background),
            "earlier": (self.background, self.earlier),
            "recent": (self.earlier, self.recent),
        }

    def without(self, sections: Collection[str]) -> Self:
        """Return the progress once these sections are empty: what the journal has of their days is due again."""
        background = "" if "background" in sections else self.background
        return replace(
            self,
            recent="",
            earlier=background if "earlier" in sections else self.earlier,
            background=background,
            looked="",
        )


@dataclass(frozen=True, slots=True)
class Fold:
    """One section to write.

    Attributes:
        section: Which one.
        entries: What to tell of, oldest first.
        anew: Whether what the section said before is left out.
    """

    section: HistorySection
    entries: tuple[JournalEntry, ...]
    anew: bool


def plan_rollup(
    today: str, progress: RollupProgress, entries: Sequence[JournalEntry]
) -> tuple[tuple[Fold, ...], RollupProgress]:
    """Return what to fold now that a day is over, and the progress afterwards; no folds if nothing is due.

    Args:
        today: The user's current day, ISO 8601; it is not over and not folded.
        progress: Up to where earlier roll-ups came.
        entries: The journal.
    """
    # A section that tells of days to come was written under a clock that was ahead: all since then would wait for them.
    ahead = [name for name in ("recent", "earlier", "background") if getattr(progress, name) >= today]
    if ahead:
        progress = progress.without(ahead)
    over = sorted((entry for entry in entries if entry.written < today), key=lambda entry: (entry.written, entry.key))
    if not over or over[-1].written <= progress.recent:
        return (), progress
    earlier, background = progress.earlier, progress.background
    if _first_day_after(background, over) < days_before(today, 2 * MONTH):
        background, earlier = days_before(today, MONTH), days_before(today, WEEK)
    elif _first_day_after(earlier, over) < days_before(today, 2 * WEEK):
        earlier = days_before(today, WEEK)
    reached = replace(progress, recent=over[-1].written, earlier=earlier, background=background)
    folds: list[Fold] = []
    for section, (after, until) in reached.days.items():
        began, ended = progress.days[section]
        # Told anew only when days have left it: else each day would tell the whole of two weeks once more.
        anew = after != began or not after < ended <= until
        told = tuple(entry for entry in over if (after if anew else ended) < entry.written <= until)
        if told or (anew and began < ended):  # what it told of is another section's now
            folds.append(Fold(section, told, anew))
    return tuple(folds), reached


def _first_day_after(day: str, entries: Iterable[JournalEntry]) -> str:
    return next((entry.written for entry in entries if entry.written > day), "9999-12-31")


def chunks(entries: Iterable[JournalEntry]) -> Iterator[tuple[JournalEntry, ...]]:
    """Yield the entries in portions for one model call each: of one model's choice, and not too long."""
    for _, of_one_model in groupby(entries, key=lambda entry: entry.model):
        portion: list[JournalEntry] = []
        size = 0
        for entry in of_one_model:
            length = sum(len(_told(message)) for message in entry.messages)
            if portion and size + length > CHUNK_CHARS:
                yield tuple(portion)
                portion, size = [], 0
            portion.append(entry)
            size += length
        yield tuple(portion)


def _told(message: StoredMessage) -> str:
    """Return what a roll-up is told of a message: an account of the user needs no more of a reply than what it was."""
    return one_line(message.text)[: CHUNK_CHARS if message.role == "user" else REPLY_CHARS]


def fold(model: BaseChatModel, existing: str, entries: Sequence[JournalEntry]) -> str:
    """Ask the model for the section's text once it also tells of these entries.

    Args:
        model: Reads and writes.
        existing: What the section says now; empty if it is written anew.
        entries: What is to be added, oldest first.

    Raises:
        ValueError: If the model answers nothing.
    """
    lines = []
    for entry in entries:
        said = " ".join(f"{message.speaker}: {_told(message)}" for message in entry.messages)
        lines.append(f"{entry.day} {escape(said, quote=False)}")  # escaped, so that no text can end the tag
    told = "\n".join(lines)
    request = prompts.ROLL_UP.format(existing=existing or "(nothing yet)")
    answer = model.invoke(
        [SystemMessage(request), HumanMessage(f"<journal>\n{told}\n</journal>")], {"tags": ["nostream"]}
    )
    text = one_line(answer.text)
    if not text:
        raise ValueError("the model's roll-up is empty: try again")
    return text


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be told, from what, how far it comes then, and what was there when that was read."""

    folds: tuple[Fold, ...]
    reached: RollupProgress
    texts: Profile
    control: Control


class RollUp(Job):
    """The work of folding what summaries took away on days that are over into the history.

    Of lines that only were said (`turn`) the history does not tell: they stand in their threads, so that a roll-up of
    a busy day costs no more model calls than its summaries gave reason to.
    Killed before it is written, the same days are told again. Without budget left it waits for the next day; one that
    began is finished, as its parts alone are of no use. An erase while the model writes wins: nothing is written then,
    and the days are told anew the next time.
    """

    def run(self) -> WorkerEffects[bool]:
        """Do it, drop what is kept no longer, and return whether something was due, and is told now."""
        try:
            plan = (yield from self._begin()) if self.config.enabled else None
            if not plan or not plan.folds:
                return False
            try:
                sections = yield from self._sections(plan)
            except Exception:
                yield from self._give_back()
                raise
            return (yield from self._end(plan, sections))
        except (LeaseLost, BudgetUsedUp):  # no failure: it is due again later, or tomorrow
            return False

    @transaction
    def _begin(self) -> StoreEffects[_Plan]:
        """Plan what is due, and take the user for it; without any, note that it was looked for today."""
        owner, config = self.owner, self.config
        control, _, progress = yield from side_by_side(read_control(owner), read_lease(owner), _read_progress(owner))
        today = day_of(self.now(), control.zone or UTC)
        if progress.looked == today:
            return _Plan((), progress, {}, control)
        # Also where a model fails for long: what nobody has to tell of first is kept no longer than the rest.
        dropped = yield from prune(owner, today, config.journal_days, config.journal_bytes, {"turn"})
        lines = [entry for entry in (yield from read_past(owner, control.epoch)) if entry.source == "cut"]
        texts = texts_of((yield from read_profile(owner, control.epoch)))
        folds, reached = plan_rollup(today, progress, lines)
        # It went with a fact that it told of, or may tell of one that was deleted by hand since, in other words.
        if folds and ("history.recent" not in texts or progress.edit != control.edit):
            folds, reached = plan_rollup(today, progress.without({"recent"}), lines)
        plan = _Plan(folds, replace(reached, looked=today, edit=control.edit), texts, control)
        if folds:
            yield from self.take()
        else:
            dropped += yield from self._note(plan)
        logger.info("roll-up of %s: sections %d, entries dropped %d", owner.due_key, len(folds), dropped)
        return plan

    def _sections(self, plan: _Plan) -> WorkerEffects[list[Section]]:
        """Have the model write what sections say once they tell of more days."""
        sections, has_begun = [], False
        for one in plan.folds:
            told = "" if one.anew else plan.texts.get(f"history.{one.section}", "")
            for portion in chunks(one.entries):
                write = partial(fold, existing=told, entries=portion)
                call = ModelCall(portion[-1].model, write, "rollup")
                told, has_begun = (yield from self.ask(call, has_begun=has_begun)), True
            text, left_out = without_suspects(told)
            if left_out:
                logger.warning("left %d sentences out of history.%s: secrets, or orders", left_out, one.section)
            # An empty one is deleted: what it told of is another section's now, or must not be told.
            sections.append(Section(name=f"history.{one.section}", text=text))
        return sections

    @transaction
    def _end(self, plan: _Plan, sections: Sequence[Section]) -> StoreEffects[bool]:
        """Write what the model made of the days, and give the user back.

        Nothing is written, and the value is `False`, if something was erased, or changed by hand, since what the model
        was shown was read.
        """
        was, owner = plan.control, self.owner
        yield from self.hold(None)
        now = yield from read_control(owner)
        is_changed = (now.epoch, now.erased, now.edits) != (was.epoch, was.erased, was.edits)
        if is_changed or texts_of((yield from read_profile(owner, was.epoch))) != plan.texts:
            return False
        yield from write_profile(owner, sections, epoch=was.epoch, now=self.now())
        yield from self._note(plan)
        return True

    @transaction
    def _give_back(self) -> StoreEffects[None]:
        return self.hold(None)

    def _note(self, plan: _Plan) -> StoreEffects[int]:
        """Note how far the history has been told, and drop lines that are kept no longer; return how many."""
        yield [_progress_put(self.owner, plan.reached)]
        return (yield from prune(self.owner, plan.reached.looked, self.config.journal_days, self.config.journal_bytes))


def tell_again(
    owner: Owner, changed: Iterable[JournalEntry], is_told: Callable[[str], bool], gone: Iterable[str] = ()
) -> StoreEffects[None]:
    """Drop what tells of something that was erased, and make due again what history told there.

    Args:
        owner: Whose profile and history.
        changed: The journal entries that it was erased from, as they were.
        is_told: Says by its text which sections of the profile tell of it.
        gone: Names of sections that went already.
    """
    progress = yield from _read_progress(owner)
    days = [entry.written for entry in changed if entry.source == "cut"]
    spans = progress.days.items()
    telling = {f"history.{name}" for name, (after, until) in spans if any(after < day <= until for day in days)}
    dropped = yield from drop_sections(owner, progress.epoch, lambda name, text: name in telling or is_told(text))
    sections = {name.removeprefix("history.") for name in (*gone, *telling, *dropped)} & progress.days.keys()
    if sections:
        yield [_progress_put(owner, progress.without(sections))]


def _read_progress(owner: Owner) -> StoreEffects[RollupProgress]:
    """Read how far the history has been told; what a hand garbled is told anew, as after an erase."""
    epoch, item = yield from side_by_side(read_epoch(owner), read(owner.namespace("journal"), PROGRESS_KEY))
    with suppress(ValueError):
        progress = read_as(RollupProgress, item.value if item else {})
        if progress.epoch == epoch:
            return progress
    return RollupProgress(epoch=epoch)


def _progress_put(owner: Owner, progress: RollupProgress) -> Op:
    return put(owner.namespace("journal"), PROGRESS_KEY, plain(progress))
