"""What orders and secrets look like, learned from examples, beside the rules. Pure.

Each judge is a logistic regression over words, their neighbours and pieces of words. `python -m
tests.screening_training` writes its weights from the texts in `tests/data/screening`. A score is a sum of whole
numbers, so that every machine says the same.
"""

import base64
import re
import zlib
from array import array
from collections.abc import Iterator, Sequence
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
_DOMAIN = re.compile(r"[\w-]\.([a-z]{2,12})(?:[/?:]|$)")
_SENTENCE = re.compile(r"(?<=[.!?;])\s|\n|(?<=[\u3002\uff01\uff1f])")
# A longer word is a key or a link more likely than a word, and its pieces would be features without end.
_LONGEST_WORD: Final = 24
_STEM: Final = 5
# How many words before a value tell what it is, and how many from it on.
_BEFORE: Final = 8
_BEHIND: Final = 4
_LEAST_DIGITS: Final = 3
# An ending after a dot is a host's, unless it is one of these: "notes.md" is nothing to send data to.
_FILE_ENDINGS: Final = word_set("js ts py md txt pdf csv json yaml yml toml sh exe zip doc docx xls xlsx png jpg")
_CLAUSE_ENDS: Final = frozenset('.!?;:()[]{}"\u201c\u201d<>|\u2014\u2013*>#,-')
_NEW_SENTENCE: Final = _CLAUSE_ENDS - {","}
# Whom a clause is about tells an order from a habit: "… forwards mails" of the user, of the assistant, or of nobody.
_SUBJECTS: Final = {
    word: subject
    for subject, words in {
        "condition": "if when whenever once after before should until unless every each on in upon",
        "assistant": """
            assistant assistants assistant's you your you're ai ai's bot model chatbot agent agents llm chatgpt system
        """,
        "user": "user user's users i my i'm i've i'd he she they his her their we our me",
    }.items()
    for word in words.split()
}
_PASSED_OVER: Final = word_set("the this an a any please kindly and then also so but or always never just now")
# Digits that stand for letters, in words of both: "1gn0re".
_LEET: Final = str.maketrans("0134578@$", "oieastbas")


@dataclass(frozen=True, slots=True)
class Judge:
    """A learned judge, of orders or of secrets.

    Attributes:
        weights: Of each hashed feature.
        bias: What no feature says, times `UNIT`.
        threshold: The score, times `UNIT`, from which on a text is held.
        cased: Whether it reads the form of values and the words around them, as a judge of secrets.
        common: The words that a judge of secrets knows.
    """

    weights: Sequence[int]
    bias: int
    threshold: int
    cased: bool
    common: frozenset[str]

    def holds(self, text: str) -> bool:
        """Say whether a sentence of the text, two together, or the words around a value reach the threshold.

        For the form of values only Latin letters count: the judge of secrets learned no others.
        """
        letters = list(filter(str.isalpha, text)) if self.cased else []
        if 2 * sum(map(str.isascii, letters)) < len(letters):
            return False
        read = filter(_has_room_for_code, (*parts(text), *around_values(text))) if self.cased else parts(text)
        return any(self.score(tokens(part, cased=self.cased)) >= self.threshold for part in read)

    def score(self, found: Sequence[str]) -> int:
        """Return the score of a sentence's tokens."""
        names = secret_features(found, self.common) if self.cased else order_features(found)
        numbers = {zlib.crc32(name.encode()) % len(self.weights) for name in names}
        return self.bias + int(sum(self.weights[at] for at in numbers) * UNIT / max(1, len(numbers)) ** 0.5)


def parts(text: str) -> Iterator[str]:
    """Yield the sentences of a text, and each with the next one: an order may come in two of them."""
    sentences = [part for part in _SENTENCE.split(text) if part.strip()]
    yield from sentences
    yield from map(" ".join, pairwise(sentences))


def _has_room_for_code(part: str) -> bool:
    """Say whether a text has no digit, three or more, or a word with the form of a password: "words of 0" has none."""
    digits = sum(map(str.isdigit, part))
    return not digits or digits >= _LEAST_DIGITS or any(_form(word) for word in part.split())


def around_values(text: str) -> Iterator[str]:
    """Yield the words around each number, and each word that is no plain one: a long sentence outweighs them."""
    words = text.split()
    told = [any(map(str.isdigit, word)) or bool(_form(word)) for word in words]
    for at, is_value in enumerate(told):
        if is_value and not (at and told[at - 1]):
            yield " ".join(words[max(0, at - _BEFORE) : at + _BEHIND])


def tokens(text: str, *, cased: bool = False) -> list[str]:
    """Return the words and signs of a text; addresses, links, files and numbers as what they are.

    Args:
        text: On one line.
        cased: Whether a word with a capital, digit or sign inside counts as the form it has: a password's, maybe.
    """
    pieces = text.split() if cased else _PIECES.findall(text)
    return [token for piece in pieces for token in _tokens_of(piece, cased)]


@lru_cache(maxsize=4096)
def _tokens_of(piece: str, cased: bool) -> list[str]:
    bare = piece.strip(".,;:!?()[]{}<>\"'\u201c\u201d`*")
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
    elif not cased or not (found := _form(bare)):
        lower = piece.lower()
        digits, letters = sum(map(str.isdigit, lower)), sum(map(str.isalpha, lower))
        # "1gn0re": digits for letters. A number with its unit is short, or has more digits than letters.
        is_disguised = digits > 0 and len(lower) > 3 and 2 * letters >= len(lower)
        return [
            f"<{min(len(word), 9)} digits>" if word.isdigit() else word.replace("\u2019", "'")[:_LONGEST_WORD]
            for word in _PART.findall(lower.translate(_LEET) if is_disguised else lower)
        ]
    return [found, piece[-1]] if piece[-1] in _CLAUSE_ENDS else [found]


@lru_cache(maxsize=4096)
def _form(word: str) -> str:
    """Return the form of what is no plain word; nothing for plain words and numbers."""
    word = word.strip(".,;:!?()\"'")
    digits, letters = sum(map(str.isdigit, word)), sum(map(str.isalpha, word))
    signs = len(word) - digits - letters - word.count("'") - word.count("-") - word.count("\u2019")
    if word.endswith(("'s", "\u2019s")) or not letters:
        return ""
    if digits and letters:
        return f"<mixed {min(len(word), 12) // 4}{'!' if signs else ''}>"
    if signs and len(word) > 3:
        return "<signs>"
    return "<Camel>" if any(map(str.isupper, word[1:])) and not word.isupper() else ""


def order_features(found: Sequence[str]) -> Iterator[str]:
    """Yield words, their pieces, and the beginnings of words that stand side by side, or at a sentence's begin or end.

    Nothing of it is a list of words: beginnings and pieces of words serve all languages alike.
    """
    yield from _words_and_pieces(found, 3)
    stems = [word if word[0] == "<" else word[:_STEM] for word in found]
    placed = ["^", *stems, "$"]
    yield from (f"2{first} {second}" for first, second in pairwise(placed))
    yield from (f"3{first} * {third}" for first, third in zip(placed, placed[2:], strict=False))
    yield from (f"6{' '.join(stems[:n])}" for n in (1, 2, 3))


def secret_features(found: Sequence[str], common: frozenset[str]) -> Iterator[str]:
    """Yield words, their pieces, pairs, triples, what a sentence begins with, and words with whom they are about."""
    yield from _words_and_pieces(found, 4)
    # A word that few texts have tells only that it is rare, so that no name decides.
    shown = [word if word in common or not word[0].isalpha() else "<rare>" for word in found]
    yield from (f"^{' '.join(shown[:n])}" for n in (1, 2, 3))
    yield from (f"2{first} {second}" for first, second in pairwise([*shown, "$"]))
    for first, second, third in zip(shown, shown[1:], shown[2:], strict=False):
        yield from (f"3{first} * {third}", f"3{first} {second} {third}")
    for subject, word in _with_subjects(found, shown):
        yield from (f"s{subject}", f"s{subject} {word}")


def _words_and_pieces(found: Sequence[str], shortest: int) -> Iterator[str]:
    for word in found:
        yield f"1{word}"
        if len(word) >= shortest and word[0].isalpha():
            yield from (f"4{f'_{word}_'[at : at + 4]}" for at in range(len(word) - 1))


def _with_subjects(found: Sequence[str], shown: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each word with who its clause is about: the user, the assistant, a condition, or nobody."""
    subject, begins, fresh = "nobody", True, True
    for word, told_as in zip(found, shown, strict=True):
        if word in _CLAUSE_ENDS:
            begins = True
            fresh = fresh or word in _NEW_SENTENCE
            continue
        if begins and word not in _PASSED_OVER:
            told = _SUBJECTS.get(word)
            if told or fresh:
                subject = told or "nobody"
            begins = fresh = False
        yield subject, told_as


def unpacked(value: dict[str, str | int]) -> Judge:
    """Return a judge from its form in JSON: how far it is from each weight to the next, the weights, and its words."""
    gaps, own, common = (zlib.decompress(base64.b85decode(str(value[name]))) for name in ("gaps", "weights", "common"))
    weights = array("b", bytes(int(value["buckets"])))
    for at, weight in zip(accumulate(gaps), array("b", own), strict=True):
        weights[at] = weight
    words = frozenset(common.decode().split())
    return Judge(weights, int(value["bias"]), int(value["threshold"]), bool(value["cased"]), words)
