"""What rules make of what a small model notes down of one message (`memory.config.NoteRules`). English. Pure."""

import re
from collections.abc import Sequence
from datetime import date
from typing import Final

from graphs.local.notes.days import with_dates
from graphs.local.notes.foreign_examples import FOREIGN_NOTES, examples_for
from graphs.local.notes.overlooked import with_overlooked
from graphs.local.notes.reasons import with_reasons
from graphs.local.notes.retelling import in_third_person, retold
from memory.config import Category
from memory.facts.words import words
from memory.text import fold, sentences


def examples(said: str) -> Sequence[tuple[str, str]]:
    """Return what the model reads before the first message: it writes in the language of its examples."""
    return examples_for(said)


def stated(text: str, day: date | None) -> str:
    """Return what a message states, with dates behind "yesterday" and the like; empty if it only asks or thanks."""
    told = without_requests(text)
    if not words(_ACKNOWLEDGED.sub("", told)):
        return ""
    return with_dates(told, day) if day else told


def kept(notes: Sequence[str], told: str, heard: str, longest: int) -> Sequence[tuple[str, Category]]:
    """Return the facts of a message, with their categories (`memory.config.NoteRules`)."""
    known, parts = _beginnings(f"{heard} {_USER}"), sentences(told)
    own = [each for each in notes if each not in FOREIGN_NOTES or words(each) <= words(heard)]
    others = [each for each in map(retold, parts) if each.startswith("User's ") and each.count("User") == 1]
    whole = [_of_its_subject(each, others) for each in own if is_statement(each) and _names_in(each) <= known]
    found = with_reasons(with_overlooked(whole, parts), parts, longest)
    return [(text, note.category) for note in found if (text := in_third_person(note.text))]


def _of_its_subject(note: str, others: Sequence[str]) -> str:
    """Return a note; in its place the sentence that it repeats, where the note tells of the user, and that does not.

    Args:
        note: "User lives in Cork".
        others: The message's sentences that tell of somebody else alone: "User's sister Vera lives in Cork".
    """
    repeated = (each for each in others if note.startswith("User ") and words(note) <= words(each))
    return next(repeated, note)


def _names_in(note: str) -> frozenset[str]:
    """Return the beginnings of the words with a capital letter within a note: one that nobody said was made up."""
    return _beginnings(" ".join(word for word in note.split()[1:] if word.strip("\"'(\u201c")[:1].isupper()))


def _beginnings(text: str) -> frozenset[str]:
    # "Rome" is said by "Roma", and "Oslo" by "Oslo's".
    return frozenset(word[:3] for word in _WORD.findall(fold(text)))


_USER: Final = "User Nutzer"
_WORD = re.compile(r"[^\W\d_]+")
_ASKING = re.compile(
    r"(?:(?:and|but|so|also|then|ok|okay|well|hi|hello|hey|thanks|please)[,!]?\s)*"
    r"(?:what|which|how|who|whom|whose|where|when|why|is|are|was|were|do|does|did|can|could|"
    r"should|shall|would|will|has|have|had|any|anything|funny|right|really)\b",
    re.IGNORECASE,
)


# "Could you always answer in two sentences?" asks for nothing that is done with one answer.
_STANDING_REQUEST = re.compile(
    r"^(?:can|could|would|will) you (?:please )?(?P<wish>.{0,300}\b(?:always|never|from now on|in future|"
    r"(?:answer|write to|speak to|talk to|call|address) me)\b.{0,300})\?$",
    re.IGNORECASE,
)


# "Write a limerick", "please shorten this": done with one answer. What names somebody's own things tells of them.
_TASK = re.compile(
    r"(?:(?:ok|okay|great|now|then|and|also|thanks|hi|hello|hey|perfect|nice)[,.!]?\s)*(?:please\s)?"
    r"(?:write|draft|translate|shorten|summari[sz]e|explain|rewrite|rephrase|proofread|correct|fix|list|name|give|tell|"
    r"show|create|generate|compare|calculate|convert|suggest|recommend|describe|define|solve|sort|spell)\s"
    r"(?:me|us|this|these|that|the|an?|it|some|\d+|two|three|five|ten)\b"
    r"(?!.{0,300}\b(?:my|our|i|we|i['\u2019](?:m|ve|ll|d)|to me|always|never|from now on|in future|answers?)\b)",
    re.IGNORECASE,
)


def without_requests(text: str) -> str:
    """Return a text without its questions and tasks, which a small model does, or takes for facts.

    What begins like a statement stays ("I can't eat nuts, what could I bake?"), and so does what is asked for good.
    """
    parts = [_STANDING_REQUEST.sub(r"Please \g<wish>.", part) for part in sentences(text)]
    return " ".join(part for part in parts if not (_TASK.match(part) or (part.endswith("?") and _ASKING.match(part))))


_ACKNOWLEDGED = re.compile(
    r"\b(?:ok|okay|haha|ha|great|perfect|cool|nice|fine|good one|i see|got it|sounds good|bye|goodbye|"
    r"(?:hi|hello|hey)(?: there)?|"
    r"good (?:morning|evening|night)|thanks?(?: you)?(?: (?:so|very) much| a lot)?(?: for .{0,40})?)\b[,.!]?",
    re.IGNORECASE,
)
# Of whom it tells cannot be known where it stands alone.
_POINTING = re.compile(r"(?:he|she|it|they|this|that|these|those)\b", re.IGNORECASE)


def is_statement(sentence: str) -> bool:
    """Say whether a sentence tells something by itself, and does not only ask."""
    return not (sentence.rstrip().endswith(("?", "\uff1f")) or _POINTING.match(sentence))


# What tells that something is no longer as it was.
_CHANGES = re.compile(
    r"\b(?:not (?:in|on|at|the|a|my|to)|no longer|any ?more|already|actually|instead|changed|moved|sold|quit|left|"
    r"stopped|now\b|sorry|correction|i meant|wrong|after all|postponed|cancell?ed|earlier than|later than)\b",
    re.IGNORECASE,
)
_SHARED: Final = 0.4
_LEAST_SHARED: Final = 2


def replaces(said: str, content: str, older: str) -> bool:
    """Say whether a fact of a message takes the place of an older one: something changed, and both share most words."""
    mine, its = ({word for word in words(text) if len(word) > 1} for text in (content, older))  # the "s" of "User's"
    shared = len(mine & its) if _CHANGES.search(said) else 0
    return shared >= _LEAST_SHARED and shared >= _SHARED * min(len(mine), len(its))
