"""Whether a text holds as a fact: worded as one, and its names, numbers and dates said by the user. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final, Self

from memory.extraction.days import MONTHS, WEEKDAYS, Calendar, ages, calendar, with_dates
from memory.extraction.names import SaidWords, language_of, unsaid_name
from memory.extraction.numbers import fold, mentions, numbers
from memory.text import normalize

_BLANKS: Final = (
    r"name|full name|first name|last name|city|town|country|place|location|address|date|day|month|year|age|number|"
    r"amount|company|employer|job|job title|title|person|friend|pet|hobby|food|language|email|phone|topic|item|reason|"
    r"unknown|unspecified|not specified|not mentioned|not provided|tbd|n/a|stadt|ort|datum|nombre|ciudad|fecha|ville"
)
_PLACEHOLDER = re.compile(
    r"[\[<{(]\s?(?:(?:your|user'?s?|the|insert|enter|some|specific)\s)?"
    rf"(?:{_BLANKS})(?:[ _-](?:here|name|s|\d{{1,2}}))?\s?[\]>}})]"
    r"|\[[A-Za-z_ ]{1,40}\]|<[A-Za-z_ ]{1,40}>|\{{1,2}[A-Za-z_ ]{1,40}\}"
    r"|_{3,}|\bX{2,}\b|\b[XYZ](?:['\u2019]s)?(?=[ .,]|$)|\blorem ipsum\b"
    r"|\b(?:is|are|was)\s(?:unknown|unspecified|n/a|tbd|not\s(?:known|specified|mentioned|provided|stated|given))\b"
)
_THANKS: Final = (
    r"(?:has\s)?(?:thanks?|thanked|is\sthanking|is\s(?:thankful|grateful)|appreciates|appreciated|expresse[sd]\s(?:thanks|"
    r"gratitude|appreciation)|says?\sthanks|bedankt\ssich|dankt|agradece|da\slas\sgracias|remercie|ringrazia)"
    r"(?:\s(?:to\s)?(?:you|(?:the\s)?(?:assistant|ai|bot|chatbot|helper)(?:['\u2019]s)?|beim\sassistenten|al\sasistente)\b.{0,200}"
    r"|\s(?:a\slot|very\smuch|again|so\smuch)|\sfor\s(?:the\s|your\s|all\s)?(?:help|tips?|info|information|advice|answers?|"
    r"suggestions?|recommendations?|assistance|explanation|support|reply|response|conversation|chat)\b.{0,80})?"
)
_GREETING: Final = (
    r"(?:says?|said|sends?|sagt)\s[\"'\u201c]?(?:hello|hi|hey|hallo|hola|bonjour|good\s(?:morning|afternoon|evening|day|night)|"
    r"goodbye|bye|thanks?|thank\syou|yes|no|okay|ok|greetings|welcome)\b[\"'\u201d]?"
    r"(?:\s(?:to\s)?(?:you|there|(?:the\s)?assistant|everyone))?"
    r"|(?:greets|greeted|is\sgreeting|begr\u00fc\u00dft|gr\u00fc\u00dft|saluda|salue)(?:\s.{0,80})?"
)
_SMALL_TALK = re.compile(
    rf"(?:(?:the\s|der\s|el\s|la\s|l')?(?:user|nutzer|usuario|utilisateur)\s)?(?:{_THANKS}|{_GREETING})"
)
_TALK_WORDS: Final = """
    hi hello hey there good morning afternoon evening night day thanks thank thx you so very much a lot many again bye
    goodbye see later cheers dear and for the your help tip tips info answer all
    hallo guten tag morgen abend danke dir ihnen schön sehr vielen dank tschüss servus moin
    hola buenos buenas días tardes noches gracias muchas adiós bonjour bonsoir salut merci beaucoup au revoir
    ciao buongiorno grazie mille olá obrigado obrigada dag hoi bedankt dank je wel
    привет здравствуйте спасибо こんにちは ありがとう ありがとうございます おはよう 你好 谢谢 您好 谢谢你
"""
_TALK: Final = frozenset(_TALK_WORDS.split())
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(
    r"\"[^\"]{0,200}\"|\u201c[^\u201d]{0,200}\u201d|\u201e[^\u201c]{0,200}\u201c|\u00ab[^\u00bb]{0,200}\u00bb|`[^`]{0,200}`"
)
_FIRST_PERSON = re.compile(
    r"(?<![\w'\u2019])(?:(?P<be>I am|I['\u2019]m)|(?P<was>I was)|(?P<have>I have|I['\u2019]ve)"
    r"|(?P<will>I will|I['\u2019]ll)|(?P<my>[Mm]y|our)(?=\s(?!god\b|goodness\b|bad\b|oh\b)[a-z])"
    r"|(?P<me>me)|(?P<self>myself))(?![\w'\u2019-])"
)
_THIRD_PERSON: Final = {
    "be": "the user is", "was": "the user was", "have": "the user has", "will": "the user will",
    "my": "the user's", "me": "the user", "self": "themselves",
}  # fmt: skip
_SELF = re.compile(r"(?<![\w'\u2019])I(?![\w-])")
# "My" and "me" are words of other languages too; these are English ones that they stand beside.
_ENGLISH = re.compile(
    r"\b(?:is|are|was|has|have|had|the|and|with|user|user's|lives|likes|wants|to|of|in)\b", re.IGNORECASE
)


def has_placeholder(text: str, said: str) -> bool:
    """Say whether a text has a blank where a name or a number should be, and nobody said that blank.

    Args:
        text: A fact, or a section of the profile.
        said: What the user said; a blank that stands there is meant.
    """
    return any(found[0].casefold() not in said.casefold() for found in _PLACEHOLDER.finditer(text))


def is_small_talk(text: str) -> bool:
    """Say whether a fact only tells that the user greeted or thanked."""
    return _SMALL_TALK.fullmatch(normalize(text)) is not None


def is_thanks_or_greeting(message: str) -> bool:
    """Say whether a message of the user has nothing in it but thanks and greetings."""
    words = _WORD.findall(normalize(message))
    return bool(words) and all(word in _TALK for word in words)


def in_third_person(text: str) -> str:
    """Return a fact with "the user's sister" for "my sister"; quoted words stay, and what cannot be turned safely."""
    if not _ENGLISH.search(text):
        return text
    quoted = [*_QUOTED.findall(text), ""]
    turned = [_FIRST_PERSON.sub(_turned, part) for part in _QUOTED.split(text)]
    if any(_SELF.search(part) for part in turned):  # "I went …, she came with me": half of it would be worse
        return text
    whole = "".join(part + mark for part, mark in zip(turned, quoted, strict=True))
    return f"User{whole.removeprefix('the user')}" if whole.startswith("the user") and whole != text else whole


def _turned(found: re.Match[str]) -> str:
    before = found.string[: found.start()].split()[-1:]
    is_title = bool(before) and (found[0][0] in "IM") and before[0][0].isupper()
    return found[0] if is_title else _THIRD_PERSON[str(found.lastgroup)]


_MONTH_NAMES: Final = frozenset(name for names in MONTHS for name in names)
_MONTH: Final = "|".join(sorted((name for name in _MONTH_NAMES if name.isalpha()), key=len, reverse=True))
_DATE = re.compile(
    r"(?<![\d.])(?:(?P<year>\d{4})[-/.](?P<month>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?"
    r"|(?P<first>\d{1,2})[./](?P<second>\d{1,2})[./](?P<last>\d{4}|\d\d))(?![\d.]*\d)"
    rf"|(?<![\w.])(?P<before>\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?:de\s|of\s)?(?P<name>{_MONTH})\b\.?(?:,?\s(?:de\s)?(?P<of>\d{{4}})(?!\d))?"
    rf"|(?<!\w)(?P<name_first>{_MONTH})\b\.?\s(?:(?P<after>\d{{1,2}})(?:st|nd|rd|th)?(?!\d),?\s?)?(?P<then>\d{{4}}(?!\d))?"
    r"|(?P<cjk_year>\d{4})年(?:(?P<cjk_month>\d{1,2})月)?(?:(?P<cjk_day>\d{1,2})日)?"
)
# "Segunda" and its like are weekdays in Portuguese only, and ordinals in Spanish too.
_WEEKDAY_NAMES: Final = frozenset(name for names in WEEKDAYS for name in names if name.isalpha()) - frozenset(
    {"segunda", "terca", "quarta", "quinta", "sexta"}
)
_LISTED = re.compile(r"(?:(?<=, )|(?<=and )|(?<=und )|(?<=y )|(?<=: ))[^\W\d_]\w*")
# So many of one thing may be counted from the names of each.
_COUNTED: Final = range(2, 7)
_SHORT: Final = 2


@dataclass(frozen=True, slots=True)
class Grounds:
    """What the names, numbers and dates of a text may come from."""

    said: SaidWords
    numbers: frozenset[str]
    calendar: Calendar

    @classmethod
    def of(cls, messages: Iterable[tuple[str, date | None]]) -> Self:
        """Return what messages give, each with the day that it is relative to."""
        own = list(messages)
        meant, said = Calendar(), set[str]()
        for text, day in own:
            found = calendar(text, day)
            meant = meant.joined(found)
            said |= numbers(text) | found.years
            said |= numbers(with_dates(text, day)) | ages(found.years, day) if day else set()
        return cls(SaidWords.of(text for text, _ in own), frozenset(said), meant)

    def lent(self, *, names: Sequence[str] = (), all_of: Sequence[str] = ()) -> Self:
        """Return these grounds with the names of further texts, and with all of others."""
        given = Grounds.of((text, None) for text in all_of)
        return replace(
            self,
            said=self.said.joined(SaidWords.of([*names, *all_of])),
            numbers=self.numbers | given.numbers,
            calendar=self.calendar.joined(given.calendar),
        )


def unsaid(text: str, grounds: Grounds, *others: str) -> str:
    """Return the first name, number or date of a text that nobody said; empty if there is none.

    Args:
        text: A fact, or a section of the profile.
        grounds: What was said.
        others: Texts that tell the language if the text itself does not: the messages it was taken from.
    """
    folded = fold(text)
    for found in _DATE.finditer(folded):
        if any(char.isdigit() for char in found[0]) and not _is_meant(found, grounds):
            return str(found[0])
    for word in _WORD.findall(text):
        if not _is_meant_name(fold(word), word != word.lower(), grounds):
            return str(word)
    language = language_of(text, *others)
    rest = _without_dates(text)
    for written, wholes, parts in mentions(_DATE.sub(" ", folded), language or "en"):
        is_said = bool(wholes & grounds.numbers) or bool(parts and parts <= grounds.numbers)
        if not is_said and not _is_counted(wholes, rest):
            return written
    return unsaid_name(rest, grounds.said, language)


def _parts(found: re.Match[str]) -> tuple[int | None, list[int], list[int]]:
    """Return year, months and days that a date may mean; `4.5.2026` is in April or in May."""
    if found["year"] or found["cjk_year"]:
        year, month, day = (found[each] or found[f"cjk_{each}"] for each in ("year", "month", "day"))
        return int(year), _whole(month), _whole(day)
    if found["last"]:
        either = [int(found["first"]), int(found["second"])]
        year = int(found["last"])
        return (year if len(found["last"]) > _SHORT else 2000 + year), either, either
    name, year = found["name"] or found["name_first"], found["of"] or found["then"]
    months = [at for at, names in enumerate(MONTHS, 1) if name in names]
    return (int(year) if year else None), months, _whole(found["before"] or found["after"])


def _whole(digits: str | None) -> list[int]:
    return [int(digits)] if digits else []


def _is_meant(found: re.Match[str], grounds: Grounds) -> bool:
    """Say whether a date, or what it is made of, was said, or is the day that a message means."""
    if found[0].strip() in grounds.said.text:
        return True
    year, months, days = _parts(found)
    return any(_is_day(year, month, day, grounds) for month in months or [0] for day in days or [0])


def _is_day(year: int | None, month: int, day: int, grounds: Grounds) -> bool:
    meant = grounds.calendar
    if year and (year, month, day) in _known(meant):
        return True
    has_month = not month or month in meant.months or str(month) in grounds.numbers
    has_day = not day or str(day) in grounds.numbers or any((d.month, d.day) == (month, day) for d in meant.days)
    has_year = year is None or str(year) in grounds.numbers or (year in meant.near and bool(month))
    return has_month and has_day and has_year


def _is_meant_name(word: str, has_capital: bool, grounds: Grounds) -> bool:
    """Say whether a word is no month and no weekday, or one that was meant."""
    if word in _WEEKDAY_NAMES:
        return any(word in names and at in grounds.calendar.weekdays for at, names in enumerate(WEEKDAYS))
    if not has_capital or word not in _MONTH_NAMES or word in grounds.said.words:
        return True  # "the user may move" is no month
    meant = grounds.calendar.months
    return any(word in names and (at in meant or str(at) in grounds.numbers) for at, names in enumerate(MONTHS, 1))


def _known(meant: Calendar) -> frozenset[tuple[int, int, int]]:
    """Return the days as year, month and day; also with 0 for a day, and for a month, that is left out."""
    return frozenset(
        each
        for day in meant.days
        for each in ((day.year, day.month, day.day), (day.year, day.month, 0), (day.year, 0, 0))
    )


def _without_dates(text: str) -> str:
    """Return a text without the names of months and days: they are judged as dates."""
    return _WORD.sub(lambda found: " " if _is_dated(found[0]) else found[0], text)


def _is_dated(word: str) -> bool:
    return word != word.lower() and fold(word) in _MONTH_NAMES | _WEEKDAY_NAMES


def _is_counted(wholes: frozenset[str], text: str) -> bool:
    """Say whether a small number counts the names in the text: "two cats, Biscuit and Mog"."""
    names = len(_LISTED.findall(text))
    return any(str(number) in wholes and number == names for number in _COUNTED)
