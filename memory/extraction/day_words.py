"""Relative dates in other languages than English, resolved in code: the six most used on the web after it. Pure.

These are Spanish, German, Japanese, French, Russian and Portuguese (W3Techs, content languages of websites, September
2024: 6.0, 5.6, 5.0, 4.4, 4.0 and 3.8 %).
"""

# ruff: noqa: RUF001 - letters of other scripts are meant

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from memory.extraction.names import small_words

# A number, or its word: one to ten.
_COUNTS: Final[Mapping[str, str]] = {
    "es": "un uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez",
    "de": "ein eine einem einer|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn",
    "fr": "un une|deux|trois|quatre|cinq|six|sept|huit|neuf|dix",
    "pt": "um uma|dois duas|três|quatro|cinco|seis|sete|oito|nove|dez",
    "ru": "один одну|два две|три|четыре|пять|шесть|семь|восемь|девять|десять",
    "ja": "一|二|三|四|五|六|七|八|九|十",
}


@dataclass(frozen=True, slots=True)
class _DayWords:
    """How a language says when something was.

    Attributes:
        days: Patterns of words for a day, by the days from today.
        ago: The pattern of "3 days ago", with `{n}` for the number and `{unit}` for its unit.
        later: That of "in 3 days".
        units: Patterns of the units, by their days.
        weekdays: Patterns of the days of the week, from Monday.
        which: Patterns of "last", "this" and "next" with a weekday (`{day}`) or a span (`{span}`).
        spans: Patterns of week, month, year and weekend.
    """

    days: Mapping[str, int]
    ago: str
    later: str
    units: Mapping[str, int]
    weekdays: str
    which: Mapping[int, str]
    spans: Mapping[str, str]


_LANGUAGES: Final[Mapping[str, _DayWords]] = {
    "es": _DayWords(
        {
            r"anteayer|antes de ayer": -2,
            r"ayer|anoche": -1,
            r"hoy|esta (?:mañana|tarde|noche)": 0,
            r"pasado mañana": 2,
            # "Por la mañana" is the morning.
            r"(?<!\bla )(?<!\besta )(?<!\bcada )(?<!\bpasado )mañana": 1,
        },
        r"hace {n} {unit}",
        r"(?:dentro de|en) {n} {unit}",
        {r"días?": 1, r"semanas?": 7},
        r"lunes|martes|miércoles|jueves|viernes|sábado|domingo",
        {
            -1: r"el {day} pasado|el pasado {day}|(?:la|el) (?:pasad[oa] {span}|{span} pasad[oa])",
            0: r"este {day}|est[ea] {span}",
            1: r"el próximo {day}|el {day} que viene|(?:la|el) (?:próxim[oa] {span}|{span} (?:que viene|próxim[oa]))",
        },
        {"week": "semana", "month": "mes", "year": "año", "weekend": "fin de semana"},
    ),
    "de": _DayWords(
        {
            r"vorgestern": -2,
            r"gestern|letzte nacht": -1,
            r"heute (?:morgen|abend|nacht|mittag|früh)|heute": 0,
            r"übermorgen": 2,
            # "Am Morgen", "guten Morgen": there it is the morning, and has a capital letter within the sentence.
            r"(?<![Hh]eute )(?<![Gg]estern )(?-i:morgen)|(?:(?<=^)|(?<=[.!?]\s))(?-i:Morgen)(?=\s+(?-i:[a-zäöü]))": 1,
        },
        r"vor {n} {unit}",
        r"in {n} {unit}",
        {r"tag(?:en|e)?": 1, r"wochen?": 7},
        r"montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag",
        {
            -1: r"(?:letzte|vorige|vergangene)[nrs]? (?:{day}|{span})",
            0: r"diese[nrsm]? (?:{day}|{span})",
            1: r"nächste[nrs]? (?:{day}|{span})",
        },
        {"week": "woche", "month": "monat", "year": "jahr", "weekend": "wochenende"},
    ),
    "fr": _DayWords(
        {
            r"avant-hier": -2,
            r"(?<!avant-)hier": -1,
            r"aujourd['’]hui|ce (?:matin|soir)|cet après-midi": 0,
            r"après-demain": 2,
            r"(?<!après-)demain": 1,
        },
        r"il y a {n} {unit}",
        r"dans {n} {unit}",
        {r"jours?": 1, r"semaines?": 7},
        r"lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche",
        {
            -1: r"{day} dernier|(?:la|le|l['’]) ?{span} derni(?:er|ère)",
            0: r"ce {day}|c(?:e|et|ette) {span}",
            1: r"{day} prochain|(?:la|le|l['’]) ?{span} prochaine?",
        },
        {"week": "semaine", "month": "mois", "year": "année|an", "weekend": "week-?end"},
    ),
    "pt": _DayWords(
        {
            r"anteontem|antes de ontem": -2,
            r"(?<!antes de )ontem": -1,
            r"hoje|esta (?:manhã|tarde|noite)": 0,
            r"depois de amanhã": 2,
            r"(?<!depois de )amanhã": 1,
        },
        r"(?:há {n} {unit}(?: atrás)?|{n} {unit} atrás)",
        r"(?:daqui a|em|dentro de) {n} {unit}",
        {r"dias?": 1, r"semanas?": 7},
        r"segunda(?:-feira)?|terça(?:-feira)?|quarta(?:-feira)?|quinta(?:-feira)?|sexta(?:-feira)?|sábado|domingo",
        {
            -1: r"n?[oa] {day} passad[oa]|(?:n?[oa] )?(?:{span} passad[oa]|últim[oa] {span})",
            0: r"est[ea] (?:{day}|{span})",
            1: r"n?[oa] próxim[oa] {day}|{day} que vem|(?:n?[oa] )?(?:próxim[oa] {span}|{span} que vem)",
        },
        {"week": "semana", "month": "mês", "year": "ano", "weekend": "fim de semana"},
    ),
    "ru": _DayWords(
        {
            r"позавчера": -2,
            r"(?<!поза)вчера": -1,
            r"сегодня": 0,
            r"послезавтра": 2,
            r"(?<!после)завтра": 1,
        },
        r"{n} {unit} назад",
        r"через {n} {unit}",
        {r"день|дня|дней": 1, r"недел[юи]|недель": 7},
        r"понедельник|вторник|сред[ау]|четверг|пятниц[ау]|суббот[ау]|воскресенье",
        {
            -1: r"прошл(?:ый|ая|ую|ое|ой|ом) (?:{day}|{span})",
            0: r"эт(?:от|а|у|о|ой|ом) (?:{day}|{span})",
            1: r"следующ(?:ий|ая|ую|ее|ей|ем) (?:{day}|{span})",
        },
        {"week": "недел[юяе]", "month": "месяце?", "year": "году?", "weekend": "выходные"},
    ),
    "ja": _DayWords(
        {
            r"一昨日|おととい": -2,
            r"(?<!一)昨日|きのう|昨夜|昨晩": -1,
            r"今日|今朝|今晩|今夜": 0,
            r"明後日|あさって": 2,
            r"明日": 1,
        },
        r"{n}{unit}前",
        r"{n}{unit}後",
        {r"日": 1, r"週間": 7},
        r"月曜日?|火曜日?|水曜日?|木曜日?|金曜日?|土曜日?|日曜日?",
        {
            -1: r"(?:先週の{day}|先週|先月|去年|昨年)",
            0: r"(?:今週の{day}|今週|今月|今年)",
            1: r"(?:来週の{day}|来週|来月|来年)",
        },
        {"week": "週", "month": "月", "year": "年", "weekend": "週末"},
    ),
}
# What other languages say too, and mean something else: the small words around must tell.
_SHARED: Final = re.compile(r"hier|morgen|ce (?:matin|soir)")


def _pattern(words: _DayWords, is_spaced: bool) -> re.Pattern[str]:
    """Return the pattern of a language; its groups are named by what they say."""
    number, unit, spans = r"(?:\d{1,3}|[^\W\d]{1,9})", "|".join(words.units), "|".join(words.spans.values())
    parts = [f"(?P<day{at}>{pattern})" for at, pattern in enumerate(words.days)]
    for name, pattern in (("ago", words.ago), ("later", words.later)):
        parts.append(f"(?P<{name}>{pattern.replace('{n}', number).replace('{unit}', f'(?:{unit})')})")
    for side, pattern in words.which.items():
        filled = pattern.replace("{day}", f"(?:{words.weekdays})").replace("{span}", f"(?:{spans})")
        parts.append(f"(?P<side{side + 1}>{filled})")
    edge = r"\b" if is_spaced else ""
    # What a date in brackets follows is resolved already.
    return re.compile(f"{edge}(?>{'|'.join(reversed(parts))}){edge}(?!\\s?[(\uff08])", re.IGNORECASE)


_PATTERNS: Final = {name: _pattern(words, name != "ja") for name, words in _LANGUAGES.items()}
# One of these stands in every text that a pattern finds something in; to look for them is quick, as English texts need.
_SIGNS: Final[Mapping[str, tuple[str, ...]]] = {
    "es": ("ayer", "anoche", "hoy", "mañana", "hace ", "pasad", "este ", "esta ", "próxim", " día", " semana", "viene"),
    "de": ("gestern", "heute", "morgen", " tag", " woche", "nächst", "letzt", "vorig", "vergangen", "diese"),
    "fr": ("hier", "aujourd", "ce ", "cet", " jour", " semaine", "derni", "prochain", "demain"),
    "pt": ("ontem", "hoje", "amanhã", " dia", " semana", "passad", "este ", "esta ", "próxim", "que vem", "últim"),
    "ru": tuple("аеио"),
    "ja": tuple("日前後週月年昨今明おあき"),
}


_UNITS: Final = {
    name: [(re.compile(pattern), days) for pattern, days in words.units.items()] for name, words in _LANGUAGES.items()
}
_WEEKDAYS: Final = {name: list(map(re.compile, words.weekdays.split("|"))) for name, words in _LANGUAGES.items()}
_SPANS: Final = {
    name: {span: re.compile(pattern) for span, pattern in words.spans.items()} for name, words in _LANGUAGES.items()
}
_DIGITS: Final = re.compile(r"\d{1,3}")
_WORD: Final = re.compile(r"\w+")


def with_foreign_dates(text: str, said: date) -> str:
    """Return a text with dates in brackets behind what is relative to the day it was said, in these languages.

    `with_foreign_dates("Ayer vi a Ana", date(2026, 5, 8)) == "Ayer (2026-05-07) vi a Ana"`. Where a language means one
    of two days ("nächsten Freitag", said on a Monday), no date is given.
    """
    lowered = text.lower()
    candidates = [
        name
        for name, signs in _SIGNS.items()
        if any(sign in lowered for sign in signs) and _PATTERNS[name].search(text)
    ]
    if not candidates:
        return text
    counts = small_words(text)
    # "Hier" is French and German, "este sábado" Spanish and Portuguese: the small words around tell which it is.
    best = max(candidates, key=lambda name: counts.get(name, 0))
    if _SHARED.fullmatch(_first(best, text)):
        is_meant = counts.get(best, 0) >= max(1, *(count for name, count in counts.items() if name != best))
    else:
        is_meant = counts["en"] <= max(1, counts.get(best, 0)) or best in ("ru", "ja")
    if not is_meant:
        return text

    def dated(found: re.Match[str]) -> str:
        day = _meaning(best, found, said)
        return f"{found[0]} ({day})" if day else found[0]

    return _PATTERNS[best].sub(dated, text)


def _first(language: str, text: str) -> str:
    found = _PATTERNS[language].search(text)
    return found[0].casefold() if found else ""


def _meaning(language: str, found: re.Match[str], said: date) -> str:
    """Return the day, month or year that is meant, a week and a weekend as an interval; empty where it is not clear."""
    words, text, kind = _LANGUAGES[language], found[0].casefold(), str(found.lastgroup)
    if kind.startswith("day"):
        return (said + timedelta(list(words.days.values())[int(kind[3:])])).isoformat()
    if kind in ("ago", "later"):
        count = _count(language, text)
        unit = next(days for pattern, days in _UNITS[language] if pattern.search(text))
        if not count:
            return ""
        return (said + timedelta(count * unit * (1 if kind == "later" else -1))).isoformat()
    side, today = int(kind[4:]) - 1, said.weekday()
    weekday = next((at for at, each in enumerate(_WEEKDAYS[language]) if each.search(text)), None)
    if weekday is not None:
        if language == "ja":  # 来週の金曜日 is the Friday of the week after, whatever day it is
            return (said + timedelta(7 * side - today + weekday)).isoformat()
        if side == 1 and weekday > today:
            return ""
        ahead = (weekday - today) % 7
        days = {-1: ahead - 7, 0: ahead, 1: ahead or 7}[side]
        return (said + timedelta(days)).isoformat()
    span = next(name for name in ("weekend", "week", "month", "year") if _SPANS[language][name].search(text))
    begin = beginning(span, said, side)
    if span in ("year", "month"):
        return begin
    return f"{begin}/{(date.fromisoformat(begin) + timedelta(1 if span == 'weekend' else 6)).isoformat()}"


def beginning(span: str, said: date, side: int) -> str:
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


def _count(language: str, text: str) -> int:
    """Return the number of "3 days ago", also in words; 0 for "many"."""
    if digits := _DIGITS.search(text):
        return int(digits[0])
    found = _WORD.findall(text) if language != "ja" else list(text)
    for value, forms in enumerate(_COUNTS[language].split("|"), 1):
        if any(form in found for form in forms.split()):
            return value
    return 0
