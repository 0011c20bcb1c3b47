"""What a small model passed over of a message, kept in the user's own words. Pure.

A model of one or two billion parameters notes nothing of some sentences, and a part of others. Where words tell that
such a sentence is a decision, a preference, a promise or a plain fact about the user, it is kept as it was said.
"""

import re
from collections.abc import Sequence
from typing import Final

from graphs.local.notes.category import category_of
from graphs.local.notes.foreign_examples import language_of
from graphs.local.notes.reasons import STANCES, tells
from graphs.local.notes.retelling import WISH, retold
from memory.config import Category
from memory.facts.words import words
from memory.screening.door import screened

# A sentence of fewer telling words says too little to be kept alone.
_LEAST_WORDS: Final = 2

# Of whom or what it tells stands in a sentence before.
_POINTING = re.compile(
    r"(?:it|its|it['\u2019]s|he|she|they|they['\u2019](?:re|ve|d)|their|his|her|that|that['\u2019]s|this|these|those|"
    r"which|both|neither|none|otherwise|because|instead(?! of)|there)\b",
    re.IGNORECASE,
)
# What is said of the moment, or to keep the talk going.
_PASSING = re.compile(
    r"\b(?:(?:do|does|did)(?:n['\u2019]?t| not) (?:know|mind|remember|understand)|"
    r"is (?:not sure|sorry|back|bored|tired|hungry|here|ready|curious|wondering|looking for)|let you know|"
    r"will (?:try|see|think|check|look|ask you|tell you)|guess(?:es)?|wonders?|suppose|hopes? (?:so|not|it|you|that)|"
    r"needs? (?:help|advice|ideas|your|you|some help)|thanks?|thank you|sounds?|asks?|means?|"
    r"user (?:sees?|was just|is just|agrees?\b(?! to)))\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"(?<!\w)(?:i|we|my|our)(?!\w)", re.IGNORECASE)
_DETAIL = re.compile(r"(?<=[a-z,;:] )[A-Z][a-z]\w*|\d+(?:[.,:]\d+)*")
_BRACKETS = re.compile(r" \([^()]{4,40}\)")  # dates that were set behind "yesterday" and the like
# "Honestly User finds …" names already whose opinion it is.
_USER_FIRST = re.compile(r"(?:[\w-]{1,30},? ){0,3}User\b", re.IGNORECASE)
_NAME_OR_NUMBER = re.compile(
    r"(?<=[\w,;:] )[A-Z][\w-]+|\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|"
    r"fifty|hundred|thousand|half|once|twice|every|each)\b"
)
# In a longer message, what does not name the user may be an article that somebody pasted.
_SHORT_MESSAGE: Final = 6
_OPINION: Final = "User thinks: "


def with_overlooked(notes: Sequence[str], parts: Sequence[str]) -> list[str]:
    """Return the notes of one message, and what it says besides that is worth a note, in the user's own words.

    A note that says less than its sentence gives way to it where the sentence is a stance: a decision is one fact.

    Args:
        notes: What the model noted down.
        parts: The sentences of the message.
    """
    # What the door refuses tells nothing, but it stays, so that the refusal is known.
    kept = list(notes)
    is_own = len(parts) <= _SHORT_MESSAGE and any(map(_FIRST_PERSON.search, parts))
    is_held = screened(" ".join(parts)) is not None or any(map(screened, parts))
    follows_stance = False
    for part in parts:
        told = retold(part) if not language_of(part) else ""
        category = category_of(told, part)
        if category == "preference" and told and not _USER_FIRST.match(told):
            told = f"{_OPINION}{told}"
        is_reason = follows_stance and category == "knowledge" and not told.startswith("User ")
        follows_stance = category in STANCES or is_reason
        telling = [note for note in kept if screened(note) is None]
        # A stance is one fact; of plain facts several notes may tell one sentence.
        is_told = any(tells(note, part) for note in (telling if category in STANCES else [" ".join(telling)]))
        if is_reason or (is_told and not _lacks_detail(telling, part)):
            continue  # what is a reason is set behind its stance (`reasons.py`)
        if not _is_worth_keeping(told, part, category, is_own=is_own) or screened(told):
            continue
        # What says nothing of the user must not become a statement about the user that an order hides in.
        if told.startswith((WISH, _OPINION)) and is_held:
            continue
        if category in STANCES:  # each of several plain facts may change for itself
            kept = [note for note in kept if note not in telling or not words(note) <= words(told)]
        kept.append(told)
    return kept


def _lacks_detail(notes: Sequence[str], part: str) -> bool:
    """Say whether a sentence has a name or a number that no note has."""
    said = " ".join(notes).casefold()
    return any(found[0].casefold() not in said for found in _DETAIL.finditer(_BRACKETS.sub("", part)))


def _is_worth_keeping(told: str, part: str, category: Category, *, is_own: bool) -> bool:
    """Say whether words tell that a sentence is a stance, or a plain fact with a name or a number."""
    if len(words(told)) < _LEAST_WORDS or _POINTING.match(told) or _PASSING.search(told):
        return False
    is_about_user = is_own or told.startswith("User") or _FIRST_PERSON.search(part) is not None
    return category != "knowledge" or (is_about_user and _NAME_OR_NUMBER.search(part) is not None)
