"""Relative English dates with the day they mean behind them, so that no model has to count. Pure."""

import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS: Final = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10,
}  # fmt: skip
_DAYS: Final = {
    "the day before yesterday": -2,
    "the day after tomorrow": 2,
    "yesterday": -1,
    "last night": -1,
    "tomorrow": 1,
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
}
_UNITS: Final = {"day": 1, "week": 7}
_RELATIVE = re.compile(
    rf"\b(?:(?P<day>{'|'.join(_DAYS)})"
    rf"|(?P<which>last|this|next|this coming|this past)\s+(?P<weekday>{'|'.join(_WEEKDAYS)})"
    rf"|(?P<before>\d{{1,3}}|{'|'.join(_NUMBERS)})\s+(?P<before_unit>day|week)s?\s+ago"
    rf"|in\s+(?P<after>\d{{1,3}}|{'|'.join(_NUMBERS)})\s+(?P<after_unit>day|week)s?"
    r"|(?P<side>last|this|next)\s+(?P<span>weekend|week|month|year))\b(?!\s*\(|['\u2019]s\b|\s+(?:morning|night)s\b)",
    re.IGNORECASE,
)


_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH: Final = "|".join(f"{name}|{name[:3]}\\.?" for name in _MONTHS)
# One space at a time: runs of them would be tried in every division among the parts.
_TIME: Final = r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?[ap]\.?m\.?)?(?:\s?(?:Z|UTC|[+-]\d{2}:?\d{2}))?"
_STAMP = re.compile(
    rf"[(\[]\s?(?:{_TIME}\s?(?:on|,|-)?\s)?(?:(?:{'|'.join(_WEEKDAYS)}),?\s)?"
    r"(?:(?P<iso>\d{4}-\d{2}-\d{2})"
    rf"|(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s(?P<month>{_MONTH}),?\s(?P<year>\d{{4}})"
    rf"|(?P<us_month>{_MONTH})\s(?P<us_day>\d{{1,2}})(?:st|nd|rd|th)?,?\s(?P<us_year>\d{{4}}))"
    rf"(?:(?:T|\s?(?:,|at|-)?\s?){_TIME})?\s?[)\]]",
    re.IGNORECASE,
)


def leading_stamp(text: str) -> str:
    """Return the date in brackets that a text begins with, as a line of a chat's record does; empty if there is none.

    `leading_stamp("(1:56 pm on 8 May, 2023) Hi!") == "(1:56 pm on 8 May, 2023)"`. A text with more such dates is read
    as having none: nobody can tell where the first one ends to count. `8/5/2023` is a day in May or in August.
    """
    stamps = list(_STAMP.finditer(text))
    is_clear = len(stamps) == 1 and not text[: stamps[0].start()].strip() and stamped_day(stamps[0][0]) is not None
    return stamps[0][0] if is_clear else ""


def stamped_day(stamp: str) -> date | None:
    """Return the day that a stamp names; `None` for what is none, or names no day that ever was."""
    found = _STAMP.match(stamp)
    if not found:
        return None
    try:
        if found["iso"]:
            return date.fromisoformat(found["iso"])
        month = next(
            at for at, name in enumerate(_MONTHS, 1) if name[:3] == (found["month"] or found["us_month"])[:3].lower()
        )
        return date(int(found["year"] or found["us_year"]), month, int(found["day"] or found["us_day"]))
    except ValueError:
        return None


def with_dates(text: str, said: date) -> str:
    """Return the text with dates in brackets behind what is relative to the day it was said.

    `with_dates("See you next Friday", date(2026, 5, 8)) == "See you next Friday (2026-05-15)"`. "Next Friday" is the
    Friday of the week after, "last Friday" the one before today, "this Friday" the first from today on. A plain "on
    Friday" may be a habit, past or to come, and is left alone.
    """
    return _RELATIVE.sub(lambda found: f"{found[0]} ({_meaning(found, said)})", text)


def _meaning(found: re.Match[str], said: date) -> str:
    readers: dict[str, Callable[[], str]] = {
        "day": lambda: _shifted(said, _DAYS[found["day"].lower()]),
        "weekday": lambda: _weekday(said, found["which"].lower(), _WEEKDAYS.index(found["weekday"].lower())),
        "before": lambda: _shifted(said, -_count(found["before"]) * _UNITS[found["before_unit"].lower()]),
        "after": lambda: _shifted(said, _count(found["after"]) * _UNITS[found["after_unit"].lower()]),
        "span": lambda: _span(said, found["span"].lower(), ("last", "this", "next").index(found["side"].lower()) - 1),
    }
    return next(read() for name, read in readers.items() if found[name])


def _shifted(said: date, days: int) -> str:
    return (said + timedelta(days)).isoformat()


def _count(number: str) -> int:
    return int(number) if number.isdigit() else _NUMBERS[number.lower()]


def _weekday(said: date, which: str, weekday: int) -> str:
    if which in ("last", "this past"):
        return _shifted(said, -((said.weekday() - weekday - 1) % 7 + 1))
    if which == "next":
        return _shifted(said, 7 - said.weekday() + weekday)
    return _shifted(said, (weekday - said.weekday()) % 7)


def _span(said: date, span: str, side: int) -> str:
    """Return a year, a month, or the Monday or Saturday a week or weekend begins with."""
    if span == "year":
        return str(said.year + side)
    if span == "month":
        months = said.year * 12 + said.month - 1 + side
        return f"{months // 12}-{months % 12 + 1:02}"
    start = said - timedelta(said.weekday()) + timedelta(7 * side + (5 if span == "weekend" else 0))
    return f"{'weekend' if span == 'weekend' else 'week'} of {start.isoformat()}"
