"""The numbers that a text says, in digits and in words of seven languages. Pure.

A number is read in every way it may be meant: `1,234` is 1234 or 1.234, and "thirty-four" says 30, 4 and 34.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from memory.text import fold

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
_FURTHER_WORDS: Final = """
| 1 once first eine einen eins una uno une erste ersten primero primera premier première
| 2 twice both couple pair twins twin second zweimal beide paar zwillinge ambos gemelos gemelas jumeaux zwo segundo
| 3 thrice third dritte dritten tercero | 4 fourth | 5 fifth | 6 sixth | 7 seventh siebte siebten
| 8 eighth achte achten | 9 ninth | 10 tenth | 11 eleventh | 12 dozen twelfth noon midnight dutzend docena
| 15 quarter | 20 twentieth zwanzigste zwanzigsten | 21 veintiuno | 22 veintidós | 23 veintitrés | 24 veinticuatro
| 25 veinticinco | 26 veintiséis | 27 veintisiete | 28 veintiocho | 29 veintinueve | 30 thirtieth half halb
"""
_SCALE_WORDS: Final = """
| 100 hundred hundert cien ciento cent cento honderd | 1000 thousand k grand tausend mille mil duizend
| 1000000 million millionen millones millions m mio | 1000000000 billion
"""
_JOINING: Final = frozenset({"and", "und", "y", "et", "e", "en"})
_IDEOGRAPHS: Final = {char: value for value, char in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "両": 2}
_IDEOGRAPHIC_SCALES: Final = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "億": 10**8, "亿": 10**8}


def _counted(table: str) -> list[tuple[str, int]]:
    """Return words with what they count, of a table in which words follow their number."""
    return [(word, int(value)) for value, *words in map(str.split, table.split("|")[1:]) for word in words]


_SCALES: Final = MappingProxyType(dict(_counted(_SCALE_WORDS)))


def _table() -> dict[str, frozenset[int]]:
    """Return what a folded word may count; a word of two languages ("once") may count both."""
    counted = _counted(_FURTHER_WORDS)
    for text in _SMALL.values():
        counted += [(word, value) for value, word in enumerate(text.split())]
    for text in _TENS.values():
        for value, word in enumerate(text.split(), 2):
            counted += [(word, value * 10), (f"{fold(word)[:-1]}ies", value * 10)]  # "in my thirties"
    for value, word in enumerate(_SMALL["de"].split()):
        counted += [(word + ending, value) for ending in ("te", "ten", "ter", "tes")]
    for language, joint in (("de", "und"), ("nl", "en")):  # "vierunddreißig", "vierendertig"
        for unit, first in enumerate(_SMALL[language].split()[1:10], 1):
            counted += [(first + joint + last, ten * 10 + unit) for ten, last in enumerate(_TENS[language].split(), 2)]
    found: dict[str, set[int]] = {}
    for word, value in counted:
        found.setdefault(fold(word), set()).add(value)
    return {word: frozenset(values) for word, values in found.items()}


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
_LONG: Final = 40  # digits of the longest number that is read: Python refuses to convert more than 4,300


def numbers(text: str) -> frozenset[str]:
    """Return every number that a text may be read to say, in digits without leading zeros."""
    plain = unicodedata.normalize("NFKC", text)
    tokens = _TOKEN.findall(plain)
    found = set(_in_words([fold(token) for token in tokens]))
    for token in tokens:
        if token[0].isdigit():
            found.update(_wholes(token), map(_bare, _RUN.findall(token)))
    found.update(_bare("".join(_RUN.findall(spaced))) for spaced in _SPACED.findall(plain))
    for run in _IDEOGRAPHIC.findall(plain):
        found.add(str(_ideographic(run[:_LONG])))
        found.update(str(_IDEOGRAPHS[char]) for char in run if char in _IDEOGRAPHS)
    folded = plain.casefold()
    found.update(str(int(hour) % 12 + 12) for hour in _AFTERNOON.findall(folded))
    found.update(str(int(hour) - 12) for hour in _CLOCK.findall(folded))
    found.update(century + "".join(short) for short in _SHORT_YEAR.findall(folded) for century in ("19", "20"))
    return frozenset(found)


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
            if any(start <= found.start() < end for start, end in spoken):
                continue
            # The parts of 7:30 are said by "half past seven"; those of 15,000 are no numbers of their own.
            runs = _RUN.findall(found[0])
            has_thousands = any(len(run) == 3 for run in runs[1:])
            parts = () if has_thousands else (_bare(run) for at, run in enumerate(runs) if at == 0 or run != "00")
            yield found[0], frozenset(_wholes(found[0])), frozenset(parts)
        elif fold(found[0]) in _PLAIN.get(language, frozenset()):
            values = frozenset(map(str, _VALUES[fold(found[0])]))
            yield found[0], values, values


def _in_words(tokens: list[str]) -> Iterator[str]:
    """Yield what words say: each for itself, "thirty four" as a sum, "two hundred" and "15 k" as a product."""

    def value(token: str) -> frozenset[int]:
        if token.isdecimal():
            return frozenset({int(token)}) if len(token) <= _LONG else frozenset()
        return _VALUES.get(token, frozenset())

    values = list(map(value, tokens))
    for each in values:
        yield from map(str, each)
    apart = zip(values, tokens[1:], values[2:], strict=False)
    near = [*pairwise(values), *((first, last) for first, word, last in apart if word in _JOINING)]
    for tens, units in near:
        yield from (str(ten + unit) for ten in tens for unit in units if 0 < unit < 10 <= ten and ten % 10 == 0)
    for each, scale in zip(values, tokens[1:], strict=False):
        yield from (str(one * _SCALES[scale]) for one in each if scale in _SCALES)
    yield from (str(_SCALES[token]) for token in tokens if len(token) > 1 and token in _SCALES)


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


def _bare(digits: str) -> str:
    return unicodedata.normalize("NFKC", digits).lstrip("0") or "0"
