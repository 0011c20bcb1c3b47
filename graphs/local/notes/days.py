"""English relative dates resolved by rules, as a small model resolves none. Pure."""

import re
from datetime import date, timedelta
from typing import Final

from memory.text import WEEKDAYS

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
# What a date in brackets follows is resolved already; "today's" and "more than in a day" are no day.
_RELATIVE = re.compile(
    rf"\b(?:(?P<day>{'|'.join(_DAYS)})"
    rf"|(?P<which>last|this|next|this coming|this past)\s+(?P<weekday>{'|'.join(WEEKDAYS)})"
    rf"|(?P<before>\d{{1,3}}|{'|'.join(_NUMBERS)})\s+(?P<before_unit>day|week)s?\s+ago"
    rf"|in\s+(?!an?\s+day)(?P<after>\d{{1,3}}|{'|'.join(_NUMBERS)})\s+(?P<after_unit>day|week)s?"
    r"|(?P<side>last|this|next)\s+(?P<span>weekend|week|month|year))\b(?!\s*\(|['\u2019]s\b|\s+(?:morning|night)s\b)",
    re.IGNORECASE,
)


def with_dates(text: str, said: date) -> str:
    """Return the text with dates in brackets behind what is relative to the day it was said.

    `with_dates("See you next Friday", date(2026, 5, 8)) == "See you next Friday (2026-05-15)"`. "Next Friday" is the
    Friday of the week after, "last Friday" the one before today, "this Friday" the first from today on. A plain "on
    Friday" may be a habit, past or to come, and is left alone.
    """
    return _RELATIVE.sub(lambda found: f"{found[0]} ({_meaning(found, said)})", text)


def _meaning(found: re.Match[str], said: date) -> str:
    """Return the day, month or year that is meant; of a week and a weekend the day it begins with."""
    part = {name: value.lower() for name, value in found.groupdict().items() if value}
    today = said.weekday()
    if "span" in part:
        begin = _beginning(part["span"], said, ("last", "this", "next").index(part["side"]) - 1)
        return begin if part["span"] in ("year", "month") else f"{part['span']} of {begin}"
    if "day" in part:
        days = _DAYS[part["day"]]
    elif "weekday" in part:
        weekday = WEEKDAYS.index(part["weekday"])
        if part["which"] in ("last", "this past"):
            days = -((today - weekday - 1) % 7 + 1)
        else:
            days = 7 - today + weekday if part["which"] == "next" else (weekday - today) % 7
    else:
        number = part.get("before") or part["after"]
        count = int(number) if number.isdigit() else _NUMBERS[number]
        days = count * (-_UNITS[part["before_unit"]] if "before" in part else _UNITS[part["after_unit"]])
    return (said + timedelta(days)).isoformat()


def _beginning(span: str, said: date, side: int) -> str:
    """Return the year or month before a day, around it or after it; of a week and a weekend the day they begin with.

    Args:
        span: `year`, `month`, `week` or `weekend`.
        said: The day.
        side: -1, 0 or 1.
    """
    if span == "year":
        return str(said.year + side)
    if span == "month":
        months = said.year * 12 + said.month - 1 + side
        return f"{months // 12}-{months % 12 + 1:02}"
    return (said + timedelta(7 * side - said.weekday() + (5 if span == "weekend" else 0))).isoformat()
