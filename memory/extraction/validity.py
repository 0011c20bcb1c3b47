"""From when and until when a fact holds, where its text says so beyond doubt. Pure.

English is read here, until when in other languages in `memory/extraction/foreign_validity.py`.

What is relative to the day of the message was resolved before (`memory/extraction/days.py`): its date stands behind it
in brackets. A date is as exact as it was said: a day, a month or a year.
"""

import re
from datetime import date, timedelta
from typing import Final

from memory.extraction.days import is_possible
from memory.extraction.foreign_validity import foreign_validity
from memory.facts.fact import period_end
from memory.text import MONTHS, WEEKDAYS

_MONTH: Final = "|".join(f"{name}|{name[:3]}" for name in MONTHS)
# One space at a time: runs of them would be tried in every division among the parts.
_DATE: Final = (
    r"(?:the\s)?(?:end\sof\s|beginning\sof\s|middle\sof\s)?(?:"
    r"(?P<{0}relative>(?:last|this|next|the|yesterday|today|tonight|tomorrow)\b[^.;,()]{{0,30}})"
    r"\((?:(?P<{0}span>week|weekend)\sof\s)?(?P<{0}resolved>\d{{4}}(?:-\d\d){{0,2}})\)"
    r"|(?P<{0}iso>\d{{4}}-\d\d(?:-\d\d)?)(?![\d-])"
    r"|(?:(?P<{0}before>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?)?(?P<{0}month>" + _MONTH + r")\b\.?"
    r"(?:\s(?P<{0}day>\d{{1,2}})(?:st|nd|rd|th)?(?!\d))?(?:,?\s(?:of\s)?(?P<{0}year>\d{{4}})(?!\d))?"
    r"|(?P<{0}only_year>(?:19|20)\d\d)(?![\d:.,-]*\d)(?!\s?%))"
)
_UNTIL = re.compile(r"\b(?:until|till|til|through)\s" + _DATE.format("u"), re.IGNORECASE)
_SINCE = re.compile(
    r"\b(?:since|as\sof|(?:starting|beginning)(?:\s(?:on|in|from))?)\s" + _DATE.format("s"), re.IGNORECASE
)
_UNTIL_WEEKDAY = re.compile(rf"\b(?:until|till|through)\s({'|'.join(WEEKDAYS)})\b(?!\s?\()", re.IGNORECASE)
_FROM = re.compile(r"\bfrom\s" + _DATE.format("f") + r"(?P<on>\son(?:wards?)?\b)?", re.IGNORECASE)
_RANGE = re.compile(
    r"\b(?:from\s" + _DATE.format("a") + r"\s?(?:to|until|till|through|[-\u2013])\s?" + _DATE.format("b")
    + r"|between\s" + _DATE.format("c") + r"\sand\s" + _DATE.format("d") + ")",
    re.IGNORECASE,
)  # fmt: skip
# "Does not start until March" tells when something begins, and "worked there until March" may be over for years.
_NEGATED = re.compile(r"\b(?:not|never|no)\b|n['\u2019]t\b", re.IGNORECASE)
_NOW = re.compile(
    r"^(?:the\s)?user(?:['\u2019]s\s[^,.;]{1,60}?)?\s(?!was\b|has\sbeen\b|has\shad\b)(?:will|[a-z]+s)\b", re.IGNORECASE
)

# What is so for a time, and has a time beside it. What begins then ("moves to Oslo this month") may last for good.
_FOR_A_TIME = re.compile(
    r"^(?:the\s)?user(?:['\u2019]s\s[^,.;]{1,60}?)?\s(?:is\s(?:currently\s|still\s)?(?:in|at|on|away|off|out|abroad|sick|ill|busy"
    r"|visiting|staying|travell?ing|working\sfrom)|stays|visits|travels|works\sfrom|needs\sto|has\sto|must)\b",
    re.IGNORECASE,
)
_THIS_TIME = re.compile(
    r"\b(?:this\s(?:week|weekend|month|morning|afternoon|evening)|today|tonight)\s"
    r"\((?:(?P<span>week|weekend)\sof\s)?(?P<begin>\d{4}-\d\d(?:-\d\d)?)\)",
    re.IGNORECASE,
)

Validity = tuple[str, str]
"""From when and until when, both included, ISO 8601 as exact as it was said; empty where nothing tells."""


def validity(content: str, said: date | None) -> Validity:
    """Return from when and until when a fact holds; empty parts where its text does not tell beyond doubt.

    A fact that was over when it was said tells of the past, which stays true: it has no end.

    Args:
        content: The fact, with its relative dates resolved.
        said: The day it was said; of a month without a year, it tells which one is meant.
    """
    if ranges := list(_RANGE.finditer(content)):
        if len(ranges) > 1:
            return "", ""
        first, last = ("c", "d") if ranges[0][0].lower().startswith("between") else ("a", "b")
        end = _read(ranges[0], last, said, is_end=True)
        return _checked(_read(ranges[0], first, said, is_end=False, until=end), end, said)
    until, since = list(_UNTIL.finditer(content)), list(_SINCE.finditer(content))
    ahead = [found for found in _FROM.finditer(content) if found["on"] or found["frelative"]]
    if len(until) > 1 or len(since) + len(ahead) > 1:
        return "", ""
    begin = end = ""
    if since:
        begin = _read(since[0], "s", said, is_end=False)
    elif ahead:
        begin = _read(ahead[0], "f", said, is_end=False, is_ahead=True)
    if until and not _NEGATED.search(content, 0, until[0].start()):
        has_year = not until[0]["umonth"] or until[0]["uyear"]
        end = _read(until[0], "u", said, is_end=True) if has_year or _NOW.match(content) else ""
    if not (until or since or ahead):
        begin, end = _until_weekday(content, said) or _this_time(content) if _FOR_A_TIME.match(content) else ("", "")
        if not (begin or end):
            begin, end = foreign_validity(content, said)
    return _checked(begin, end, said)


def _until_weekday(content: str, said: date | None) -> Validity | None:
    """Return the first such day from the one it was said; `None` where no day of the week is named as the end."""
    days = _UNTIL_WEEKDAY.findall(content)
    if len(days) != 1 or said is None or _NEGATED.search(content):
        return None
    return "", (said + timedelta((WEEKDAYS.index(days[0].lower()) - said.weekday()) % 7)).isoformat()


def _this_time(content: str) -> Validity:
    """Return the one day, week, weekend or month that a fact is about; nothing where it names several or none."""
    times = list(_THIS_TIME.finditer(content))
    if len(times) != 1:
        return "", ""
    begin, days = times[0]["begin"], {"week": 6, "weekend": 1}.get((times[0]["span"] or "").lower(), 0)
    return begin, _days_after(begin, days) if days else begin


def _days_after(begin: str, days: int) -> str:
    """Return a day so many days later; empty where the text names no day, as a model may write anything in brackets."""
    try:
        return (date.fromisoformat(begin) + timedelta(days)).isoformat()
    except (ValueError, OverflowError):
        return ""


def _checked(begin: str, end: str, said: date | None) -> Validity:
    begin = begin if period_end(begin) else ""
    last = period_end(end)
    if end and (last is None or said is None or last < said):
        return begin, ""
    return ("", "") if begin and end and begin[: len(end)] > end[: len(begin)] else (begin, end)


def _read(
    found: re.Match[str], part: str, said: date | None, *, is_end: bool, is_ahead: bool = False, until: str = ""
) -> str:
    """Return the date of a part of a match; empty where it names none.

    Args:
        found: The match.
        part: The prefix of its groups.
        said: The day it was said.
        is_end: Whether it is until when: then a month without a year is the next one, else the last one.
        is_ahead: Whether it is from when, in time to come.
        until: The end of the same range, whose year a month without one has.
    """
    if resolved := found[f"{part}resolved"]:
        if is_end and found[f"{part}span"]:  # the bracket has the day on which it begins
            days = 6 if found[f"{part}span"].lower() == "week" else 1
            return _days_after(resolved, days)
        return resolved
    if found[f"{part}iso"] or found[f"{part}only_year"]:
        return found[f"{part}iso"] or found[f"{part}only_year"]
    name = found[f"{part}month"].lower()[:3]
    month = next(at for at, each in enumerate(MONTHS, 1) if each.startswith(name))
    day = found[f"{part}before"] or found[f"{part}day"]
    if year := found[f"{part}year"]:
        pass
    elif until:
        year = str(int(until[:4]) - (f"{until[:4]}-{month:02}" > until))
    elif said is None:
        return ""
    elif is_end or is_ahead:
        year = str(said.year + (month < said.month))
    else:
        year = str(said.year - (month > said.month))
    text = f"{year}-{month:02}" + (f"-{int(day):02}" if day else "")
    last = period_end(text)
    return text if last is not None and is_possible(last) else ""
