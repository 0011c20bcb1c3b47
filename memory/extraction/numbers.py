"""Which numbers a text says, as digits or in words, so that one that nobody said is known. Pure.

A number is read in every way it may be meant: `1,234` is 1234 or 1.234, and "thirty-four" says 30, 4 and 34.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

_SMALL: Final = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen",
    "de": "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn neunzehn",
    "es": "cero un dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
    "diecisiete dieciocho diecinueve",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept "
    "dix-huit dix-neuf",
    "it": "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
    "diciassette diciotto diciannove",
    "pt": "zero um dois três quatro cinco seis sete oito nove dez onze doze treze quatorze quinze dezesseis dezessete "
    "dezoito dezenove",
    "nl": "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien "
    "zeventien achttien negentien",
}
_TENS: Final = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "fr": "vingt trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix",
    "it": "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "pt": "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
    "nl": "twintig dertig veertig vijftig zestig zeventig tachtig negentig",
}
_FURTHER: Final = {
    "once": 1, "twice": 2, "thrice": 3, "both": 2, "couple": 2, "pair": 2, "twins": 2, "twin": 2, "dozen": 12,
    "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
    "eleventh": 11, "twelfth": 12, "twentieth": 20, "thirtieth": 30, "first": 1, "noon": 12, "midnight": 12,
    "quarter": 15, "half": 30, "halb": 30, "eine": 1, "einen": 1, "eins": 1, "zweimal": 2, "beide": 2, "paar": 2,
    "zwillinge": 2, "dutzend": 12, "una": 1, "uno": 1, "une": 1, "ambos": 2, "gemelos": 2, "gemelas": 2, "jumeaux": 2,
    "docena": 12, "veintiuno": 21, "veintidós": 22, "veintitrés": 23, "veinticuatro": 24, "veinticinco": 25,
    "veintiséis": 26, "veintisiete": 27, "veintiocho": 28, "veintinueve": 29, "zwo": 2, "erste": 1, "ersten": 1,
    "dritte": 3, "dritten": 3, "siebte": 7, "siebten": 7, "achte": 8, "achten": 8, "zwanzigste": 20, "zwanzigsten": 20,
    "primero": 1, "primera": 1, "segundo": 2, "tercero": 3, "premier": 1, "première": 1,
}  # fmt: skip
_SCALES: Final = {
    "hundred": 100, "thousand": 1000, "k": 1000, "grand": 1000, "million": 10**6, "billion": 10**9, "hundert": 100,
    "tausend": 1000, "mille": 1000, "mil": 1000, "cien": 100, "ciento": 100, "cent": 100, "cento": 100, "honderd": 100,
    "duizend": 1000, "millionen": 10**6, "millones": 10**6, "millions": 10**6, "m": 10**6, "mio": 10**6,
}  # fmt: skip
_JOINING: Final = frozenset({"and", "und", "y", "et", "e", "en"})
_IDEOGRAPHS: Final = {char: value for value, char in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "両": 2}
_IDEOGRAPHIC_SCALES: Final = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "億": 10**8, "亿": 10**8}


def fold(text: str) -> str:
    """Return text as it compares without case, accents and width: "Sørensen" as "sorensen"."""
    if text.isascii():  # the same, faster
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return "".join(char for char in plain if not unicodedata.combining(char)).translate(_LETTERS)


_LETTERS: Final = str.maketrans(
    {"ø": "o", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "\u0131": "i"}
)


def _table() -> dict[str, frozenset[int]]:
    """Return what a folded word may count; a word of two languages ("once") may count both."""
    found: dict[str, set[int]] = {}
    for text in _SMALL.values():
        for value, word in enumerate(text.split()):
            found.setdefault(fold(word), set()).add(value)
    for text in _TENS.values():
        for value, word in enumerate(text.split(), 2):
            for form in (fold(word), f"{fold(word)[:-1]}ies"):  # "in my thirties"
                found.setdefault(form, set()).add(value * 10)
    for word, value in _FURTHER.items():
        found.setdefault(fold(word), set()).add(value)
    for value, word in enumerate(_SMALL["de"].split()):
        for ending in ("te", "ten", "ter", "tes"):
            found.setdefault(fold(word + ending), set()).add(value)
    for units in (_SMALL["de"], _SMALL["nl"]):
        _compound(found, units.split()[1:10], "und" if units is _SMALL["de"] else "en", units)
    return {word: frozenset(values) for word, values in found.items()}


def _compound(found: dict[str, set[int]], units: list[str], joint: str, which: str) -> None:
    """Add "vierunddreißig" and "vierendertig"."""
    tens = _TENS["de" if which is _SMALL["de"] else "nl"].split()
    for unit, first in enumerate(units, 1):
        for ten, last in enumerate(tens, 2):
            found.setdefault(fold(first + joint + last), set()).add(ten * 10 + unit)


_VALUES: Final = _table()
# Words that say a number and nothing else, by language; "one", "once" and "sei" also say other things.
_PLAIN: Final = {
    language: frozenset(fold(word) for word in [*small.split()[2:], *_TENS[language].split()])
    - frozenset({"neuf", "six", "due", "sei", "once", "acht", "mille"})
    for language, small in _SMALL.items()
}
_TOKEN = re.compile(r"\d+(?:[.,:'\u2019\u00a0\u202f/]\d+)*|[^\W\d_]+")
_IDEOGRAPHIC = re.compile(f"[{''.join(_IDEOGRAPHS)}{''.join(_IDEOGRAPHIC_SCALES)}]+")
_RUN = re.compile(r"\d+")
_SPACED = re.compile(r"(?<!\d)\d++(?:[ \u00a0\u202f-]\d++)+")
_AFTERNOON = re.compile(r"(?<!\d)(\d{1,2})(?:[:.]\d\d)?\s?(?:p\.?m\b|in the (?:afternoon|evening)|uhr (?:nach|ab))")
_CLOCK = re.compile(r"(?<!\d)(1[3-9]|2[0-3])(?:[:.h]\d\d|\s?uhr|\s?h\b)")
_SHORT_YEAR = re.compile(r"['\u2019](\d\d)(?!\d)|(?<!\d)(\d\d)['\u2019]?s\b|(?<!\d)\d{1,2}[./]\d{1,2}[./](\d\d)(?!\d)")
_LONG: Final = 40


def numbers(text: str) -> frozenset[str]:
    """Return every number that a text may be read to say, in digits without leading zeros."""
    return frozenset(_all(text))


def mentions(text: str, language: str = "en") -> Iterator[tuple[str, frozenset[str], frozenset[str]]]:
    """Yield each number of a text: as it is written, the ways to read it as a whole, and its parts.

    A number in words counts where its word says nothing else in that language (`en`, `de`, `es` …).
    """
    plain = unicodedata.normalize("NFKC", text)
    for found in _SPACED.finditer(plain):
        if len(found[0]) <= _LONG:
            runs = _RUN.findall(found[0])
            yield found[0], frozenset({_bare("".join(runs))}), frozenset(map(_bare, runs))
    spoken = {found.span() for found in _SPACED.finditer(plain)}
    for found in _TOKEN.finditer(plain):
        if found[0][0].isdigit():
            if not any(start <= found.start() < end for start, end in spoken):
                yield found[0], frozenset(_wholes(found[0])), frozenset(_parts(found[0]))
        elif fold(found[0]) in _PLAIN.get(language, frozenset()):
            values = frozenset(map(str, _VALUES[fold(found[0])]))
            yield found[0], values, values


def _all(text: str) -> Iterator[str]:
    plain = unicodedata.normalize("NFKC", text)
    tokens = _TOKEN.findall(plain)
    for token in tokens:
        if token[0].isdigit():
            yield from _wholes(token)
            yield from map(_bare, _RUN.findall(token))
    for found in _SPACED.findall(plain):
        yield _bare("".join(_RUN.findall(found)))
    yield from _in_words([fold(token) for token in tokens])
    for run in _IDEOGRAPHIC.findall(plain):
        yield str(_ideographic(run[:_LONG]))
        yield from (str(_IDEOGRAPHS[char]) for char in run if char in _IDEOGRAPHS)
    yield from _times_and_years(plain.casefold())


def _times_and_years(plain: str) -> Iterator[str]:
    for found in _AFTERNOON.findall(plain):
        yield str(int(found) % 12 + 12)
    for found in _CLOCK.findall(plain):
        yield str(int(found) - 12)
    for short in _SHORT_YEAR.findall(plain):
        digits = "".join(short)
        yield from (f"19{digits}", f"20{digits}")


def _in_words(tokens: list[str]) -> Iterator[str]:
    """Yield what words say: each for itself, "thirty four" as a sum, "two hundred" and "15 k" as a product."""
    values = [_value(token) for token in tokens]
    for each in values:
        yield from map(str, each)
    apart = zip(values, tokens[1:], values[2:], strict=False)
    near = [*pairwise(values), *((first, last) for first, word, last in apart if word in _JOINING)]
    for tens, units in near:
        yield from (str(ten + unit) for ten in tens for unit in units if 0 < unit < 10 <= ten and ten % 10 == 0)
    for each, scale in zip(values, tokens[1:], strict=False):
        yield from (str(one * _SCALES[scale]) for one in each if scale in _SCALES)
    yield from (str(_SCALES[token]) for token in tokens if len(token) > 1 and token in _SCALES)


def _value(token: str) -> frozenset[int]:
    if token.isdecimal():
        return frozenset({int(token)}) if len(token) <= _LONG else frozenset()
    return _VALUES.get(token, frozenset())


def _ideographic(run: str) -> int:
    """Return what Chinese and Japanese numerals say: `_ideographic("三十四") == 34`."""
    total = section = digit = 0
    for char in run:
        if char in _IDEOGRAPHS:
            digit = digit * 10 + _IDEOGRAPHS[char]
            continue
        scale = _IDEOGRAPHIC_SCALES[char]
        if scale >= 10**4:
            total, section, digit = total + max(1, section + digit) * scale, 0, 0
        else:
            section, digit = section + max(1, digit) * scale, 0
    return total + section + digit


def _wholes(token: str) -> Iterator[str]:
    """Yield a number as a whole: `15,000` and `1.83` without what divides them, and with a decimal point."""
    runs = _RUN.findall(token)
    yield _bare("".join(runs))
    if len(runs) > 1:
        yield f"{_bare(''.join(runs[:-1]))}.{runs[-1].rstrip('0') or '0'}"


def _parts(token: str) -> Iterator[str]:
    """Yield the numbers that a token is made of, as hour and minutes; those of `15,000` are none for themselves."""
    runs = _RUN.findall(token)
    if not any(len(run) == 3 for run in runs[1:]):
        yield from (_bare(run) for at, run in enumerate(runs) if at == 0 or run != "00")


def _bare(digits: str) -> str:
    return unicodedata.normalize("NFKC", digits).lstrip("0") or "0"
