"""Whether a fact rests on what was said: its quoted words, its digits and its dates stand there. Pure.

No word of a language is known here. What the words mean, the model has said; that they were said is looked up.
"""

import re
import unicodedata
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

_GAP = re.compile(r"\.{3}|\u2026")
# White space, quotation marks, dashes and Markdown, which models write in forms of their own; emoji stay.
_BETWEEN = re.compile(r"[^\w\u2190-\U0010ffff]+")
_RUN = re.compile(r"\d+")
# Digits with what parts them into thousands, and behind a decimal point: "15,000", "+47 912 34 567".
_NUMBER = re.compile(r"\d+(?:[.,:'\u2019 \u00a0\u202f/-]\d+)*")
_DAY = re.compile(r"(?<![\d-])\d{4}-\d\d(?:-\d\d)?(?![\d-])")
_UNJOINED = re.compile(r"\D+")
# "Last spring", "in three months", "next year": so far from its message a date may be that is told in words.
_REACH: Final = timedelta(days=800)
_BLANK = re.compile(r"[\[<{]{1,2}[^\W\d][\w ]{0,39}[\]>}]{1,2}|_{3,}|\bX{2,}\b|\b[XYZ](?:['\u2019]s)?(?=[ .,]|$)")


def stands_in(quote: str, text: str) -> bool:
    """Say whether quoted words stand in a text, case, white space and signs aside; a gap ("...") parts them."""
    parts = [*map(_compared, _GAP.split(quote))]
    said = _compared(text)
    return any(parts) and all(part in said for part in parts)


def unfounded(text: str, said: str, day: date | None) -> bool:
    """Say whether a text has a number or a date that nobody said.

    Args:
        text: A fact, or a section of the profile.
        said: All that may lend it digits.
        day: The day of the message. A date near it may have been told in words; far from it, nobody can look that up.
    """
    text, said = (unicodedata.normalize("NFKC", each) for each in (text, said))
    known = {each for number in _numbers(said) for each in number}
    if day:
        known |= {str(year) for year in range(day.year - 2, day.year + 3)}
    # On lines of their own: what stands beside a date is another number. A month has a name.
    far = _DAY.sub(lambda found: " " if _is_near(found[0], day) else f"\n{found[0][:4]}\n{found[0][8:]}\n", text)
    return not all(whole in known or known.issuperset(parts) for whole, *parts in _numbers(far))


def _numbers(text: str) -> Iterator[list[str]]:
    """Yield each number of a text as a whole, then its parts, without leading zeros."""
    for found in _NUMBER.findall(text):
        yield [digits.lstrip("0") or "0" for digits in (_UNJOINED.sub("", found), *_RUN.findall(found))]


def has_blank(text: str, said: str) -> bool:
    """Say whether a text has a blank where a name or a number should be (`[name]`), and nobody said that blank."""
    return any(found[0].casefold() not in said.casefold() for found in _BLANK.finditer(text))


def _compared(text: str) -> str:
    return _BETWEEN.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


def _is_near(told: str, day: date | None) -> bool:
    try:
        return day is not None and abs(date.fromisoformat(f"{told}-01"[:10]) - day) <= _REACH
    except ValueError:
        return False
