"""The door that every text passes before it may stand in a prompt: no secrets, and no orders. Pure.

Both are looked for in the same plain form of the text, in which nothing is hidden: compatible characters, look-alikes
and accents as plain letters, without characters that are not seen, without the signs of Markdown and HTML.
"""

import html
import json
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from memory.screening import secrets
from memory.screening.judge import Judge, order_features, secret_features, unpacked, value_features
from memory.text import normalize, one_line, sentences

JUDGES_FILE: Final = Path(__file__).with_name("judges.json")
_LEARNED: Final = json.loads(JUDGES_FILE.read_text("utf-8"))
ORDER_JUDGE: Final[Judge] = unpacked(_LEARNED["orders"])
SECRET_JUDGE: Final[Judge] = unpacked(_LEARNED["secrets"])

# A `secret` is known for one by its own form; a `suspected` one waits for a person, as what reads as an order does.
Verdict = Literal["secret", "suspected", "instruction_like"]

# Characters that no reader sees, but that part a word for every pattern: soft hyphens, joiners, fillers.
_UNSEEN = re.compile("[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u200b-\u200f\u2060-\u2064\u3164\ufe00-\ufe0f\ufeff\uffa0]")
# Tags by which prompts are put together: a text that holds one wants to be read as another part of the prompt.
_MARKUP = re.compile(
    r"</? ?(?:system|memory|instructions?|assistant|user|tool|im_start|im_end)\b|<\||\[/?inst\]|<<sys>>"
)
_OPENING: Final = 2
_LEAST_VALUE: Final = 4
# An answer of more words says itself what it is about.
_FEW_WORDS: Final = 6
# Letters one by one: "I G N O R E", also with dots or hyphens between them; wider gaps part the words. Four letters at
# least, as "U. S. A." is a name.
_SPACED = re.compile(r"(?<![^\W_])(?:[^\W\d_][ .-]){3,40}[^\W\d_](?![^\W_])")
_ON_LETTERS = re.compile("[\u0300-\u036f]")
_GAPS: Final = str.maketrans("", "", " .-")
_EMPHASIS: Final = str.maketrans("", "", "*_~`\\")
# Letters of Cyrillic and Greek that look like Latin ones.
_LOOK_ALIKES: Final = str.maketrans(
    "аеорсухіјѕһԁԛԝӏкмнтвɡοανιτκρυχεмı",
    "aeopcyxijshdqwlkmhtbgoavitkpuxemi",
)


def screened(text: str) -> Verdict | None:
    """Say why a text must not become memory by itself; `None` where nothing speaks against it."""
    return secrecy(text) or ("instruction_like" if is_instruction_like(text) else None)


@lru_cache(maxsize=4096)
def secrecy(text: str) -> Literal["secret", "suspected"] | None:
    """Say whether a text holds a key or a payment card's number, or may hold a password, a passphrase or a code."""
    line = compatible(text)
    if secrets.is_known_secret(line):
        return "secret"
    return "suspected" if secrets.is_made_by_machine(line) or SECRET_JUDGE.holds(secret_features(line)) else None


def secret_parts(text: str, *, is_reply: bool = False) -> list[str]:
    """Return the sentences of a text that may hold a secret; all of it where only several together do.

    Of what a model wrote, behind its first two sentences, values: of a long explanation some sentence reads like one
    about a secret, and tells none.
    """
    said = sentences(text)
    if not is_reply:
        return list(filter(secrecy, said)) or list(filter(secrecy, [text]))
    return [*filter(secrecy, said[:_OPENING]), *(value for part in said[_OPENING:] for value in _codes(part))]


def _codes(text: str) -> list[str]:
    """Return the words with digits that may be secrets by what stands around them; all of the text if one is known."""
    line = compatible(text)
    if secrets.is_known_secret(line):
        return [text]
    return [each for each in _held_values(line) if sum(map(str.isalnum, each)) >= _LEAST_VALUE]


def _held_values(line: str) -> list[str]:
    is_key = secrets.is_made_by_machine(line)
    held = (value for value, names in value_features(line) if is_key or SECRET_JUDGE.holds([names]))
    return secrets.values_in(" ".join(held))


def secret_values(part: str) -> list[str]:
    """Return the words with digits that a sentence may hold as secrets: by what stands around them, or else all."""
    return _held_values(compatible(part)) or secrets.values_in(part)


def opening(text: str) -> str:
    """Return the first two sentences of a text, or lines."""
    return "\n".join(sentences(text)[:_OPENING])


def answers_with_secret(before: Sequence[str], text: str) -> bool:
    """Say whether a few words tell a secret by the question that they answer: "It's 7305", behind "my card's PIN?".

    Args:
        before: The texts before it, the nearest last: the question may be the last one, or the one before a "yes".
        text: What answers.
    """
    if len(text.split()) > _FEW_WORDS or not any(map(str.isdigit, text)):
        return False
    questions = [part for each in before[-2:] for part in sentences(each) if part.endswith("?")]
    return any(secrecy(f"{part.rstrip('?')}: {text}") for part in questions)


def admitted(text: str, field: str) -> Verdict | None:
    """Return the verdict on a text that a person wrote; `ValueError` naming the field if it is known for a secret."""
    verdict = screened(text)
    if verdict == "secret":
        raise ValueError(f"{field} must hold no key, card number or address with a password: memory keeps none")
    return verdict


def without_suspects(text: str, *, is_released: bool = False) -> str:
    """Return a text without its sentences that hold a secret or an order, by themselves or with those before them.

    Args:
        text: What was said, or written by a model.
        is_released: Whether what is merely suspected to be a secret may stay: a person was asked, or would be.
    """
    passed: tuple[Verdict | None, ...] = (None, "suspected") if is_released else (None,)
    told = [part for part in sentences(text) if screened(part) in passed]
    if screened(" ".join(told)) not in passed:
        found, told = told, []
        for part in found:
            if screened(" ".join((*told, part))) in passed:
                told.append(part)
    return " ".join(told)


@lru_cache(maxsize=16_384)
def may_be_shown(text: str, *, is_released: bool = False) -> bool:
    """Say whether a stored text may stand in a prompt: somebody may have edited the store by hand.

    It is asked for every fact of every prompt, so the answer is remembered.

    Args:
        text: What is stored.
        is_released: Whether a person released these words: then only what is known for a secret may not.
    """
    return secrecy(text) != "secret" if is_released else screened(text) is None


def compatible(text: str) -> str:
    """Return a text on one line, with compatible characters as what they stand for; capitals stay."""
    line = one_line(_UNSEEN.sub("", text))
    return line if line.isascii() else one_line(unicodedata.normalize("NFKC", line))


def is_instruction_like(text: str, judge: Judge = ORDER_JUDGE) -> bool:
    """Say whether a text is aimed at tools, at other people or at the prompt, not a statement about the user.

    How the user wants to be answered is a wish, not such an order. The judge holds what reads like the orders that it
    learned from, in sixteen languages; beside it only the tags of prompts are known by their form.
    """
    seen = as_seen(text)
    return _MARKUP.search(seen) is not None or judge.holds(order_features(seen))


def as_seen(text: str) -> str:
    """Return a text in small letters as a reader, or a model, sees it."""
    # A new line begins a clause, as a semicolon does; `normalize` would make it a space.
    lines = html.unescape(text).replace("\n", " ; ").replace("\r", " ; ").translate(_EMPHASIS)
    joined = _SPACED.sub(lambda found: found[0].translate(_GAPS), _UNSEEN.sub("", lines))
    folded = normalize(joined)
    if folded.isascii():
        return folded
    return _ON_LETTERS.sub("", unicodedata.normalize("NFD", folded)).translate(_LOOK_ALIKES)
