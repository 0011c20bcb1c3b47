"""Keys and payment cards in a text, by their own form. Pure.

The detectors for secrets that exist are made for source code: they need files, and take names for keys. Here a
sentence is judged, so the rules are few and each wants a form that ordinary sentences do not have. What is told of a
password, a code or a passphrase is for the judge of secrets.
"""

import re
from typing import Final

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
# What goes on with more digits than a card number may have (ISO/IEC 7812-1) is something else.
_CARD = re.compile(r"(?<![\d.])\d(?:[ -]?\d){13,18}(?![\d.]{0,40}\d)")
# Who issues cards with which first digits, and with how many digits in all: Visa, Mastercard, American Express,
# Discover, Diners Club, JCB, UnionPay, Maestro.
_ISSUED = re.compile(
    r"4(?:\d{15}|\d{18})|(?:5[1-5]|2(?:2[3-9]|[3-6]\d|7[01]))\d{14}|222[1-9]\d{12}|2720\d{12}|3[47]\d{13}|"
    r"6(?:011|4[4-9]\d|5\d\d)\d{12,15}|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}|"
    r"(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{12,15}"
)
_LEAST_DIGITS: Final = 3
_DENSE = re.compile(r"[A-Za-z0-9_+/=-]{24,}")
_WORD = re.compile("[!-~]+")
# A year or a day, an hour, a part of a range, an amount of money, "6-sided".
_QUANTITY = re.compile(
    r"\W{0,3}(?:(?:19|20)\d\d(?:-\d{2,4}){0,2}|\d\d?[:-]\d\d?|[$€£][\d.,]{1,9}|\d\d?(?:-[a-z]{1,9}){1,2})\W{0,3}"
)


def is_known_secret(text: str) -> bool:
    """Say whether a text on one line holds what has the form of a secret and of nothing else: a key, a card number."""
    return _KEY.search(text) is not None or any(map(_is_card, _CARD.findall(text)))


def _is_card(number: str) -> bool:
    """Check the issuer, the length, and the last digit by Luhn's algorithm (ISO/IEC 7812-1, annex B)."""
    digits = [int(char) for char in number if char.isdigit()]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(doubled) + sum(digits[::-2])) % 10 == 0 and _ISSUED.fullmatch("".join(map(str, digits))) is not None


def is_made_by_machine(text: str) -> bool:
    """Say whether a text has a key without a name: a long word of small and capital letters and digits, and no path."""
    return any(
        any(map(str.islower, token))
        and any(map(str.isupper, token))
        and "/" not in token
        and sum(map(str.isdigit, token)) >= _LEAST_DIGITS
        for token in _DENSE.findall(text)
    )


def values_in(told: str) -> list[str]:
    """Return the words with digits in what was told of a secret; an address, a time and a quantity are none."""
    words = (each for each in _WORD.findall(told) if any(map(str.isdigit, each)))
    return [each for each in words if not ("@" in each or "://" in each or _QUANTITY.fullmatch(each))]
