"""Days become recent, recent becomes earlier, earlier becomes background: what to fold into what, and when. Pure.

A day is the one on which the journal was written: a summary may take away what was said long before, and no day that
was told gets another entry. `recent` is written anew from the days that `earlier` does not hold yet, each time a day
is over. When those are more than two weeks, all but the last week are folded into `earlier`; when `earlier` reaches
back more than two months, its oldest days are folded into `background` and the rest of it is written anew.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from html import escape
from itertools import groupby
from typing import Literal, Self

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage

from memory import prompts
from memory.journal.journal import JournalEntry
from memory.text import one_line

Section = Literal["recent", "earlier", "background"]

WEEK = 7
MONTH = 30
CHUNK_CHARS = 12_000
"""So much of the journal is given to the model at a time; what is more is folded in call by call."""


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

    def to_json(self) -> dict[str, object]:
        """Return the JSON form that the store keeps."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """Return the progress of a stored JSON form; what is missing was never folded."""
        return cls(*(str(value.get(name) or "") for name in ("recent", "earlier", "background", "looked")))

    def section_of(self, day: str) -> Section | None:
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

    section: Section
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
    if _first_day_after(background, over) < _days_before(today, 2 * MONTH):
        until = _days_before(today, MONTH)
        folds.append(Fold("background", _between(over, background, until), anew=False))
        folds.append(Fold("earlier", _between(over, until, _days_before(today, WEEK)), anew=True))
        background, earlier = until, _days_before(today, WEEK)
    elif _first_day_after(earlier, over) < _days_before(today, 2 * WEEK):
        until = _days_before(today, WEEK)
        folds.append(Fold("earlier", _between(over, earlier, until), anew=earlier <= background))
        earlier = until
    folds.append(Fold("recent", _between(over, earlier, today), anew=True))
    return tuple(folds), RollupProgress(over[-1].written, earlier, background, progress.looked)


def _first_day_after(day: str, entries: Iterable[JournalEntry]) -> str:
    return next((entry.written for entry in entries if entry.written > day), "9999-12-31")


def _days_before(day: str, days: int) -> str:
    return (date.fromisoformat(day) - timedelta(days=days)).isoformat()


def _between(entries: Iterable[JournalEntry], after: str, until: str) -> tuple[JournalEntry, ...]:
    return tuple(entry for entry in entries if after < entry.written <= until)


def chunks(entries: Iterable[JournalEntry]) -> Iterator[tuple[JournalEntry, ...]]:
    """Yield the entries in portions for one model call each: of one model's choice, and not too long."""
    for _, of_one_model in groupby(entries, key=lambda entry: entry.model):
        portion: list[JournalEntry] = []
        size = 0
        for entry in of_one_model:
            length = sum(len(message.text) for message in entry.messages)
            if portion and size + length > CHUNK_CHARS:
                yield tuple(portion)
                portion, size = [], 0
            portion.append(entry)
            size += length
        yield tuple(portion)


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
        said = " ".join(f"{message.role}: {one_line(message.text)[:CHUNK_CHARS]}" for message in entry.messages)
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
