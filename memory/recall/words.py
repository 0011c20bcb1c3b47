"""Text as the words by which it is found: folded, stemmed, dates as words, without those that say nothing. Pure."""

import math
import re
from datetime import date, timedelta
from functools import lru_cache
from typing import Final

from memory.text import MONTHS, WEEKDAYS, fold, word_set

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_CLITIC = re.compile(r"['\u2019](?:s|re|ve|ll|d|m|t)$")
# Scripts that write words without spaces between them: there, two characters say about as much as a word.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+")
_DAY = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_DATE_WORDS: Final = frozenset([*MONTHS, *WEEKDAYS])
_FROM_TODAY: Final = {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1}

# Words of grammar and of questions: who asks "what did she do there" is not looking for "what", "did" and "there". Then
# the same of Spanish, Portuguese, French, German and Russian, without those that say something in another of these
# languages or in English ("son", "die", "la"); those are common enough to weigh little.
_SILENT: Final = word_set(
    """a an the and or but if of to in on at by for with from as is are was were be been being am do does did done doing
    have has had having get gets got getting will would can could should shall might must likely i me my mine we us our
    ours you your yours he him his she her hers it its they them their theirs this that these those there here what when
    where who whom whose which why how not no so than then too very just about into over after before up down out off
    again please tell show ask
    el las lo los unos unas y o de del que qué quién cuál cuándo dónde por para en mi mis tu tus su sus yo es está
    estoy uma um e da das em ao meu minha seu sua quem qual quando onde é estou les une et ou du au aux qui quoi où
    je j il ma ta tes sa ses est suis quel quelle der das dem ein eine einen einem einer und ist ich mein meine meinen
    meiner dein sein wo wann wie wer и в на я он она мы мой моя моё мои что кто как где когда какой какая это не по к
    """,
    fold,
)
# Words that answer, thank or greet: a message of nothing else asks nothing of memory. English, and the first of others.
_PHATIC: Final = word_set(
    """thanks thank thx cheers ok okay yes yeah yep yup no nope sure right well nice great good cool fine perfect lovely
    awesome wonderful excellent amazing fantastic sounds sound makes make sense got get see know think let lets never
    mind really much help helps helpful appreciate hello hi hey morning evening afternoon night bye goodbye haha lol wow
    oh ah um hmm welcome sorry worries problem talk later today now one bit way go ahead something else
    alright agreed understood noted exactly absolutely definitely indeed works brilliant super gotcha
    danke bitte ja nein gut hallo klar genau prima merci oui non bonjour salut parfait gracias si hola bueno vale claro
    grazie ciao perfetto obrigado obrigada sim ola bedankt dank nee hoi goed
    """
)
# One ending goes, the longest that leaves three letters at least.
_ENDING = re.compile(r"(?<=...)(?:ings?|edly|ies|e?s|ed|ly)$")
_GRAM: Final = 4
# Where a sentence ends, or a line; a part of a message has so many words at most, and so many parts are looked at.
_END = re.compile(r"(?<=[.!?:;\u2026])\s+|\n+|(?<=[\u3002\uff01\uff1f])")
_PART_WORDS: Final = 20
_PARTS: Final = 8
_SENTENCE_END: Final = ".!?:\n\u2026"


def terms(text: str, *, today: str = "") -> list[str]:
    """Return the stems of the words that a text can be found by, in order, also repeated ones.

    A date in ISO 8601 gives its day, month, year and weekday as words.

    Args:
        text: Any text, in any language.
        today: The day (ISO 8601) from which "yesterday" is a date; empty leaves it a word.
    """
    found = []
    for word in _WORD.findall(fold(text)):
        if parts := _UNSPACED.findall(word):
            found += [part[at : at + 2] for part in parts for at in range(max(1, len(part) - 1))]
            continue
        word = _CLITIC.sub("", word)
        if word not in _SILENT:
            found.append(stem(word))
        if today and word in _FROM_TODAY:
            found += date_words(today, _FROM_TODAY[word])
    for day in _DAY.finditer(text):
        found += date_words(day[0])
    return found


def parts(text: str) -> list[str]:
    """Return the sentences of a message, long ones in equal parts; of very many the first and the last.

    Those that ask for nothing by themselves, as "thanks" and "how is it" do, are left out, unless all do.
    """
    found = []
    for words in filter(None, map(str.split, _END.split(text))):
        size = math.ceil(len(words) / math.ceil(len(words) / _PART_WORDS))
        found += [" ".join(words[at : at + size]) for at in range(0, len(words), size)]
    telling = [part for part in dict.fromkeys(found) if terms(part) and not is_phatic(part)] or [text]
    return telling if len(telling) <= _PARTS else [*telling[: _PARTS // 2], *telling[-_PARTS // 2 :]]


def names(text: str) -> set[str]:
    """Return the stems of the names in a text: of words with a capital letter that begin no sentence, dates aside."""
    found = set()
    for word in _WORD.finditer(text):
        before = text[: word.start()].rstrip(" \t\"'(\u201c\u2018*-")
        if word[0][0].isupper() and before and before[-1] not in _SENTENCE_END:
            folded = _CLITIC.sub("", fold(word[0]))
            if folded not in _SILENT and folded not in _DATE_WORDS:
                found.add(stem(folded))
    return found


def is_phatic(text: str) -> bool:
    """Say whether a message only answers, thanks or greets ("ok, sounds good"): it asks for nothing that is known."""
    words = {_CLITIC.sub("", word) for word in _WORD.findall(fold(text))}
    return not words.isdisjoint(_PHATIC) and words <= _PHATIC | _SILENT


def date_words(when: str, days: int = 0) -> list[str]:
    """Return the words of a day (ISO 8601, a time may follow), or of one some days later; none if it is no day."""
    try:
        day = date.fromisoformat(when[:10]) + timedelta(days)
    except (ValueError, OverflowError):
        return []
    return [stem(MONTHS[day.month - 1]), str(day.day), str(day.year), stem(WEEKDAYS[day.weekday()])]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return a word without its English ending: "camping" and "camps" as "camp"; others lose little."""
    if len(word) < 4 or not word.isascii():
        return word
    if not word.endswith(("ss", "us")):
        word = _ENDING.sub(lambda ending: "y" if ending[0] == "ies" else "", word)
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def grams(word: str) -> list[str]:
    """Return the sequences of four characters in a word with its borders: alike words share many of them."""
    bordered = f"_{word}_"
    return [bordered[at : at + _GRAM] for at in range(len(bordered) - _GRAM + 1)] or [bordered]


# Whoever writes more than that in one message is telling something, too.
_MOST_CHARS: Final = 600
_FOR_GOOD: Final = r"always|never|from now on|in (?:the )?future|going forward|henceforth|(?:every|each) ?time|whenever"
# Of answers: "it always makes me grin when I see it" asks for nothing.
_WHEN_ASKED: Final = r"(?:when(?:ever)?|if|(?:every|each|any) ?time)\s+i\s+(?:ask|say|write|send|want|need)\b"
_STANDING = re.compile(
    # "Always …", "Please never …", "When I ask about …, …"
    rf"^[^\w\n]*(?:please\s+)?(?:(?:{_FOR_GOOD})\b|{_WHEN_ASKED})"
    # "Include the version, always, when I ask about libraries"
    rf"|\b(?:{_FOR_GOOD})\b[^.!?\n]{{0,200}}\b{_WHEN_ASKED}",
    re.IGNORECASE | re.MULTILINE,
)


def is_standing(text: str) -> bool:
    """Say whether a message of the user reads as an instruction for all later answers."""
    return len(text) <= _MOST_CHARS and _STANDING.search(text) is not None


_ABOUT_ANSWERS = re.compile(
    r"\b(?:answer|repl(?:y|ies)|respon[ds]|explanation|explain|format|bullet|emoji|tone|concise|brief|verbose|jargon"
    r"|step[- ]by[- ]step|address(?:ed)? (?:as|by)|be called|call (?:him|her|them)|translat|summar(?:y|ies|ize)"
    r"|(?:in|speaks?|write) (?:english|french|german|spanish|italian|portuguese|dutch|norwegian|chinese|japanese))",
    re.IGNORECASE,
)


def is_about_answers(content: str) -> bool:
    """Say whether a fact tells how the user wants to be answered."""
    return _ABOUT_ANSWERS.search(content) is not None
