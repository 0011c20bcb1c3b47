"""The roll-up of a journal into history: days become recent, recent becomes earlier, earlier becomes background."""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from memory.budget import BudgetUsedUp
from memory.config import MemoryConfig
from memory.control import Control, belongs, read_control
from memory.door import transaction
from memory.effects import StoreEffects, put, read
from memory.facts.changes import Section
from memory.facts.profile import Profile, read_profile, texts_of, write_profile
from memory.facts.untold import Exchange, read_untold
from memory.forms import plain, read_as
from memory.journal.entry import JournalEntry, LineSource, day_of, days_before
from memory.journal.journal import prune, read_journal
from memory.message import StoredMessage
from memory.namespaces import Owner
from memory.screening.door import without_suspects
from memory.text import one_line
from memory.updates.effects import AwaitStart, ModelCall, Terms, WorkerEffects
from memory.updates.lease import give_back, take

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
    """

    recent: str = ""
    earlier: str = ""
    background: str = ""
    looked: str = ""

    def section_of(self, day: str) -> HistorySection | None:
        """Return the section that tells of a day (ISO 8601); `None` if none does yet."""
        if day <= self.background:
            return "background"
        if day <= self.earlier:
            return "earlier"
        return "recent" if day <= self.recent else None

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
    folds: list[Fold] = []
    earlier, background = progress.earlier, progress.background
    if _first_day_after(background, over) < days_before(today, 2 * MONTH):
        until = days_before(today, MONTH)
        folds.append(Fold("background", _between(over, background, until), anew=False))
        folds.append(Fold("earlier", _between(over, until, days_before(today, WEEK)), anew=True))
        background, earlier = until, days_before(today, WEEK)
    elif _first_day_after(earlier, over) < days_before(today, 2 * WEEK):
        until = days_before(today, WEEK)
        folds.append(Fold("earlier", _between(over, earlier, until), anew=earlier <= background))
        earlier = until
    # Told anew only when days have left it: else each day would tell the whole of two weeks once more.
    goes_on = progress.recent > earlier == progress.earlier
    folds.append(Fold("recent", _between(over, progress.recent if goes_on else earlier, today), anew=not goes_on))
    return tuple(folds), RollupProgress(over[-1].written, earlier, background, progress.looked)


def _first_day_after(day: str, entries: Iterable[JournalEntry]) -> str:
    return next((entry.written for entry in entries if entry.written > day), "9999-12-31")


def _between(entries: Iterable[JournalEntry], after: str, until: str) -> tuple[JournalEntry, ...]:
    return tuple(entry for entry in entries if after < entry.written <= until)


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


def roll_up(owner: Owner, terms: Terms) -> WorkerEffects[bool]:
    """Fold what summaries took away on days that are over into the history, and drop what is kept no longer.

    Of lines that only were said (`turn`) the history does not tell: they stand in their threads, so that a roll-up of
    a busy day costs no more model calls than its summaries gave reason to.
    Sections are written before the progress: killed in between, the same days are told again, in the same sections.
    Without budget left it waits for the next day; one that began is finished, as its parts alone are of no use.
    An erase while the model writes wins: nothing is written then, and the days are told anew the next time.

    Returns:
        Whether something was due, and no other worker has the user.

    Raises:
        BudgetUsedUp: If something is due, and no call may begin for it today.
    """
    if not terms.config.enabled:
        return False
    control = yield from read_control(owner)
    epoch = control.epoch
    today = day_of(terms.now(), control.zone or UTC)
    progress = yield from _read_progress(owner, epoch)
    if progress.looked == today:
        return False
    config = terms.config
    # Before the model is asked: what nobody has to tell of first must not be kept for as long as a model fails.
    dropped = yield from _prune(owner, today, config, frozenset({"turn"}))
    journal = [entry for entry in (yield from read_journal(owner, epoch)) if entry.source == "cut"]
    texts = texts_of((yield from read_profile(owner, epoch)))
    planned, reached = plan_rollup(today, progress, journal)
    told = [entry for entry in journal if progress.earlier < entry.written <= progress.recent]
    # It went with a fact that it told of, or may tell of one that was deleted since, in other words.
    if planned and ("history.recent" not in texts or (yield from _gone_of(owner, told))):
        planned, reached = plan_rollup(today, progress.without({"recent"}), journal)
    folds = yield from _without_forgotten(owner, planned)
    until = (yield from terms.purse.look(owner)) if folds else None
    if until is not None:
        logger.info("the roll-up of %s waits for tomorrow: the budget of the day is used up", owner.due_key)
        raise BudgetUsedUp(until)
    if folds and not (yield from take(owner, terms.lease(), terms.clock(), terms.worker)):
        return False
    try:
        sections = yield from _sections(owner, folds, texts, terms)
    except Exception:
        yield from give_back(owner, terms.token)
        raise
    written = yield from _write(owner, sections, folds, texts, replace(reached, looked=today), control, terms)
    if written is None:
        return False
    dropped += written
    logger.info("rolled up %s: sections %d, entries dropped %d", owner.due_key, len(sections), dropped)
    return bool(folds)


@transaction
def _prune(owner: Owner, today: str, config: MemoryConfig, sources: frozenset[LineSource]) -> StoreEffects[int]:
    return prune(owner, today, config.journal_days, config.journal_bytes, sources)


@transaction
def _write(
    owner: Owner,
    sections: Sequence[Section],
    folds: Sequence[Fold],
    texts: Profile,
    reached: RollupProgress,
    control: Control,
    terms: Terms,
) -> StoreEffects[int | None]:
    """Write what the model made of the days, and how far it came; return how many lines went.

    `None` if something was erased, or changed by hand, or another worker took the user, since what the model was shown
    was read.
    """
    epoch, config = control.epoch, terms.config
    if folds and not (yield from give_back(owner, terms.token)):
        return None
    now = yield from read_control(owner)
    is_changed = (now.epoch, now.erased, now.edits) != (epoch, control.erased, control.edits)
    if is_changed or texts_of((yield from read_profile(owner, epoch))) != texts:
        return None
    yield from write_profile(owner, sections, epoch=epoch, now=terms.now())
    yield [_progress_put(owner, epoch, reached)]
    return (yield from prune(owner, reached.looked, config.journal_days, config.journal_bytes))


def _sections(owner: Owner, folds: Sequence[Fold], texts: Profile, terms: Terms) -> WorkerEffects[list[Section]]:
    """Have the model write what sections say once they tell of more days."""
    sections = []
    if folds:
        yield AwaitStart()
    for one in folds:
        told = "" if one.anew else texts.get(f"history.{one.section}", "")
        for portion in chunks(one.entries):
            write = partial(fold, existing=told, entries=portion)
            told = yield ModelCall(portion[-1].model, write, owner, "rollup")
            yield from terms.purse.save(owner)
        text, left_out = without_suspects(told)
        if left_out:
            logger.warning("left %d sentences out of history.%s: secrets, or orders", left_out, one.section)
        if text:
            sections.append(Section(name=f"history.{one.section}", text=text))
    return sections


def tell_again(owner: Owner, epoch: str, dropped: Iterable[str]) -> StoreEffects[None]:
    """Make due again what history sections told of that were dropped (`history.recent`); other names are ignored."""
    sections = {name.removeprefix("history.") for name in dropped if name.startswith("history.")}
    if sections:
        progress = (yield from _read_progress(owner, epoch)).without(sections)
        yield [_progress_put(owner, epoch, progress)]


def sections_telling(owner: Owner, epoch: str, entries: Iterable[JournalEntry]) -> StoreEffects[frozenset[str]]:
    """Return the names of the history sections that tell of the days of those entries that were cut."""
    progress = yield from _read_progress(owner, epoch)
    days = [entry.written for entry in entries if entry.source == "cut"]
    return frozenset(f"history.{section}" for day in days if (section := progress.section_of(day)))


def _without_forgotten(owner: Owner, folds: Iterable[Fold]) -> StoreEffects[list[Fold]]:
    """Leave out messages that deleted facts came from, or that wait for a yes: the journal itself still has them."""
    planned = list(folds)
    if not planned:
        return []
    entries = {entry.key: entry for one in planned for entry in one.entries}
    asked = [Exchange(entry.thread_id, entry.messages, entry.screened().held) for entry in entries.values()]
    gone, waiting = yield from read_untold(owner, asked)
    waits = {key: each.ids for key, each in zip(entries, waiting, strict=True)}
    kept = [
        [entry.without({*gone.get(entry.thread_id, ()), *waits[entry.key]}) for entry in one.entries] for one in planned
    ]
    return [replace(one, entries=tuple(filter(None, left))) for one, left in zip(planned, kept, strict=True)]


def _gone_of(owner: Owner, entries: Iterable[JournalEntry]) -> StoreEffects[Mapping[str, Collection[str]]]:
    gone, _ = yield from read_untold(owner, [Exchange(entry.thread_id, entry.messages) for entry in entries])
    return gone


def _read_progress(owner: Owner, epoch: str) -> StoreEffects[RollupProgress]:
    item = yield from read(owner.namespace("journal"), PROGRESS_KEY)
    with suppress(ValueError):  # a hand garbled it: all is told anew
        return read_as(RollupProgress, item.value) if item and belongs(item.value, epoch) else RollupProgress()
    return RollupProgress()


def _progress_put(owner: Owner, epoch: str, progress: RollupProgress) -> Op:
    return put(owner.namespace("journal"), PROGRESS_KEY, {**plain(progress), "epoch": epoch})
