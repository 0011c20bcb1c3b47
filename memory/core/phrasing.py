"""How a fact is worded: what is no fact at all, and the first person of the user's that models leave standing. Pure."""

import re
from typing import Final

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
