"""Keys, passwords, spoken passphrases and payment cards in a text. Pure.

The detectors for secrets that exist are made for source code: they need files, and take names for keys. Here a
sentence is judged, so the rules are few and each wants a form that ordinary sentences do not have. What names the
secret that it found is known for one; what only speaks of one is suspected, and a person decides.
"""

import re
from typing import Final

from memory.text import word_set

# The prefixes of OpenAI and Anthropic; GitHub, GitLab, npm, Hugging Face, Slack, PyPI; AWS; Google; Stripe; a JSON Web
# Token; a private key in PEM; and a password within an address.
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
# Repetitions are bounded here and below, so that no text is read longer than in linear time.
_FOR: Final = r"(?: (?:for|to|of|on|pour|für|de)(?: [^\s.:=]{1,40}){1,6}?)?"
_IS: Final = r" ?(?:\bis\b|\bwas\b|\bare\b|\breads?\b|\bwould be\b|\bwill be\b|\bist\b|\best\b|\bes\b|\bé\b|:|=|是|:)"
_NAMED = re.compile(rf"(?:{_NAMES}){_FOR}{_IS} ?[\"'`“]?(?P<value>[^.!?;\n\"”`]{{1,200}})", re.IGNORECASE)
# A code needs digits, or numbers in words, behind its name: "the combination is unusual" tells none.
_CODES: Final = (
    r"\bpin (?:code|number)|\b(?:alarm|door|gate|garage|access|entry|lock|safe|security|vault|house|key) ?code"
)
_CODE_NAME: Final = rf"{_CODES}|\bpin|\bcombination"
_NUMBER_WORDS: Final = "zero|oh|one|two|three|four|five|six|seven|eight|nine|ten|double|triple"
_CODE = re.compile(
    rf"(?:{_CODE_NAME})(?: \w{{1,40}}){{0,5}}? ?(?:is|are|was|:|=) ?"
    rf"(?:\d(?:[ -]?\d){{3,7}}\b|(?:(?:{_NUMBER_WORDS})[ -]){{2,9}}(?:{_NUMBER_WORDS})\b)",
    re.IGNORECASE,
)
# What goes on with more digits than a card number may have (ISO/IEC 7812-1) is something else.
_CARD = re.compile(r"(?<![\d.])\d(?:[ -]?\d){13,18}(?![\d.]{0,40}\d)")
# Who issues cards with which first digits, and with how many digits in all: Visa, Mastercard, American Express,
# Discover, Diners Club, JCB, UnionPay, Maestro.
_ISSUED = re.compile(
    r"4(?:\d{15}|\d{18})|(?:5[1-5]|2(?:2[3-9]|[3-6]\d|7[01]))\d{14}|222[1-9]\d{12}|2720\d{12}|3[47]\d{13}|"
    r"6(?:011|4[4-9]\d|5\d\d)\d{12,15}|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}|"
    r"(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{12,15}"
)
# A word with the form of a password: letters with digits, or with a sign.
_FORMED = re.compile(r"(?<!\S)[^\W\d_](?=\S{0,60}\d)\S{5,60}|[^\W\d_]{2,40}[!#$%&*?_][^\W\d_]\S{0,40}")
_BESIDE: Final = 60  # so many characters at most stand between a password's name and such a word
_NAME = re.compile(rf"(?:{_NAMES})", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?;]\s|\u3002")
_DENSE = re.compile(r"[A-Za-z0-9_+/=-]{24,}")
_LONGEST_PHRASE: Final = 24  # the longest seed phrase of a wallet (BIP 39)
# What is said about a password without saying it.
_ABOUT: Final = word_set("""
    a an the not no too very always never stored kept saved managed weak strong long short expired wrong
    lost old new safe secret required needed unknown being in on something that what changed different same
    difficult easy hard important broken my his her their your our its at by with to of for from than but and or which
    who if because only also already often again every each all any both shared written known given used set reused
    one random four three five six many word words character characters letter letters digit digits number numbers
    symbol symbols phrase it they this these those there be been can could should must has have had do does manager
    reset policy policies generator hint field leaked stolen compromised fine ok okay outdated simple complicated
    good bad unsafe insecure
""")


def is_known_secret(text: str) -> bool:
    """Say whether a text on one line holds what has the form of a secret and of nothing else: a key, a card number."""
    return _KEY.search(text) is not None or any(map(_is_card, _CARD.findall(text)))


def may_hold_secret(text: str) -> bool:
    """Say whether a text on one line names a password or a code with its value, or has a key without a name."""
    return (
        _CODE.search(text) is not None
        or any(_is_value(found["value"]) for found in _NAMED.finditer(text))
        # A word with the form of a password stands behind the name of one, in its sentence.
        or any(
            _FORMED.search(_SENTENCE_END.split(text[found.end() : found.end() + _BESIDE], maxsplit=1)[0])
            for found in _NAME.finditer(text)
        )
        or any(map(_is_made_by_machine, _DENSE.findall(text)))
    )


def _is_value(value: str) -> bool:
    """Say whether words are a password themselves: one with a sign in it, or words that say nothing about one."""
    words = [bare for word in value.split() if (bare := word.strip("\"'`\u201c\u201d,()"))]
    if not words or len(words) > _LONGEST_PHRASE:
        return False
    first = words[0].replace("'", "").replace("\u2019", "")
    # "hunter2", not "stored": a value that begins with a plain word is one only if it speaks of nothing else.
    return any(char.isdigit() or not char.isalnum() for char in first) or not any(
        word.casefold() in _ABOUT for word in words
    )


def _is_card(number: str) -> bool:
    """Check the issuer, the length, and the last digit by Luhn's algorithm (ISO/IEC 7812-1, annex B)."""
    digits = [int(char) for char in number if char.isdigit()]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(doubled) + sum(digits[::-2])) % 10 == 0 and _ISSUED.fullmatch("".join(map(str, digits))) is not None


def _is_made_by_machine(token: str) -> bool:
    """Say whether a long word has small and capital letters and digits mixed; a path has them in its parts."""
    has_both = any(map(str.islower, token)) and any(map(str.isupper, token))
    return has_both and "/" not in token and sum(map(str.isdigit, token)) >= 3
