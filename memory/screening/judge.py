"""What orders and secrets look like, learned from examples, beside the rules. Pure.

Each judge is a logistic regression over words, pairs of words and pieces of words. `python -m tests.screening_training`
writes its weights from the texts in `tests/data/screening`. A score is a sum of whole numbers, so that every machine
says the same.
"""

import base64
import re
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from memory.text import word_set

# Scores are kept as whole numbers, as many to one as this.
UNIT: Final = 256

# Chinese and Japanese have no blanks between words: there each character is read for itself.
_UNSPACED: Final = "\u3040-\u30ff\u3400-\u9fff"
_PART = re.compile(rf"[{_UNSPACED}]|[^\W\d_{_UNSPACED}]+(?:['\u2019-][^\W\d_{_UNSPACED}]+)*|\d+|[^\w\s]")
_LATIN = re.compile("[A-Za-z]")
_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?|\d{1,2}:\d\d")
_DOMAIN = re.compile(r"[\w-]\.([a-z]{2,12})(?:[/?:]|$)")
_SENTENCE = re.compile(r"(?<=[.!?;])\s|\n")
# A longer word is a key or a link more likely than a word, and its pieces would be features without end.
_LONGEST_WORD: Final = 24
# How many words before a value tell what it is, and how many from it on.
_BEFORE: Final = 8
_BEHIND: Final = 4
_LEAST_DIGITS: Final = 3
# An ending after a dot is a host's, unless it is one of these: "notes.md" is nothing to send data to.
_FILE_ENDINGS: Final = word_set("js ts py md txt pdf csv json yaml yml toml sh exe zip doc docx xls xlsx png jpg")
_CLAUSE_ENDS: Final = frozenset('.!?;:()[]{}"\u201c\u201d<>|\u2014\u2013*>#,-')
_NEW_SENTENCE: Final = _CLAUSE_ENDS - {","}
_USER: Final = word_set("user user's users i my i'm i've i'd he she they his her their we our me")
_ADDRESSEE: Final = word_set(
    "assistant assistants assistant's you your you're ai ai's bot model chatbot agent agents llm chatgpt system"
)
_CONDITION: Final = word_set("if when whenever once after before should until unless every each on in upon")
# Whom a clause is about tells an order from a habit: "… forwards mails" of the user, of the assistant, or of nobody.
_SUBJECTS: Final = {
    **dict.fromkeys(_CONDITION, "condition"),
    **dict.fromkeys(_ADDRESSEE, "assistant"),
    **dict.fromkeys(_USER, "user"),
}
_PASSED_OVER: Final = word_set("the this an a any please kindly and then also so but or always never just now")
# A sentence with none of these words, and with no clause that may begin with its verb, needs `Judge.plain` more to be
# held. Among 2,702 plain facts that nothing was learned from, 2.6 % are held as orders.
_DEMANDING: Final = word_set("""
    assistant assistants assistant's you your yours you're yourself ai ai's ais bot bots model chatbot agent agents llm
    chatgpt u ur system prompt prompts instruction instructions rules rule directive must shall should may needs ought
    be always never every each whenever if when automatically silently quietly secretly whoever anyone everyone unless
    note remember memory entry access permission allowed authorised authorized let tell told <email> <link>
""")
# A clause that begins with one of these does not begin with its verb, and demands nothing.
_NO_VERBS: Final = _USER | word_set("""
    a an the this that these those in on at by for with of to from as it its there here one two three some many
    most all both after before during since while because although though even what why how who which where and or
    but so then not no my
""")
# Digits that stand for letters, in words of both: "1gn0re".
_LEET: Final = str.maketrans("0134578@$", "oieastbas")


@dataclass(frozen=True, slots=True)
class Judge:
    """A learned judge.

    Attributes:
        weights: Of each hashed feature.
        bias: What no feature says, times `UNIT`.
        threshold: The score, times `UNIT`, from which on a text is held.
        plain: How much more a sentence needs that addresses nobody, demands nothing and names no address.
        common: The words that it knows.
    """

    weights: Sequence[int]
    bias: int
    threshold: int
    plain: int
    common: frozenset[str]

    def holds(self, text: str, *, cased: bool = False) -> bool:
        """Say whether a sentence of the text, or two together, reach the threshold.

        For the form of values only Latin letters count: the judge of secrets learned no others.
        """
        if cased and 2 * len(_LATIN.findall(text)) < sum(map(str.isalpha, text)):
            return False
        read = filter(_has_room_for_code, (*parts(text), *around_values(text))) if cased else parts(text)
        return any(self.score(tokens(part, cased=cased)) >= self.threshold for part in read)

    def score(self, found: Sequence[str]) -> int:
        """Return the score of a sentence's tokens."""
        numbers = features(found, self.common, len(self.weights))
        total = self.bias + int(sum(self.weights[at] for at in numbers) * UNIT / max(1, len(numbers)) ** 0.5)
        return total - self.plain if self.plain and not self.demands(found) else total

    def demands(self, found: Sequence[str]) -> bool:
        """Say whether a sentence has a word that demands, or a clause that may begin with its verb."""
        if not _DEMANDING.isdisjoint(found):
            return True
        begins = True
        for word in found:
            if word in _NEW_SENTENCE:
                begins = True
            elif begins and word not in _PASSED_OVER:
                begins = False
                if word in self.common and word not in _NO_VERBS:
                    return True
        return False


def parts(text: str) -> Iterator[str]:
    """Yield the sentences of a text, and each with the next one: an order may come in two of them."""
    sentences = [part for part in _SENTENCE.split(text) if part.strip()]
    yield from sentences
    yield from map(" ".join, pairwise(sentences))


def _has_room_for_code(part: str) -> bool:
    """Say whether a text has no digit, three or more, or a word with the form of a password: "words of 0" has none."""
    digits = sum(map(str.isdigit, part))
    return not digits or digits >= _LEAST_DIGITS or any(_form(word.strip(".,;:!?()\"'")) for word in part.split())


def around_values(text: str) -> Iterator[str]:
    """Yield the words around each number, and each word that is no plain one: a long sentence outweighs them."""
    words = text.split()
    told = [any(map(str.isdigit, word)) or bool(_form(word.strip(".,;:!?()\"'"))) for word in words]
    for at, is_value in enumerate(told):
        if is_value and not (at and told[at - 1]):
            yield " ".join(words[max(0, at - _BEFORE) : at + _BEHIND])


def tokens(text: str, *, cased: bool = False) -> list[str]:
    """Return the words and signs of a text; addresses, links, files and numbers as what they are.

    Args:
        text: On one line.
        cased: Whether a word with a capital, digit or sign inside counts as the form it has: a password's, maybe.
    """
    return [token for piece in text.split() for token in _tokens_of(piece, cased)]


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
    digits, letters = sum(map(str.isdigit, word)), sum(map(str.isalpha, word))
    signs = len(word) - digits - letters - word.count("'") - word.count("-") - word.count("\u2019")
    if word.endswith(("'s", "\u2019s")) or not letters:
        return ""
    if digits and letters:
        return f"<mixed {min(len(word), 12) // 4}{'!' if signs else ''}>"
    if signs and len(word) > 3:
        return "<signs>"
    return "<Camel>" if any(map(str.isupper, word[1:])) and not word.isupper() else ""


def features(found: Sequence[str], common: frozenset[str], buckets: int) -> set[int]:
    """Return the numbers of the features that tokens have.

    They are words, pieces of words, pairs, triples, what a sentence begins with, and words with whom they are about.
    """
    # A word that few texts have tells only that it is rare, so that no name decides.
    shown = [word if word in common or not word[0].isalpha() else "<rare>" for word in found]
    names = [f"^{' '.join(shown[:n])}" for n in (1, 2, 3)]
    names += [f"2{first} {second}" for first, second in pairwise([*shown, "$"])]
    for at, word in enumerate(found):
        names.append(f"1{word}")
        if len(word) > 3 and word[0].isalpha():
            names += [f"4{f'_{word}_'[n : n + 4]}" for n in range(len(word) - 1)]
        if at + 2 < len(shown):
            names += [f"3{shown[at]} * {shown[at + 2]}", f"3{' '.join(shown[at : at + 3])}"]
    for subject, word in _with_subjects(found):
        names += [f"s{subject}", f"s{subject} {word if word in common or not word[0].isalpha() else '<rare>'}"]
    return {zlib.crc32(name.encode()) % buckets for name in names}


def _with_subjects(found: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each word with who its clause is about: the user, the assistant, a condition, or nobody."""
    subject, begins, fresh = "nobody", True, True
    for word in found:
        if word in _CLAUSE_ENDS:
            begins = True
            fresh = fresh or word in _NEW_SENTENCE
            continue
        if begins and word not in _PASSED_OVER:
            told = _SUBJECTS.get(word)
            if told or fresh:
                subject = told or "nobody"
            begins = fresh = False
        yield subject, word


def unpacked(value: dict[str, str | int]) -> Judge:
    """Return a judge from its form in JSON, with its weights as compressed bytes."""
    weights = array("b", zlib.decompress(base64.b85decode(str(value["weights"]))))
    bias, threshold, plain = (int(value[name]) for name in ("bias", "threshold", "plain"))
    return Judge(weights, bias, threshold, plain, frozenset(str(value["common"]).split()))
