"""A decision, an opinion or a promise and what is said right behind it about it: one fact. Pure.

A small model notes down sentence by sentence. "It was too slow" tells nothing where it stands alone, and the decision
loses its reason without it. So such a sentence is set behind the note that it leans on, in the user's own words.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from graphs.local.notes.category import category_of
from graphs.local.notes.retelling import FIRST_PERSON, in_third_person, retold
from memory.config import Category
from memory.facts.words import words
from memory.screening.door import screened

# Who people are and what they do every day is kept sentence by sentence: each of these may change for itself.
STANCES: Final[frozenset[Category]] = frozenset({"preference", "context", "goal"})
_BACKWARDS = re.compile(
    r"(?:(?:and|but|so|also|plus|then|still|mainly|mostly)\s)?"
    r"(?:it|its|it['\u2019]s|they|they['\u2019](?:re|ve|d)|their|that|that['\u2019]s|this|these|those|which|he|she|his|her|"
    r"both|neither|none of|half of|one of|the|because|otherwise|instead)\b",
    re.IGNORECASE,
)
# What these mean stands in a sentence before, wherever in their own they stand.
_ANAPHOR = re.compile(r"\b(?:it|(?<!of )them|there(?! (?:is|are|was|were|will)))\b", re.IGNORECASE)
# A note with so large a share of a sentence's words tells what it says.
_TOLD: Final = 0.6
# Words that stay small in the middle of a sentence; a name or a noun keeps its letter.
_SMALL = re.compile(r"[A-Z](?=[a-z'\u2019]*\s)")


class Note(NamedTuple):
    """What is left of a note of the model, and its category: that of a stance is not changed by its reasons."""

    text: str
    category: Category


def with_reasons(notes: Sequence[str], parts: Sequence[str], longest: int) -> list[Note]:
    """Return the notes of one message, each with the sentences behind it that cannot be understood without it.

    A stance takes what says more about it. Any other note takes only what nothing else tells, or tells with "it". What
    the door refuses stays apart: a good note must not go with it, and an order must not hide in a good note.

    Args:
        notes: What the model noted down.
        parts: The sentences of the message, in their order.
        longest: Characters of the longest note; what would make one longer stays apart.
    """
    texts, places = list(notes), [_place(note, parts) for note in notes]
    categories = [category_of(note, parts[at] if at >= 0 else "") for note, at in zip(notes, places, strict=True)]
    taken_from: dict[int, list[int]] = {}
    for n, at in enumerate(places):
        taken_from.setdefault(at, []).append(n)
    base = -1
    for at, part in enumerate(parts):
        own = taken_from.get(at, [])
        if base >= 0 and not _is_about(part, parts[at - 1], is_unnoted=not own and categories[base] in STANCES):
            base = -1
        if base >= 0 and not tells(texts[base], part):
            more, taken = _more(texts[base], part, {n: texts[n] for n in own})
            whole = f"{texts[base].rstrip('. ')}; {_within(more)}".rstrip(". ") + "."
            takes = categories[base] in STANCES or all(_ANAPHOR.search(texts[n]) for n in own)
            if more and takes and len(whole) <= longest and not any(map(screened, (texts[base], more, whole))):
                texts[base] = whole
                if categories[base] not in STANCES:
                    categories[base] = category_of(whole, part)
                for n in taken:
                    texts[n] = ""
                continue
        base = own[-1] if own else base
    return [Note(text, category) for text, category in zip(texts, categories, strict=True) if text]


def _place(note: str, parts: Sequence[str]) -> int:
    """Return which sentence a note was taken from: the one that shares most words with it; -1 if none does."""
    wanted = words(note)
    shared, at = max(((len(words(part) & wanted), -n) for n, part in enumerate(parts)), default=(0, 0))
    return -at if shared else -1


def tells(note: str, part: str) -> bool:
    """Say whether a note tells already what a sentence says: many models write the reason themselves."""
    wanted = words(part)
    return len(words(note) & wanted) >= _TOLD * len(wanted)


def _is_about(part: str, before: str, *, is_unnoted: bool) -> bool:
    """Say whether a sentence says more about the one before; behind a stance, what nobody noted for itself does."""
    if part.endswith("?"):
        return False
    if _BACKWARDS.match(part) or _ANAPHOR.search(part):
        return True
    return not FIRST_PERSON.match(part) and (is_unnoted or bool(words(part) & words(before)))


def _more(base: str, part: str, own: Mapping[int, str]) -> tuple[str, list[int]]:
    """Return what goes behind a note for a sentence, and which of the sentence's own notes are told by both in full."""
    # A note says it better than a sentence that had to be turned.
    told = _retold_part(part) or ("" if own else retold(part))
    noted = "; ".join(note.rstrip(". ") for note in own.values())
    besides = [n for n, note in own.items() if not words(note) <= words(base) | words(told)]
    if told and not besides:
        return told, list(own)
    if not told or tells(noted, part):
        return noted, list(own)
    # A note says something else than its sentence: it stays apart, unless it cannot be understood there.
    apart = [n for n in besides if not _ANAPHOR.search(own[n])]
    behind = (own[n] for n in besides if n not in apart)
    return "; ".join(each.rstrip(". ") for each in (told, *behind)), [n for n in own if n not in apart]


def _retold_part(part: str) -> str:
    """Return a sentence of the user in the third person; empty where it cannot be turned safely."""
    told = in_third_person(part)
    return "" if FIRST_PERSON.search(told) else told


def _within(sentence: str) -> str:
    """Return a sentence as it goes on behind another one."""
    return _SMALL.sub(lambda found: found[0].lower(), sentence, count=1) if _BACKWARDS.match(sentence) else sentence
