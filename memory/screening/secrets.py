"""Keys, passwords, spoken passphrases and payment cards in a text. Pure.

The detectors for secrets that exist are made for source code: they need files, and take names for keys. Here a
sentence is judged, so the rules are few and each wants a form that ordinary sentences do not have.
"""

import re
from typing import Final

_KEY_FORMS: Final = (
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\b(?:gh[pousr]_|github_pat_|glpat-|npm_|hf_|xox[abprs]-|pypi-)[A-Za-z0-9_-]{16,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bAIza[0-9A-Za-z_-]{30,}",
    r"\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}",
    r"(?<![\w-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+",
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----",
    r"://[^\s/:@]{1,200}:[^\s/@]{1,200}@",
)
_KEY = re.compile("|".join(_KEY_FORMS))
_NAMES: Final = (
    r"pass(?:word|code|phrase|wd)|pwd|passwort|kennwort|mot de passe|contraseña|senha|wachtwoord|пароль|密码|"
    r"api[ _-]?key|secret[ _-]?key|access[ _-]?(?:key|token)|auth[ _-]?token|private[ _-]?key|security code|cvv|"
    r"(?:seed|recovery|secret) phrase"
)
_FOR: Final = r"(?: (?:for|to|of|on|pour|für|de)(?: [^\s.:=]{1,40}){1,6}?)?"
_IS: Final = r" ?(?:\bis\b|\bwas\b|\bare\b|\breads?\b|\bwould be\b|\bwill be\b|\bist\b|\best\b|\bes\b|\bé\b|:|=|是|:)"
_NAMED = re.compile(rf"(?:{_NAMES}){_FOR}{_IS} ?[\"'`“]?(?P<value>[^.!?;\n\"”`]{{1,200}})", re.IGNORECASE)
_SET_TO = re.compile(
    rf"\b(?:set|sets|changed?|changes|reset|resets|updated?)(?: [\w']{{1,40}}){{0,4}}? (?:{_NAMES}){_FOR} to "
    r"(?P<value>[^.!?;,\n]{1,200})",
    re.IGNORECASE,
)
_WITH = re.compile(
    rf"\b(?:log|logs|logged|login|sign|signs|signed|unlock|unlocks|unlocked|opens?)"
    rf"(?: [\w']{{1,40}}){{0,4}}? with (?:[\w']{{1,12}} )?"
    rf"(?:{_NAMES}) (?P<value>[^.!?;,\n]{{1,200}})",
    re.IGNORECASE,
)
_AS_ONE = re.compile(
    rf"\b(?:uses?|using|chose|picked|set|has)(?P<value>(?: [^\s.!?;,]{{1,60}}){{1,6}}?) as (?:[\w']{{1,12}} )?"
    rf"(?:[\w']{{1,20}} )?(?:{_NAMES})\b(?! (?:manager|vault|generator))",
    re.IGNORECASE,
)
_CODE_NAME: Final = (
    r"\bpin(?: (?:code|number))?|\b(?:alarm|door|gate|garage|access|entry|lock|safe|security|vault|house|key) ?code|"
    r"\bcombination"
)
_NUMBER_WORDS: Final = "zero|oh|one|two|three|four|five|six|seven|eight|nine|ten|double|triple"
_CODE = re.compile(
    rf"(?:{_CODE_NAME})(?: \w{{1,40}}){{0,5}}? ?(?:is|are|was|:|=) ?"
    rf"(?:\d(?:[ -]?\d){{3,7}}\b|(?:(?:{_NUMBER_WORDS})[ -]){{2,9}}(?:{_NUMBER_WORDS})\b)",
    re.IGNORECASE,
)
_CARD = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.]{0,40}\d)")
_DENSE = re.compile(r"[A-Za-z0-9_+/=-]{24,}")
_LONGEST_PHRASE: Final = 24
# What is said about a password without saying it.
_ABOUT_WORDS: Final = """
    a an the not no too very always never now still stored kept saved managed weak strong long short expired wrong
    lost old new safe secret required needed unknown being in on something that what changed different same
    difficult easy hard important broken my his her their your our its at by with to of for from than but and or which
    who if because only also already often again every each all any both shared written known given used set reused
    one random four three five six many word words character characters letter letters digit digits number numbers
    symbol symbols phrase it they this these those there be been can could should must has have had do does manager
    reset policy policies generator hint field leaked stolen compromised fine ok okay outdated simple complicated
    good bad unsafe insecure
"""
_ABOUT: Final = frozenset(_ABOUT_WORDS.split())


def holds_secret(text: str) -> bool:
    """Say whether a text on one line holds a key, a password, a passphrase, a code or a payment card's number."""
    return bool(_KEY.search(text) or _CODE.search(text)) or _names_one(text) or _has_card(text) or _has_dense(text)


def _names_one(text: str) -> bool:
    forms = (_NAMED, _SET_TO, _WITH, _AS_ONE)
    return any(_is_value(found["value"]) for form in forms for found in form.finditer(text))


def _is_value(value: str) -> bool:
    """Say whether words are a password themselves: one with a sign in it, or words that say nothing about one."""
    words = [word.strip("\"'`\u201c\u201d,()") for word in value.split()]
    words = [word for word in words if word]
    while words and words[0].casefold() in ("now", "currently", "still", "actually"):
        words = words[1:]
    if not words or len(words) > _LONGEST_PHRASE:
        return False
    first = words[0].replace("'", "").replace("\u2019", "")
    if any(char.isdigit() or not char.isalnum() for char in first):
        return True
    return not any(word.casefold() in _ABOUT for word in words)


def _has_card(text: str) -> bool:
    return any(_passes_luhn([int(char) for char in found[0] if char.isdigit()]) for found in _CARD.finditer(text))


def _passes_luhn(digits: list[int]) -> bool:
    """Check the last digit by Luhn's algorithm (ISO/IEC 7812-1, annex B), which every payment card number passes."""
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(doubled) + sum(digits[::-2])) % 10 == 0 and len(set(digits)) > 1


def _has_dense(text: str) -> bool:
    """Find what only a machine writes: long, without spaces, of small and capital letters and digits mixed."""
    return any(
        any(map(str.islower, token)) and any(map(str.isupper, token)) and sum(map(str.isdigit, token)) >= 3
        for token in _DENSE.findall(text)
        if "/" not in token
    )
