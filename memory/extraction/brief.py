"""Extraction as a small model can do it: message by message, each answered with a list of plain sentences. Pure.

A model of one or two billion parameters loses messages when it reads many at once, and fields of a fact when it must
fill in six. Here it reads one message, in a conversation that begins with examples, and writes sentences. What is left
of a fact is decided by rules: its source is the message, its category and what it corrects are told by its words.
"""

import re
from collections.abc import Generator, Sequence
from typing import Any, Final, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from memory import prompts
from memory.config import MemoryConfig
from memory.extraction.answer import Answer, parse_sentences
from memory.extraction.days import with_dates
from memory.extraction.dialogue import MAX_CONTEXT_CHARS, answers, day_of, line_before, new_messages, shortened
from memory.extraction.foreign_examples import examples_for
from memory.extraction.form import object_schema
from memory.extraction.overlooked import with_overlooked
from memory.extraction.reasons import tells, with_reasons
from memory.extraction.retelling import in_third_person
from memory.facts.fact import Fact
from memory.facts.words import words
from memory.message import StoredMessage
from memory.text import fold, one_line, sentences, word_set

# The model names no confidence: what it writes in this form is what the user said.
CONFIDENCE: Final = 0.9
# A small model repeats itself until something ends it. A message of a sentence or two holds a few facts.
_A_FEW: Final = 4
_MOST: Final = 12
_CHARS_PER_FACT: Final = 120
_SENTENCE_CHARS: Final = 240
# "Rome" is said by "Roma", and "Oslo" by "Oslo's".
_BEGINNING: Final = 3
_WORD = re.compile(r"[^\W\d_]+")
_USER: Final = ("User", "Nutzer")


class ExtractionCall(NamedTuple):
    """One call of the model: what it is sent, and the schema of its answer."""

    prompt: Sequence[BaseMessage]
    schema: dict[str, Any]


def read_briefly(
    messages: Sequence[StoredMessage], shown: Sequence[Fact], config: MemoryConfig
) -> Generator[ExtractionCall, str, Answer]:
    """Ask for each new message of the user what it tells, and return all of it as one answer.

    Each call repeats the one before and adds a message, so that a server that keeps the prompt reads only that one.

    Args:
        messages: What was said, oldest first.
        shown: The known facts that a new one may correct.
        config: The longest fact, and the prompt if another than the shipped one.
    """
    prompt: list[BaseMessage] = [SystemMessage(config.extraction_prompt or prompts.BRIEF_EXTRACTION)]
    # A small model writes in the language of its examples, whatever language it is told to write in.
    for said, noted in examples_for(" ".join(message.text for message in new_messages(messages))):
        prompt += [HumanMessage(said), AIMessage(noted)]
    facts: list[dict[str, object]] = []
    heard = _beginnings(" ".join([*(message.text for message in messages), *(fact.content for fact in shown), *_USER]))
    for number, message in enumerate(new_messages(messages), 1):
        told = _told(message)
        asked = _shown(message, told, messages)
        if not asked:
            continue
        day, most = day_of(message), min(_MOST, _A_FEW + len(message.text) // _CHARS_PER_FACT)
        sentence = {"type": "string", "maxLength": min(_SENTENCE_CHARS, config.max_fact_chars)}
        schema = object_schema(facts={"type": "array", "maxItems": most, "items": sentence})
        described = {"title": "facts", "description": "What the message tells.", **schema}
        raw = yield ExtractionCall((*prompt, HumanMessage(asked)), described)
        notes = [
            about_its_subject(each, message.text)
            for each in parse_sentences(raw)[:most]
            if is_statement(each) and _names_in(each) <= heard
        ]
        parts = sentences(told)
        notes = [note for note in notes if note]
        notes += _wishes(parts, notes)
        kept = with_reasons(with_overlooked(notes, parts), parts, config.max_fact_chars)
        facts += [
            {
                "message": number,
                "action": "new",
                "known": 0,
                "content": with_dates(content, day) if day else content,
                "category": note.category,
                "confidence": CONFIDENCE,
            }
            for note in kept
            if (content := in_third_person(note.text))
        ]
        # A model that saw itself note nothing goes on to note nothing.
        prompt += [HumanMessage(asked), AIMessage(raw)] if notes else []
    return Answer(tuple(_corrected(facts, [fact.content for fact in shown], new_messages(messages))))


def _names_in(note: str) -> frozenset[str]:
    """Return the beginnings of the words with a capital letter within a note: one that nobody said was made up."""
    return _beginnings(" ".join(word for word in note.split()[1:] if word.strip("\"'(\u201c")[:1].isupper()))


def _beginnings(text: str) -> frozenset[str]:
    return frozenset(word[:_BEGINNING] for word in _WORD.findall(fold(text)))


def _told(message: StoredMessage) -> str:
    """Return what a message states, with dates behind "yesterday" and the like."""
    text, day = without_requests(one_line(message.text)), day_of(message)
    return with_dates(text, day) if day else text


def _shown(message: StoredMessage, told: str, messages: Sequence[StoredMessage]) -> str:
    """Return what of a message the model reads; empty if it only asks, thanks, greets or acknowledges.

    A question that the message answers stands before it.
    """
    before = line_before(message, messages)
    asked = [part for part in sentences(before) if part.endswith("?")]
    is_answer = bool(asked) and answers(message.text, before)
    if not is_answer and not words(_ACKNOWLEDGED.sub("", told)):
        return ""
    return f'Asked "{shortened(asked[-1], MAX_CONTEXT_CHARS)}", the user says: {told}' if is_answer else told


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


_WISH = re.compile(
    r"please (?P<wish>.{0,300}?\b(?:always|never|from now on|in future|"
    r"(?:answer|write to|speak to|talk to|call|address) me)\b.{0,300}?)[.!]?$",
    re.IGNORECASE,
)


def _wishes(parts: Sequence[str], notes: Sequence[str]) -> list[str]:
    """Return how the user wants to be answered where no note tells it: a small model may obey instead of noting."""
    found = [in_third_person(match["wish"]) for part in parts if (match := _WISH.match(part))]
    return [f"User prefers the assistant to {wish}." for wish in found if not any(tells(note, wish) for note in notes)]


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
    r"\b(?:ok|okay|haha|ha|great|perfect|cool|nice|fine|good one|i see|got it|sounds good|hi|hello|hey|bye|goodbye|"
    r"good (?:morning|evening|night)|thanks?(?: you)?(?: (?:so|very) much| a lot)?(?: for .{0,40})?)\b[,.!]?",
    re.IGNORECASE,
)
_IDLE = re.compile(
    r"(?:the )?user (?:asks|asked|is asking|wonders|wants to know|would like to know|needs? (?:advice|help|to know)|"
    r"is looking for (?:advice|tips|help)|says?\b|said\b|thanks?\b|greets?\b|"
    r"does(?:n['\u2019]t| not) know(?: yet)?[.!]?$)"
    r"|el usuario (?:pregunta|quiere saber|agradece|saluda|da las gracias)\b"
    r"|der nutzer (?:fragt|möchte wissen|will wissen|bedankt|dankt?e?|grüßt)\b"
    r"|l['\u2019]utilisateur (?:demande|veut savoir|souhaite savoir|remercie|salue)\b"
    r"|o usuário (?:pergunta|quer saber|agradece|cumprimenta)\b"
    r"|пользователь (?:спрашивает|хочет знать|благодарит|здоровается|приветствует)\b"
    r"|ユーザーは.{0,80}(?:尋ねて|質問して|聞いて|知りたい|感謝して|挨拶)",
    re.IGNORECASE,
)


# Of whom it tells cannot be known where it stands alone.
_POINTING = re.compile(r"(?:he|she|it|they|this|that|these|those)\b", re.IGNORECASE)


def is_statement(sentence: str) -> bool:
    """Say whether a sentence tells something by itself, and does not only ask, or report that somebody asked."""
    is_question = sentence.rstrip().endswith(("?", "\uff1f"))
    return not (is_question or _IDLE.match(sentence) or _POINTING.match(sentence))


_USER_DOES = re.compile(r"User (?P<verb>[^\W\d_]+)")
# Who may stand before a verb and be the user, also where "I" is left out: "Just moved to Oslo."
_SELF: Final = word_set(
    "i we just also already finally recently still never always only then now so and but have had to"
)
_SOMEBODY: Final = word_set("he she it they who that which")


def about_its_subject(sentence: str, source: str) -> str:
    """Return "Tom found a job" for "User found a job" where the user said so of Tom; empty where it is unclear of whom.

    A small model makes the user the subject of what others do. It keeps the verb, which leads to who does it.
    """
    claimed = _USER_DOES.match(sentence)
    if claimed is None:
        return sentence
    said, rest = source.split(), sentence.removeprefix("User")
    places = (n for n, word in enumerate(said) if n and word.rstrip(".,;:!?") == claimed["verb"])
    at = next((n for n in places if _goes_on(said[n:], rest)), 0)
    subject = said[at - 1] if at else ""
    if not subject.isalpha() or subject.casefold() in _SELF:
        return sentence
    if subject.casefold() in rest.casefold():  # "Karis told me": of "User told Karis" neither half can be trusted
        return ""
    if at > 1 and said[at - 2].casefold() in ("my", "our"):
        return f"User's {subject}{rest}"
    if subject.casefold() in _SOMEBODY:
        return ""
    return f"{subject}{rest}" if subject[0].isupper() else sentence


def _goes_on(said: Sequence[str], rest: str) -> bool:
    """Say whether the first telling word behind a verb, if its sentence has one, is also told: "is Ada", or "is 71"."""
    end = next((n for n, word in enumerate(said, 1) if word.endswith((".", "!", "?"))), len(said))
    behind = next(filter(None, map(words, said[1:end])), frozenset[str]())
    return behind <= words(rest)


# What tells that something is no longer as it was.
_CHANGES = re.compile(
    r"\b(?:not (?:in|on|at|the|a|my|to)|no longer|any ?more|already|actually|instead|changed|moved|sold|quit|left|"
    r"stopped|now\b|sorry|correction|i meant|wrong|after all|postponed|cancell?ed|earlier than|later than)\b",
    re.IGNORECASE,
)
_SHARED: Final = 0.4
_LEAST_SHARED: Final = 2


def _corrected(
    facts: Sequence[dict[str, object]], known: Sequence[str], new: Sequence[StoredMessage]
) -> list[dict[str, object]]:
    """Return the facts with what each corrects: a known one, or an earlier one of the same answer, which then goes."""
    kept: list[dict[str, object]] = []
    for fact in facts:
        content, number = str(fact["content"]), fact["message"]
        source = next(message.text for n, message in enumerate(new, 1) if n == number)
        if _CHANGES.search(source):
            kept = [
                one for one in kept if one["message"] == number or not is_about_the_same(content, str(one["content"]))
            ]
            at = next((n for n, text in enumerate(known, 1) if is_about_the_same(content, text)), 0)
            if at:
                fact = {**fact, "action": "corrects", "known": at}
        kept.append(fact)
    return kept


def is_about_the_same(content: str, other: str) -> bool:
    """Say whether two facts share so many words that the newer one replaces the older one where something changed."""
    mine, its = words(content), words(other)
    shared = len(mine & its)
    return shared >= _LEAST_SHARED and shared >= _SHARED * min(len(mine), len(its))
