"""The dates that texts may mean, in several languages, and which date of a fact nobody said. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
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


# "12.3." and "3/12": a day and a month without a year. "8.5" is a number.
_DAY_AND_MONTH = re.compile(r"(?<![\d.,:/])(\d{1,2})(?:\.(\d{1,2})\.|/(\d{1,2}))(?![\d/])")
_MONTH_AND_YEAR = re.compile(r"(?<![\d.,:/])(\d{1,2})[./](\d{4})(?!\d)")
_DASHED = re.compile(r"(?<![\d-])(\d{1,2})-(\d{1,2})-(\d{4})(?![\d-])")
_CJK_DAY = re.compile(r"([\d一二三四五六七八九十]{1,3})月\s?([\d一二三四五六七八九十]{1,3})[日号號]")
# "On the 7th", "am 7. fahre ich": of the one month that is named, or of those around.
_ORDINAL = re.compile(r"(?<![\w.,:/])(\d{1,2})(?:st|nd|rd|th|\.(?=\s[a-z])|日)(?!\w)")
_OF: Final = frozenset({"of", "de", "the"})
_JOINING_CHARS: Final = 3  # "12 to 16 March", "12 y 16 de marzo": so short is what joins days of one month

# Year, month and day; `None` and 0 for what was not said.
_Date = tuple[int | None, int, int]


@dataclass(frozen=True, slots=True)
class Calendar:
    """What messages may mean by their dates.

    Attributes:
        days: Days, the messages' own too.
        dates: These days, and dates that were said: each has only what was said of it together.
        weekdays: Weekdays, Monday is 0.
        years: Years, as numbers say them.
        near: Years that a date without a year may be in.
    """

    days: frozenset[date] = frozenset()
    dates: frozenset[_Date] = frozenset()
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
            near = {written.year - 1, written.year, written.year + 1}
            if _YEARS.search(text):  # so many years before and after; before a birthday the year is one less
                years |= {str(written.year + shift) for n in small if n <= _OLDEST for shift in (-n, -n - 1, n)}
        dates = _dates(text, {month + 1 for month in months}, years)
        if written and not months:
            days |= {day for found in _ORDINAL.finditer(text) for day in _around(written, int(found[1]))}
        return cls(
            days=frozenset(days),
            dates=frozenset(dates | {(day.year, day.month, day.day) for day in days}),
            weekdays=frozenset(weekdays | {day.weekday() for day in days}),
            years=frozenset(years),
            near=frozenset(near),
        )

    def joined(self, other: "Calendar") -> "Calendar":
        """Return what both may mean."""
        return Calendar(*(getattr(self, each.name) | getattr(other, each.name) for each in fields(self)))

    def has(self, year: int | None, month: int, day: int) -> bool:
        """Say whether one date that was meant has all of this.

        Args:
            year: `None` if it has none.
            month: 0 if it has none.
            day: 0 if it has none.
        """
        return any(
            month in (0, its_month)
            and day in (0, its_day)
            and (year in (None, its_year) or (its_year is None and year in self.near))
            for its_year, its_month, its_day in self.dates
        )


def _dates(text: str, months: set[int], years: set[str]) -> set[_Date]:
    """Return the dates that a text says; one without a year is also one in each year that the text names."""
    folded = fold(text)
    whole = {each for found in _DATE.finditer(folded) for each in _read(found)}
    bare = set[tuple[int, int]]()
    for first, dot, slash in _DAY_AND_MONTH.findall(folded):
        bare |= {(int(first), int(dot or slash)), (int(dot or slash), int(first))}
    for month, day in _CJK_DAY.findall(text):
        bare |= {(int(one), int(other)) for one in numbers(month) for other in numbers(day)}
    if len(months) == 1:
        bare |= {(month, int(day)) for month in months for day in _ORDINAL.findall(text)}
    bare |= set(_beside_months(_WORD.findall(folded))) | {(month, 0) for month in months}
    for one, other, year in _DASHED.findall(folded):
        whole |= {(int(year), int(one), int(other)), (int(year), int(other), int(one))}
    whole |= {(int(year), int(month), 0) for month, year in _MONTH_AND_YEAR.findall(folded)}
    dated = {(month, day) for year, month, day in whole if year} | {(month, 0) for year, month, _ in whole if year}
    undated = ({(month, day) for year, month, day in whole if not year} | bare) - dated
    return (
        {each for each in whole if each[0]}
        | {(year, month, day) for month, day in undated for year in (None, *map(int, years))}
        | {(int(year), 0, 0) for year in years}
    )


def _beside_months(tokens: list[str]) -> Iterator[tuple[int, int]]:
    """Yield month and day where days stand beside a month's name: "12 to 16 March", "am ersten Mai"."""
    for at, token in enumerate(tokens):
        months = [month for month, names in enumerate(_MONTHS, 1) if token in names]
        if not months:
            continue
        before, behind = tokens[max(0, at - 6) : at][::-1], tokens[at + 1 : at + 7]
        for side in (before, behind):
            chain = _chain(side[1:] if side and side[0] in _OF else side)
            days = numbers(" ".join(chain if side is behind else chain[::-1]))
            yield from ((month, day) for month in months for day in range(1, 32) if str(day) in days)


def _chain(tokens: list[str]) -> list[str]:
    """Return the numbers that tokens begin with, and the short words between them."""
    chain: list[str] = []
    for token in tokens:
        if not numbers(token) and (not chain or len(token) > _JOINING_CHARS):
            break
        chain.append(token)
    return chain


def _around(written: date, day: int) -> Iterator[date]:
    """Yield such a day of the month before, of this one, and of the one after."""
    for month in range(written.month - 2, written.month + 1):
        try:
            yield date(written.year + month // 12, month % 12 + 1, day)
        except ValueError:
            continue


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


def unsaid_date(text: str, meant: Calendar, said: Vocabulary) -> str:
    """Return the first date, weekday or month of a text that nobody meant; empty if there is none.

    Args:
        text: A fact, or a section of the profile.
        meant: What the messages mean.
        said: Their words: a date that stands in them as it is, was said.
    """
    for found in _DATE.finditer(fold(text)):
        if not any(map(str.isdigit, found[0])) or found[0].strip() in said.text:
            continue
        if not any(meant.has(*each) for each in _read(found)):
            return str(found[0])
    for word in _WORD.findall(text):
        name = fold(word)
        if name in _WEEKDAY_NAMES:
            if not any(name in names and at in meant.weekdays for at, names in enumerate(_WEEKDAYS)):
                return str(word)
        # Without a capital it is no month ("the user may move"), nor if it was said as another word.
        elif (
            name in _MONTH_NAMES
            and word != word.lower()
            and name not in said.words
            and not any(name in _MONTHS[month - 1] and meant.has(None, month, 0) for month in range(1, 13))
        ):
            return str(word)
    return ""


def _read(found: re.Match[str]) -> list[_Date]:
    """Return what a date may mean; `4.5.2026` is in April or in May."""
    if found["last"]:
        first, second = int(found["first"]), int(found["second"])
        years = (0,) if len(found["last"]) == 4 else (1900, 2000)
        days = ((first, second), (second, first))
        return [(century + int(found["last"]), month, day) for century in years for month, day in days]
    said = next(filter(None, (found[name] for name in ("year", "cjk_year", "of", "then"))), None)
    month = found["month"] or found["cjk_month"]
    day = next(filter(None, (found[name] for name in ("day", "cjk_day", "before", "after"))), None)
    name = found["name"] or found["name_first"]
    months = [int(month)] if month else [at for at, names in enumerate(_MONTHS, 1) if name in names]
    return [(int(said) if said else None, each, int(day or 0)) for each in months or [0]]


def without_dates(text: str) -> tuple[str, str]:
    """Return a text without the names of months and days, and folded without its dates: both are judged as dates."""

    def unnamed(found: re.Match[str]) -> str:
        is_named = found[0] != found[0].lower() and fold(found[0]) in _MONTH_NAMES | _WEEKDAY_NAMES
        return " " if is_named else found[0]

    return _WORD.sub(unnamed, text), _DATE.sub(" ", fold(text))
