"""Whether a text holds as a fact: worded as one, and its names, numbers and dates said by the user. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final, Self

from memory.extraction.calendar import Calendar, ages, unsaid_date, without_dates
from memory.extraction.days import with_dates
from memory.extraction.names import Vocabulary, language_of, unsaid_name
from memory.extraction.numbers import mentions, numbers
from memory.text import normalize, word_set

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
_TALK: Final = word_set("""
    hi hello hey there good morning afternoon evening night day thanks thank thx you so very much a lot many again bye
    goodbye see later cheers dear and for the your help tip tips info answer all
    hallo guten tag morgen abend danke dir ihnen schön sehr vielen dank tschüss servus moin
    hola buenos buenas días tardes noches gracias muchas adiós bonjour bonsoir salut merci beaucoup au revoir
    ciao buongiorno grazie mille olá obrigado obrigada dag hoi bedankt dank je wel
    привет здравствуйте спасибо こんにちは ありがとう ありがとうございます おはよう 你好 谢谢 您好 谢谢你
""")
# Beside one of those only: "it is" alone may be an answer.
_BESIDE_TALK: Final = _TALK | word_set("""
    that this it is was really useful helpful
    für deine ihre die den hilfe das es hilft mir weiter ist war hat geholfen nützlich hilfreich nochmal nochmals lieben
    mil por tu su la ayuda de todo todos eso esto me sirve ayudado mucho muy útil ha sido otra vez
    pour ton ta votre l aide c est était ça cela m aidé bien très utile encore fois infiniment il tuo aiuto molto
    muito muita mesmo pela pelo ajuda sua isso isto é foi ajudou
    большое огромное за помощь это очень полезно помогло мне вам тебе ещё раз
""")
_TALK_UNSPACED = re.compile(
    r"(?:助けて|手伝って|教えて|くれて|いただいて|いただき|本当に|ほんとうに|どうも|とても|すごく|役に立ちました|助かりました|"
    r"ありがとう|ございます|ございました|おかげで|です|ね|よ)+"
)
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
    is_talk = any(word in _TALK or "ありがとう" in word for word in words)
    return is_talk and all(word in _BESIDE_TALK or _TALK_UNSPACED.fullmatch(word) for word in words)


def in_third_person(text: str) -> str:
    """Return a fact with "the user's sister" for "my sister"; quoted words stay, and what cannot be turned safely."""
    if not _ENGLISH.search(text):
        return text

    def turned(found: re.Match[str]) -> str:
        before = found.string[: found.start()].split()[-1:]
        # "World War I", "Queen Me": behind a word with a capital letter it is a title's.
        is_title = bool(before) and found[0][0] in "IM" and before[0][0].isupper()
        return found[0] if is_title else _THIRD_PERSON[str(found.lastgroup)]

    quoted = [*_QUOTED.findall(text), ""]
    parts = [_FIRST_PERSON.sub(turned, part) for part in _QUOTED.split(text)]
    if any(_SELF.search(part) for part in parts):  # "I went …, she came with me": half of it would be worse
        return text
    whole = "".join(part + quote for part, quote in zip(parts, quoted, strict=True))
    return f"User{whole.removeprefix('the user')}" if whole.startswith("the user") and whole != text else whole


# Names in a list; of two to six things of one kind the number may be counted from them: "two cats, Biscuit and Mog".
_LISTED = re.compile(r"(?:(?<=, )|(?<=and )|(?<=und )|(?<=y )|(?<=: ))[^\W\d_]\w*")
_COUNTED: Final = range(2, 7)


@dataclass(frozen=True, slots=True)
class Grounds:
    """What the names, numbers and dates of a text may come from."""

    said: Vocabulary
    numbers: frozenset[str]
    calendar: Calendar

    @classmethod
    def of(cls, messages: Iterable[tuple[str, date | None]]) -> Self:
        """Return what messages give, each with the day that it is relative to."""
        own = list(messages)
        meant, said = Calendar(), set[str]()
        for text, day in own:
            found = Calendar.of(text, day)
            meant = meant.joined(found)
            said |= numbers(text) | found.years
            said |= numbers(with_dates(text, day)) | ages(found.years, day) if day else set()
        return cls(Vocabulary.of(text for text, _ in own), frozenset(said), meant)

    def lent(self, *, names: Sequence[str] = (), all_of: Sequence[str] = ()) -> Self:
        """Return these grounds with the names of further texts, and with all of others."""
        given = Grounds.of((text, None) for text in all_of)
        return replace(
            self,
            said=self.said.joined(Vocabulary.of([*names, *all_of])),
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
    if found := unsaid_date(text, grounds.calendar, grounds.said):
        return found
    language = language_of(text, *others)
    unnamed, undated = without_dates(text)
    listed = len(_LISTED.findall(unnamed))
    counted = {str(listed)} if listed in _COUNTED else set()
    # Where nothing tells the language, English number words count: most models write English facts.
    for written, wholes, parts in mentions(undated, language or "en"):
        if wholes.isdisjoint(grounds.numbers | counted) and not (parts and parts <= grounds.numbers):
            return written
    return unsaid_name(unnamed, grounds.said, language)
