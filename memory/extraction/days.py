"""The date in brackets that a text begins with. Pure."""

import re
from datetime import date
from typing import Final

from memory.text import MONTHS, WEEKDAYS

# Years that a message may be from, or speak of: near the ends of Python's calendar, "yesterday" is no date at all.
FIRST_YEAR: Final = 1900
LAST_YEAR: Final = 2100
_MONTH: Final = "|".join(f"{name}|{name[:3]}\\.?" for name in MONTHS)
# One space at a time: runs of them would be tried in every division among the parts.
_TIME: Final = r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?[ap]\.?m\.?)?(?:\s?(?:Z|UTC|[+-]\d{2}:?\d{2}))?"
_STAMP = re.compile(
    rf"[(\[]\s?(?:{_TIME}\s?(?:on|,|-)?\s)?(?:(?:{'|'.join(WEEKDAYS)}),?\s)?"
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
    """Return the day that a stamp names; `None` for what is none, or names no day that a chat can be from."""
    found = _STAMP.match(stamp)
    if not found:
        return None
    try:
        if found["iso"]:
            day = date.fromisoformat(found["iso"])
        else:
            start = (found["month"] or found["us_month"])[:3].lower()
            month = next(at for at, name in enumerate(MONTHS, 1) if name.startswith(start))
            day = date(int(found["year"] or found["us_year"]), month, int(found["day"] or found["us_day"]))
    except ValueError:
        return None
    return day if is_possible(day) else None


def is_possible(day: date) -> bool:
    """Say whether a message may be from that day."""
    return FIRST_YEAR <= day.year <= LAST_YEAR
