"""Which days, months and weekdays messages may mean, in several languages. Pure.

`memory.core.dates` resolves what English says, for the model to read. Here more is allowed for, to judge what a model
wrote: a day is one that somebody may have meant, or none.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from memory.core.dates import with_dates
from memory.core.numbers import fold, numbers

_WEEKDAYS: Final = """
| monday mondays montag montags lunes lundi lunedi segunda maandag 月曜 月曜日 星期一 周一 понедельник
| tuesday tuesdays dienstag dienstags martes mardi martedi terca dinsdag 火曜 火曜日 星期二 周二 вторник
| wednesday wednesdays mittwoch mittwochs miercoles mercredi mercoledi quarta woensdag 水曜 水曜日 星期三 周三 среду
| thursday thursdays donnerstag donnerstags jueves jeudi giovedi quinta donderdag 木曜 木曜日 星期四 周四 четверг
| friday fridays freitag freitags viernes vendredi venerdi sexta vrijdag 金曜 金曜日 星期五 周五 пятница пятницу
| saturday saturdays samstag samstags sonnabend sabado samedi sabato zaterdag 土曜 土曜日 星期六 周六 суббота субботу
| sunday sundays sonntag sonntags domingo dimanche domenica zondag 日曜 日曜日 星期日 星期天 周日 воскресенье
"""
_MONTHS: Final = """
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


WEEKDAYS: Final = _tables(_WEEKDAYS)
MONTHS: Final = _tables(_MONTHS)
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
    years = {each for each in said if len(each) == 4 and "1900" <= each <= "2100"}
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
