"""What orders and secrets look like, learned from examples. Pure.

Each judge is a logistic regression over words, their neighbours and pieces of words, and knows no list of words: so
it serves all languages alike. `python -m tests.screening_training` writes its weights from the texts in
`tests/data/screening`. A score is a sum of whole numbers, so that every machine says the same.
"""

import base64
import re
import unicodedata
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final

from memory.text import word_set

# Scores are kept as whole numbers, as many to one as this.
UNIT: Final = 256

# Chinese and Japanese have no blanks between words: there each character is read for itself.
_UNSPACED: Final = "\u3040-\u30ff\u3400-\u9fff"
_PART = re.compile(rf"[{_UNSPACED}]|[^\W\d_{_UNSPACED}]+(?:['\u2019-][^\W\d_{_UNSPACED}]+)*|\d+|[^\w\s]")
_PIECES = re.compile(rf"[{_UNSPACED}]+|[^\s{_UNSPACED}]+")
_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?|\d{1,2}:\d\d")
_SAME = re.compile(r"(?<=AA)A+|(?<=aa)a+")
_DOMAIN = re.compile(r"[\w-]\.([a-z]{2,12})(?:[/?:]|$)")
_SENTENCE = re.compile(r"(?<=[.!?;])\s|\n|(?<=[\u3002\uff01\uff1f])")
# A longer word is a key or a link more likely than a word, and its pieces would be features without end.
_LONGEST_WORD: Final = 24
_STEM: Final = 5
# A word of so many letters is none of the small ones that part others in a sentence; counts end at the most.
_LONG: Final = 4
_MOST: Final = 9
_LONGEST_RUN: Final = 40  # the longest seed phrase of a wallet has 24 words (BIP 39), and some stand before it
_BETWEEN: Final = frozenset(",-")
_LETTERS: Final = {"Nd": "0", "Lu": "A", "Ll": "a", "Lo": "a"}
_LONGEST_VALUE: Final = 40
# How many words before a value tell what it is, and how many behind it.
_BEFORE: Final = 8
_BEHIND: Final = 4
# Signs around a value that are none of it.
_EDGES: Final = ".,;:!?()[]{}<>\"'\u201c\u201d\u201e\u00ab\u00bb`*\u3002"
# An ending after a dot is a host's, unless it is one of these: "notes.md" is nothing to send data to.
_FILE_ENDINGS: Final = word_set("js ts py md txt pdf csv json yaml yml toml sh exe zip doc docx xls xlsx png jpg")
_CLAUSE_ENDS: Final = frozenset('.!?;:()[]{}"\u201c\u201d<>|\u2014\u2013*>#,-')
# Digits that stand for letters, in words of both: "1gn0re".
_LEET: Final = str.maketrans("0134578@$", "oieastbas")


@dataclass(frozen=True, slots=True)
class Judge:
    """A learned judge, of orders or of secrets.

    Attributes:
        weights: Of each hashed feature.
        bias: What no feature says, times `UNIT`.
        threshold: The score, times `UNIT`, from which on a text is held.
    """

    weights: Sequence[int]
    bias: int
    threshold: int

    def holds(self, read: Iterable[Iterable[str]]) -> bool:
        """Say whether the features of any part of a text reach the threshold."""
        return any(self.score(names) >= self.threshold for names in read)

    def score(self, names: Iterable[str]) -> int:
        """Return the score of one part's features."""
        numbers = {zlib.crc32(name.encode()) % len(self.weights) for name in names}
        return self.bias + int(sum(self.weights[at] for at in numbers) * UNIT / max(1, len(numbers)) ** 0.5)


def order_features(text: str) -> Iterator[list[str]]:
    """Yield the features of each sentence, and of each with the next one: an order may come in two of them."""
    found = _sentences(text)
    for part in (*found, *map(" ".join, pairwise(found))):
        yield list(_features([token for piece in _PIECES.findall(part) for token in _tokens(piece)]))


def secret_features(text: str) -> Iterator[list[str]]:
    """Yield the features of what stands around each value of a text, and of each sentence as a whole.

    A passphrase of plain words shows by its sentence.
    """
    yield from (names for _, names in value_features(text))
    for part in _sentences(text):
        words = [kind or word for word, kind in _with_kinds(part)]
        capitals = sum(word[0].isupper() for word in part.split()[1:])
        run = _longest_run(words)
        if run <= _LONGEST_RUN:
            yield [*_features(words), f"7{min(run, _MOST)}", f"9{min(capitals, _MOST)}"]


def value_features(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each value of a text, a number or a word with the form of no plain one, and what stands around it."""
    found = _with_kinds(text)
    words = [kind or word for word, kind in found]
    for at, (value, kind) in enumerate(found):
        if kind:
            yield value, _around(value, kind, words[max(0, at - _BEFORE) : at], words[at + 1 : at + 1 + _BEHIND])


def _around(value: str, kind: str, before: list[str], behind: list[str]) -> list[str]:
    """Return the features of a value: its form, the words around it, and those with what kind of value it is."""
    return [
        *(f"v{name}" for name in _features([*before, "<value>", *behind])),
        f"s{_shape(value)}",
        f"k{kind}",
        f"n{kind} {' '.join(before[-1:])}",
        f"m{kind} {' '.join(behind[:1])}",
        *(f"b{kind} {word[:_STEM]}" for word in before),
        *(f"a{kind} {word[:_STEM]}" for word in behind),
    ]


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE.split(text) if part.strip()]


def _features(words: Sequence[str]) -> Iterator[str]:
    """Yield words, their pieces, and the beginnings of words that stand side by side, or at a sentence's begin or end.

    Nothing of it is a list of words: beginnings and pieces of words serve all languages alike.
    """
    for word in words:
        yield f"1{word}"
        if len(word) > 2 and word[0].isalpha():
            yield from (f"4{f'_{word}_'[at : at + 4]}" for at in range(len(word) - 1))
    stems = [word if word[0] == "<" else word[:_STEM] for word in words]
    placed = ["^", *stems, "$"]
    yield from (f"2{first} {second}" for first, second in pairwise(placed))
    yield from (f"3{first} * {third}" for first, third in zip(placed, placed[2:], strict=False))
    yield from (f"6{' '.join(stems[:n])}" for n in (1, 2, 3))


@lru_cache(maxsize=4096)
def _tokens(piece: str) -> list[str]:
    """Return the words and signs of a piece of text; addresses, links, files and numbers as what they are."""
    bare = piece.strip(_EDGES)
    low = bare.lower()
    ending = _DOMAIN.search(low[:200])
    if "@" in bare[1:] and "." in bare:
        found = "<email>"
    elif "://" in low or low.startswith("www.") or (ending and ending[1] not in _FILE_ENDINGS):
        found = "<link>"
    elif ending:
        found = "<file>"
    elif _DATE.fullmatch(bare):
        found = "<date>"
    else:
        lower = piece.lower()
        digits, letters = sum(map(str.isdigit, lower)), sum(map(str.isalpha, lower))
        # "1gn0re": digits for letters. A number with its unit is short, or has more digits than letters.
        is_disguised = digits > 0 and len(lower) > 3 and 2 * letters >= len(lower)
        return [
            f"<{min(len(word), 9)} digits>" if word.isdigit() else word.replace("\u2019", "'")[:_LONGEST_WORD]
            for word in _PART.findall(lower.translate(_LEET) if is_disguised else lower)
        ]
    return [found, piece[-1]] if piece[-1] in _CLAUSE_ENDS else [found]


def _with_kinds(text: str) -> list[tuple[str, str]]:
    """Return the words and signs of a text, each with the kind of value that it is, if any; groups of digits as one."""
    found: list[tuple[str, str]] = []
    for piece in _PIECES.findall(text.replace("=", " = ")):
        bare = piece.strip(_EDGES)
        if not _kind(bare):
            found += [(word.replace("\u2019", "'")[:_LONGEST_WORD], "") for word in _PART.findall(piece.lower())]
            continue
        before, behind = piece.split(bare, 1)
        if not before and found and _is_group(found[-1][0]) and _is_group(bare):
            bare = f"{found.pop()[0]} {bare}"
        found += [*((sign, "") for sign in before), (bare, _kind(bare)), *((sign, "") for sign in behind)]
    return found


def _is_group(value: str) -> bool:
    """Say whether a value may be a part of a longer number."""
    return value[:1].isdigit() and len(value) < _LONGEST_WORD and not any(map(str.isalpha, value))


@lru_cache(maxsize=4096)
def _kind(word: str) -> str:
    """Return what kind of value a word is; nothing for a plain one."""
    digits, letters = sum(map(str.isdigit, word)), sum(map(str.isalpha, word))
    signs = "".join(sorted({char for char in word if not char.isalnum()}))
    if not letters:
        return f"<{min(digits, 12)}{signs[:3]}>" if digits else ""
    own = signs.strip("'-\u2019")
    if digits:
        return f"<mixed {min(len(word), 12) // 4}{own[:1] and '!'}>"
    if own and len(word) > 3:
        return "<email>" if "@" in own else "<signs>"
    return "<Camel>" if any(map(str.isupper, word[1:])) and not word.isupper() else ""


def _shape(value: str) -> str:
    """Return a value with each digit as 0 and each letter as A or a, of which two in a row tell as much as more."""
    signs = (_LETTERS.get(unicodedata.category(char), char) for char in value[:_LONGEST_VALUE])
    return _SAME.sub("", "".join(signs))


def _longest_run(words: Sequence[str]) -> int:
    """Return how many words of four letters or more stand in a row: a sentence has small words between them."""
    longest = run = 0
    for word in words:
        if word in _BETWEEN:
            continue
        run = run + 1 if len(word) >= _LONG and word[0] != "<" else 0
        longest = max(longest, run)
    return longest


def unpacked(value: dict[str, str | int]) -> Judge:
    """Return a judge from its form in JSON: how far it is from each weight to the next, and the weights."""
    gaps, own = (zlib.decompress(base64.b85decode(str(value[name]))) for name in ("gaps", "weights"))
    weights = array("b", bytes(int(value["buckets"])))
    for at, weight in zip(accumulate(gaps), array("b", own), strict=True):
        weights[at] = weight
    return Judge(weights, int(value["bias"]), int(value["threshold"]))
