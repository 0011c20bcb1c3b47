"""Whether all names, numbers and dates of a text were said by somebody whose words count. Pure.

Small models fill gaps with names and numbers of their own, and change letters and digits of those they copy. What they
write may be said in other words or another language, but its names and numbers must be the user's.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final, Self

from memory.core.dates import with_dates
from memory.core.names import Said, language_of, unsaid_name
from memory.core.numbers import fold, mentions, numbers
from memory.core.said_days import MONTHS, WEEKDAYS, Calendar, ages, calendar

_MONTH_NAMES: Final = frozenset(name for names in MONTHS for name in names)
_MONTH: Final = "|".join(sorted((name for name in _MONTH_NAMES if name.isalpha()), key=len, reverse=True))
_DATE = re.compile(
    r"(?<![\d.])(?:(?P<year>\d{4})[-/.](?P<month>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?"
    r"|(?P<first>\d{1,2})[./](?P<second>\d{1,2})[./](?P<last>\d{4}|\d\d))(?![\d.]*\d)"
    rf"|(?<![\w.])(?P<before>\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?:de\s|of\s)?(?P<name>{_MONTH})\b\.?(?:,?\s(?:de\s)?(?P<of>\d{{4}})(?!\d))?"
    rf"|(?<!\w)(?P<name_first>{_MONTH})\b\.?\s(?:(?P<after>\d{{1,2}})(?:st|nd|rd|th)?(?!\d),?\s?)?(?P<then>\d{{4}}(?!\d))?"
    r"|(?P<cjk_year>\d{4})年(?:(?P<cjk_month>\d{1,2})月)?(?:(?P<cjk_day>\d{1,2})日)?"
)
# "Segunda" and its like are weekdays in Portuguese only, and ordinals in Spanish too.
_WEEKDAY_NAMES: Final = frozenset(name for names in WEEKDAYS for name in names if name.isalpha()) - frozenset(
    {"segunda", "terca", "quarta", "quinta", "sexta"}
)
_WORD = re.compile(r"\w+")
_LISTED = re.compile(r"(?:(?<=, )|(?<=and )|(?<=und )|(?<=y )|(?<=: ))[^\W\d_]\w*")
# So many of one thing may be counted from the names of each.
_COUNTED: Final = range(2, 7)
_SHORT: Final = 2


@dataclass(frozen=True, slots=True)
class Grounds:
    """What the names, numbers and dates of a text may come from."""

    said: Said
    numbers: frozenset[str]
    calendar: Calendar

    @classmethod
    def of(cls, messages: Iterable[tuple[str, date | None]]) -> Self:
        """Return what messages give, each with the day that it is relative to."""
        own = list(messages)
        meant, said = Calendar(), set[str]()
        for text, day in own:
            found = calendar(text, day)
            meant = meant.joined(found)
            said |= numbers(text) | found.years
            said |= numbers(with_dates(text, day)) | ages(found.years, day) if day else set()
        return cls(Said.of(text for text, _ in own), frozenset(said), meant)

    def lent(self, *, names: Sequence[str] = (), all_of: Sequence[str] = ()) -> Self:
        """Return these grounds with the names of further texts, and with all of others."""
        given = Grounds.of((text, None) for text in all_of)
        return replace(
            self,
            said=self.said.joined(Said.of([*names, *all_of])),
            numbers=self.numbers | given.numbers,
            calendar=self.calendar.joined(given.calendar),
        )


def unsaid(text: str, grounds: Grounds, *others: str) -> str:
    """Return the first name, number or date of a text that nobody said; empty if there is none.

    Args:
        text: A fact, or a section of the profile.
        grounds: What was said.
        others: Texts that tell the language if the text itself does not: the messages it was taken from.
    """
    folded = fold(text)
    for found in _DATE.finditer(folded):
        if any(char.isdigit() for char in found[0]) and not _is_meant(found, grounds):
            return str(found[0])
    for word in _WORD.findall(text):
        if not _is_meant_name(fold(word), word != word.lower(), grounds):
            return str(word)
    language = language_of(text, *others)
    rest = _without_dates(text)
    for written, wholes, parts in mentions(_DATE.sub(" ", folded), language or "en"):
        is_said = bool(wholes & grounds.numbers) or bool(parts and parts <= grounds.numbers)
        if not is_said and not _is_counted(wholes, rest):
            return written
    return unsaid_name(rest, grounds.said, language)


def _parts(found: re.Match[str]) -> tuple[int | None, list[int], list[int]]:
    """Return year, months and days that a date may mean; `4.5.2026` is in April or in May."""
    if found["year"] or found["cjk_year"]:
        year, month, day = (found[each] or found[f"cjk_{each}"] for each in ("year", "month", "day"))
        return int(year), _whole(month), _whole(day)
    if found["last"]:
        either = [int(found["first"]), int(found["second"])]
        year = int(found["last"])
        return (year if len(found["last"]) > _SHORT else 2000 + year), either, either
    name, year = found["name"] or found["name_first"], found["of"] or found["then"]
    months = [at for at, names in enumerate(MONTHS, 1) if name in names]
    return (int(year) if year else None), months, _whole(found["before"] or found["after"])


def _whole(digits: str | None) -> list[int]:
    return [int(digits)] if digits else []


def _is_meant(found: re.Match[str], grounds: Grounds) -> bool:
    """Say whether a date, or what it is made of, was said, or is the day that a message means."""
    if found[0].strip() in grounds.said.text:
        return True
    year, months, days = _parts(found)
    return any(_is_day(year, month, day, grounds) for month in months or [0] for day in days or [0])


def _is_day(year: int | None, month: int, day: int, grounds: Grounds) -> bool:
    meant = grounds.calendar
    if year and (year, month, day) in _known(meant):
        return True
    has_month = not month or month in meant.months or str(month) in grounds.numbers
    has_day = not day or str(day) in grounds.numbers or any((d.month, d.day) == (month, day) for d in meant.days)
    has_year = year is None or str(year) in grounds.numbers or (year in meant.near and bool(month))
    return has_month and has_day and has_year


def _is_meant_name(word: str, has_capital: bool, grounds: Grounds) -> bool:
    """Say whether a word is no month and no weekday, or one that was meant."""
    if word in _WEEKDAY_NAMES:
        return any(word in names and at in grounds.calendar.weekdays for at, names in enumerate(WEEKDAYS))
    if not has_capital or word not in _MONTH_NAMES or word in grounds.said.words:
        return True  # "the user may move" is no month
    meant = grounds.calendar.months
    return any(word in names and (at in meant or str(at) in grounds.numbers) for at, names in enumerate(MONTHS, 1))


def _known(meant: Calendar) -> frozenset[tuple[int, int, int]]:
    """Return the days as year, month and day; also with 0 for a day, and for a month, that is left out."""
    return frozenset(
        each
        for day in meant.days
        for each in ((day.year, day.month, day.day), (day.year, day.month, 0), (day.year, 0, 0))
    )


def _without_dates(text: str) -> str:
    """Return a text without the names of months and days: they are judged as dates."""
    return _WORD.sub(lambda found: " " if _is_dated(found[0]) else found[0], text)


def _is_dated(word: str) -> bool:
    return word != word.lower() and fold(word) in _MONTH_NAMES | _WEEKDAY_NAMES


def _is_counted(wholes: frozenset[str], text: str) -> bool:
    """Say whether a small number counts the names in the text: "two cats, Biscuit and Mog"."""
    names = len(_LISTED.findall(text))
    return any(str(number) in wholes and number == names for number in _COUNTED)
