"""The dates that texts may mean, in several languages, and which date of a fact nobody said. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, Self

from memory.extraction.days import FIRST_YEAR, LAST_YEAR, with_dates
from memory.extraction.names import Vocabulary
from memory.extraction.numbers import numbers
from memory.text import fold, word_set

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
_WEEKDAYS: Final = tuple(word_set(line, fold) for line in _WEEKDAY_WORDS.split("|")[1:])
_MONTHS: Final = tuple(word_set(line, fold) for line in _MONTH_WORDS.split("|")[1:])
_DAY_WORDS: Final = {
    fold(word).replace("_", " "): int(shift)
    for shift, *words in (line.split() for line in _SHIFTS.split("|")[1:])
    for word in words
}
_YEARS = re.compile(r"\b(?:year|jahr|año|ans?\b|anno|anni|ano|jaar|jaren|yo\b|y/o)|[年岁歳才]", re.IGNORECASE)
_MONTH_SPANS = re.compile(r"\b(?:month|monat|mes\b|meses|mois|mesi|maand)|[月]", re.IGNORECASE)
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d\d)(?:-(\d\d))?(?!\d)")
_WORD = re.compile(r"\w+")
_OLDEST: Final = 120  # no person's years are more
_MONTH_NAMES: Final = frozenset().union(*_MONTHS)
# "Segunda" and its like are weekdays in Portuguese only, and ordinals in Spanish too.
_WEEKDAY_NAMES: Final = frozenset(filter(str.isalpha, frozenset().union(*_WEEKDAYS))) - word_set(
    "segunda terca quarta quinta sexta"
)
# Longest first: a shorter name that another begins with would end the match within that one.
_MONTH: Final = "|".join(sorted(filter(str.isalpha, _MONTH_NAMES), key=len, reverse=True))
_DATE = re.compile(
    r"(?<![\d.])(?:(?P<year>\d{4})[-/.](?P<month>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?"
    r"|(?P<first>\d{1,2})[./](?P<second>\d{1,2})[./](?P<last>\d{4}|\d\d))(?![\d.]*\d)"
    rf"|(?<![\w.])(?P<before>\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?:de\s|of\s)?(?P<name>{_MONTH})\b\.?(?:,?\s(?:de\s)?(?P<of>\d{{4}})(?!\d))?"
    rf"|(?<!\w)(?P<name_first>{_MONTH})\b\.?\s(?:(?P<after>\d{{1,2}})(?:st|nd|rd|th)?(?!\d),?\s?)?(?P<then>\d{{4}}(?!\d))?"
    r"|(?P<cjk_year>\d{4})年(?:(?P<cjk_month>\d{1,2})月)?(?:(?P<cjk_day>\d{1,2})日)?"
)


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

    @classmethod
    def of(cls, text: str, written: date | None) -> Self:
        """Return what a message's dates may mean.

        Args:
            text: What it says.
            written: The day it is relative to; `None` if that is not known.
        """
        folded = fold(text)
        words = frozenset(_WORD.findall(folded))
        weekdays, months = (
            {at for at, names in enumerate(table) if any(_is_in(name, folded, words) for name in names)}
            for table in (_WEEKDAYS, _MONTHS)
        )
        days = set(iso_days(with_dates(text, written) if written else text))
        said = numbers(text)
        # "2.75" is a number, too, and no year.
        years = {each for each in said if each.isdecimal() and FIRST_YEAR <= int(each[:5]) <= LAST_YEAR}
        near: set[int] = set()
        if written:
            small = [int(each) for each in said if each.isdecimal() and len(each) <= 3]
            days |= {
                written,
                *(written + timedelta(shift) for word, shift in _DAY_WORDS.items() if _is_in(word, folded, words)),
            }
            # A weekday may be one of the last two weeks or of the next two.
            days |= {
                written + timedelta((each - written.weekday()) % 7 + 7 * weeks)
                for each in weekdays
                for weeks in (-2, -1, 0, 1)
            }
            if _MONTH_SPANS.search(text):  # so many months before and after
                counted = [written.month - 1 + side * n for n in small if n < 100 for side in (-1, 1)]
                days |= {date(written.year + month // 12, month % 12 + 1, 1) for month in counted}
            near = set() if years else {written.year - 1, written.year, written.year + 1}
            if _YEARS.search(text):  # so many years before and after; before a birthday the year is one less
                years |= {str(written.year + shift) for n in small if n <= _OLDEST for shift in (-n, -n - 1, n)}
        return cls(
            days=frozenset(days),
            months=frozenset({month + 1 for month in months} | {day.month for day in days}),
            weekdays=frozenset(weekdays | {day.weekday() for day in days}),
            years=frozenset(years),
            near=frozenset(near),
        )

    def joined(self, other: "Calendar") -> "Calendar":
        """Return what both may mean."""
        return Calendar(
            self.days | other.days,
            self.months | other.months,
            self.weekdays | other.weekdays,
            self.years | other.years,
            self.near | other.near,
        )

    def has(self, year: int | None, month: int, day: int, said: frozenset[str]) -> bool:
        """Say whether a date was meant, or put together from what was said.

        Args:
            year: `None` if the date has none.
            month: 0 if it has none.
            day: 0 if it has none.
            said: The numbers that were said.
        """
        # What a date leaves out, a day that was meant may add.
        if year and any(
            (year, month, day) in ((each.year, each.month, each.day), (each.year, each.month, 0), (each.year, 0, 0))
            for each in self.days
        ):
            return True
        has_month = not month or month in self.months or str(month) in said
        has_day = not day or str(day) in said or any((each.month, each.day) == (month, day) for each in self.days)
        has_year = year is None or str(year) in said or (year in self.near and bool(month))
        return has_month and has_day and has_year


def _is_in(name: str, folded: str, words: frozenset[str]) -> bool:
    """Say whether a text has a name among its words; scripts without spaces, and names of two words, have it within."""
    return name in words or (not (name.isalnum() and name.isascii()) and name in folded)


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


def unsaid_date(text: str, meant: Calendar, said: Vocabulary, said_numbers: frozenset[str]) -> str:
    """Return the first date, weekday or month of a text that nobody meant; empty if there is none.

    Args:
        text: A fact, or a section of the profile.
        meant: What the messages mean.
        said: Their words: a date that stands in them as it is, was said.
        said_numbers: Their numbers.
    """
    for found in _DATE.finditer(fold(text)):
        if not any(map(str.isdigit, found[0])) or found[0].strip() in said.text:
            continue
        year, months, days = _read(found)
        if not any(meant.has(year, month, day, said_numbers) for month in months or [0] for day in days or [0]):
            return str(found[0])
    for word in _WORD.findall(text):
        name = fold(word)
        if name in _WEEKDAY_NAMES:
            if not any(name in names and at in meant.weekdays for at, names in enumerate(_WEEKDAYS)):
                return str(word)
        # Without a capital it is no month ("the user may move"), nor if it was said as another word.
        elif name in _MONTH_NAMES and word != word.lower() and name not in said.words:
            months = [at for at, names in enumerate(_MONTHS, 1) if name in names]
            if not any(month in meant.months or str(month) in said_numbers for month in months):
                return str(word)
    return ""


def _read(found: re.Match[str]) -> tuple[int | None, list[int], list[int]]:
    """Return year, months and days that a date may mean; `4.5.2026` is in April or in May."""
    if found["last"]:
        either = [int(found["first"]), int(found["second"])]
        return int(found["last"]) + (0 if len(found["last"]) == 4 else 2000), either, either
    year = next(filter(None, (found[name] for name in ("year", "cjk_year", "of", "then"))), None)
    month = found["month"] or found["cjk_month"]
    day = next(filter(None, (found[name] for name in ("day", "cjk_day", "before", "after"))), None)
    name = found["name"] or found["name_first"]
    months = [int(month)] if month else [at for at, names in enumerate(_MONTHS, 1) if name in names]
    return int(year) if year else None, months, [int(day)] if day else []


def without_dates(text: str) -> tuple[str, str]:
    """Return a text without the names of months and days, and folded without its dates: both are judged as dates."""

    def unnamed(found: re.Match[str]) -> str:
        is_named = found[0] != found[0].lower() and fold(found[0]) in _MONTH_NAMES | _WEEKDAY_NAMES
        return " " if is_named else found[0]

    return _WORD.sub(unnamed, text), _DATE.sub(" ", fold(text))
