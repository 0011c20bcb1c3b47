"""The days that messages mean: relative English dates resolved in code, and dates in several languages. Pure."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from memory.extraction.numbers import fold, numbers

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
_FIRST_YEAR: Final = 1900
_LAST_YEAR: Final = 2100
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
    """Return the day that a stamp names; `None` for what is none, or names no day that a chat can be from."""
    found = _STAMP.match(stamp)
    if not found:
        return None
    try:
        if found["iso"]:
            day = date.fromisoformat(found["iso"])
        else:
            month = next(
                at
                for at, name in enumerate(_MONTHS, 1)
                if name[:3] == (found["month"] or found["us_month"])[:3].lower()
            )
            day = date(int(found["year"] or found["us_year"]), month, int(found["day"] or found["us_day"]))
    except ValueError:
        return None
    return day if is_possible(day) else None


def is_possible(day: date) -> bool:
    """Say whether a message may be from that day: near the ends of Python's calendar, "yesterday" is no date at all."""
    return _FIRST_YEAR <= day.year <= _LAST_YEAR


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


_WEEKDAY_WORDS: Final = """
| monday mondays montag montags lunes lundi lunedi segunda maandag 月曜 月曜日 星期一 周一 понедельник
| tuesday tuesdays dienstag dienstags martes mardi martedi terca dinsdag 火曜 火曜日 星期二 周二 вторник
| wednesday wednesdays mittwoch mittwochs miercoles mercredi mercoledi quarta woensdag 水曜 水曜日 星期三 周三 среду
| thursday thursdays donnerstag donnerstags jueves jeudi giovedi quinta donderdag 木曜 木曜日 星期四 周四 четверг
| friday fridays freitag freitags viernes vendredi venerdi sexta vrijdag 金曜 金曜日 星期五 周五 пятница пятницу
| saturday saturdays samstag samstags sonnabend sabado samedi sabato zaterdag 土曜 土曜日 星期六 周六 суббота субботу
| sunday sundays sonntag sonntags domingo dimanche domenica zondag 日曜 日曜日 星期日 星期天 周日 воскресенье
"""
_MONTH_WORDS: Final = """
| january jan januar enero janvier gennaio janeiro januari 1月 一月 январь января | february feb februar febrero fevrier
  febbraio fevereiro februari 2月 二月 февраль февраля | march mar marz maerz marzo mars marco maart 3月 三月 март марта
| april apr abril avril aprile 4月 四月 апрель апреля | may mai mayo maggio maio mei 5月 五月 май мая
| june jun juni junio juin giugno junho 6月 六月 июнь июня | july jul juli julio juillet luglio julho 7月 七月 июль июля
| august aug agosto aout augustus 8月 八月 август августа
| september sep sept septiembre septembre settembre setembro 9月 九月 сентябрь сентября
| october oct oktober okt octubre octobre ottobre outubro 10月 十月 октябрь октября
| november nov noviembre novembre 11月 十一月 ноябрь ноября
| december dec dezember dez diciembre decembre dicembre dezembro 12月 十二月 декабрь декабря
"""
_SHIFTS: Final = """
| -2 vorgestern anteayer avant-hier 一昨日 前天 | -1 gestern ayer hier ieri ontem gisteren 昨日 昨天 вчера
| 0 heute hoy aujourd'hui oggi hoje vandaag 今日 今天 сегодня | 1 morgen mañana demain domani amanhã 明日 明天 завтра
| 2 übermorgen pasado_mañana après-demain dopodomani overmorgen 明後日 后天
"""
_YEARS = re.compile(r"\b(?:year|jahr|año|ans?\b|anno|anni|ano|jaar|jaren|yo\b|y/o)|[年岁歳才]", re.IGNORECASE)
_MONTH_SPANS = re.compile(r"\b(?:month|monat|mes\b|meses|mois|mesi|maand)|[月]", re.IGNORECASE)
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d\d)(?:-(\d\d))?(?!\d)")
_WORD = re.compile(r"\w+")
_OLDEST: Final = 120


def _tables(text: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(map(fold, line.split())) for line in text.split("|")[1:])


WEEKDAYS: Final = _tables(_WEEKDAY_WORDS)
MONTHS: Final = _tables(_MONTH_WORDS)
_DAY_WORDS: Final = {
    fold(word).replace("_", " "): int(shift)
    for shift, *words in (line.split() for line in _SHIFTS.split("|")[1:])
    for word in words
}


@dataclass(frozen=True, slots=True)
class Calendar:
    """What messages may mean by their dates.

    Attributes:
        days: Days, the messages' own too.
        months: Months, from 1.
        weekdays: Weekdays, Monday is 0.
        years: Years, as numbers say them.
        near: Years that a date without a year may be in; none where a year was said.
    """

    days: frozenset[date] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    years: frozenset[str] = frozenset()
    near: frozenset[int] = frozenset()

    def joined(self, other: "Calendar") -> "Calendar":
        """Return what both may mean."""
        return Calendar(
            self.days | other.days,
            self.months | other.months,
            self.weekdays | other.weekdays,
            self.years | other.years,
            self.near | other.near,
        )


def calendar(text: str, written: date | None) -> Calendar:
    """Return what a message's dates may mean.

    Args:
        text: What it says.
        written: The day it is relative to; `None` if that is not known.
    """
    weekdays, months = _named(text, WEEKDAYS), _named(text, MONTHS)
    found = {*iso_days(with_dates(text, written) if written else text)}
    said = numbers(text)
    years = {each for each in said if each.isdecimal() and _FIRST_YEAR <= int(each[:5]) <= _LAST_YEAR}
    near: set[int] = set()
    if written:
        found |= {written, *_meant(text, written, weekdays)}
        near = set() if years else {written.year - 1, written.year, written.year + 1}
        years |= {str(year) for year in _counted(text, written, said)}
    return Calendar(
        days=frozenset(found),
        months=frozenset({month + 1 for month in months} | {day.month for day in found}),
        weekdays=frozenset(weekdays | {day.weekday() for day in found}),
        years=frozenset(years),
        near=frozenset(near),
    )


def iso_days(text: str) -> Iterator[date]:
    """Yield the days and the first days of months that a text names as `2026-05-08` and `2026-05`."""
    for year, month, day in _ISO.findall(text):
        try:
            yield date(int(year), int(month), int(day or 1))
        except ValueError:
            continue


def ages(years: frozenset[str], written: date) -> frozenset[str]:
    """Return how many years ago the years were, before and after the day in the year."""
    ago = (written.year - int(year) for year in years)
    return frozenset(str(each) for n in ago if 0 < n <= _OLDEST for each in (n, n - 1))


def _named(text: str, table: tuple[frozenset[str], ...]) -> frozenset[int]:
    folded = fold(text)
    words = frozenset(_WORD.findall(folded))
    return frozenset(
        at
        for at, names in enumerate(table)
        if names & words or any(not name.isascii() and name in folded for name in names)
    )


def _meant(text: str, written: date, weekdays: frozenset[int]) -> Iterator[date]:
    folded = fold(text)
    words = frozenset(_WORD.findall(folded))
    for word, shift in _DAY_WORDS.items():
        if word in words or (not (word.isalnum() and word.isascii()) and word in folded):
            yield written + timedelta(shift)
    for weekday in weekdays:
        ahead = (weekday - written.weekday()) % 7
        yield from (written + timedelta(ahead + 7 * weeks) for weeks in (-2, -1, 0, 1))
    if _MONTH_SPANS.search(text):
        for n in (int(each) for each in numbers(text) if each.isdecimal() and len(each) <= 2):
            for months in (written.month - 1 - n, written.month - 1 + n):
                yield date(written.year + months // 12, months % 12 + 1, 1)


def _counted(text: str, written: date, said: frozenset[str]) -> Iterator[int]:
    """Yield the years that so many years before and after the day are in."""
    if _YEARS.search(text):
        for n in (int(each) for each in said if each.isdecimal() and len(each) <= 3):
            if n <= _OLDEST:
                yield from (written.year - n, written.year - n - 1, written.year + n)
