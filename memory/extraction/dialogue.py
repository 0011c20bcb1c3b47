"""What was said, as the memory model reads it, and which words of the assistant a user makes their own. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import pairwise
from typing import Final

from memory.extraction.days import is_possible, leading_stamp, stamped_day, with_dates
from memory.extraction.grounding import is_thanks_or_greeting
from memory.message import Role, StoredMessage
from memory.text import WEEKDAYS, one_line, sentences, word_set

# A longer message is read in pieces, so that one prompt of a small memory model can hold each beside the rules.
MAX_USER_CHARS: Final = 4000
# What the assistant said is there to understand the user's next words; its beginning and end do that. Where these
# words stand by themselves, less of it does.
MAX_CONTEXT_CHARS: Final = 600
MAX_PASSED_CHARS: Final = 240
# A reply of so few words may lean on what was said before without pointing at it: "I'd rather have the red one."
_LEANING: Final = 12
_SENTENCE_END = re.compile(r"[.!?…][\"')\]]*\s|[。！？\n]")  # noqa: RUF001 - full-width punctuation is meant
_SPACE = re.compile(r"\s")


def in_pieces(messages: Iterable[StoredMessage], limit: int = MAX_USER_CHARS) -> list[StoredMessage]:
    """Return the messages with the user's new ones cut into pieces of at most `limit` characters, each with its id.

    A piece ends with a sentence or a word where it can, and states the date that its message begins with.
    """
    pieces: list[StoredMessage] = []
    for message in messages:
        if message.role != "user" or message.seen or len(message.text) <= limit:
            pieces.append(message)
            continue
        # Each piece states the date that the message begins with: "yesterday" counts from it in all of them.
        stamp = f"{leading_stamp(message.text)} ".lstrip()
        texts = enumerate(_cut(message.text, limit - len(stamp)))
        pieces += [replace(message, text=f"{stamp}{text}" if at else text) for at, text in texts]
    return pieces


def _cut(text: str, limit: int) -> Iterator[str]:
    """Yield a text in parts of at most `limit` characters, without the white space between them.

    A part ends with the last sentence in its second half, or else with the last word there, or else anywhere.
    """
    start = 0
    while start < len(text):
        half, end = start + limit // 2, start + limit
        if end < len(text):
            sentences = [found.end() for found in _SENTENCE_END.finditer(text, half, end)]
            spaces = [found.end() for found in _SPACE.finditer(text, half, end)]
            end = (sentences or spaces or [end])[-1]
        if part := text[start:end].strip():
            yield part
        start = end


def read_chars(message: StoredMessage) -> int:
    """Return how many characters of a message, in however many pieces, the model is shown."""
    if message.role == "user":
        return min(len(message.text), MAX_USER_CHARS) if message.seen else len(message.text)
    return min(len(message.text), MAX_CONTEXT_CHARS)


def new_messages(messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Return the messages that facts may come from, in the order of their numbers (from 1)."""
    return [message for message in messages if message.role == "user" and not message.seen and message.text.strip()]


def render_dialogue(messages: Sequence[StoredMessage]) -> str:
    """Return the messages, one line each: a number in brackets for those of `new_messages`, a dash for context.

    What follows the last new message is left out: it says nothing about the words before it, and is read as context
    with the words that follow it.
    """
    numbers = {id(message): n for n, message in enumerate(new_messages(messages), 1)}
    last = max((at for at, message in enumerate(messages) if id(message) in numbers), default=-1)
    # A reply of a few words may not be understood without the whole of what was said before it.
    taken_up = {
        id(before)
        for before, reply in pairwise(messages)
        if len(reply.text.split()) <= _LEANING or takes_up(reply.text, before.text)
    }
    lines = []
    for message in messages[: last + 1]:
        label = f"[{numbers[id(message)]}]" if id(message) in numbers else "-"
        limit = MAX_CONTEXT_CHARS if id(message) in taken_up else MAX_PASSED_CHARS
        text = shortened(message.text, MAX_USER_CHARS if message.role == "user" else limit)
        if day := day_of(message):
            when, text = f"{WEEKDAYS[day.weekday()].capitalize()} {day.isoformat()}", with_dates(text, day)
        else:
            when = "date unknown"
        lines.append(f"{label} {message.speaker}, {when}: {text}")
    return "\n".join(lines)


def day_of(message: StoredMessage) -> date | None:
    """Return the day that "yesterday" in a message is relative to; `None` if its time cannot be read.

    It is the day it was written, as its own offset has it, or the earlier one that it states at its beginning.
    """
    stated = stamped_day(leading_stamp(message.text))
    try:
        written = datetime.fromisoformat(message.time).date()
    except ValueError:
        return stated
    return written if is_possible(written) and not (stated and stated < written) else stated


def shortened(text: str, limit: int) -> str:
    """Return text on one line; from the middle of a long one so much is left out that it has `limit` characters."""
    line = one_line(text)
    half = (limit - 3) // 2
    return line if len(line) <= limit else f"{line[:half]}...{line[-half:]}"


# "A black cat", "in Oslo, since May": a reply of so few words to a question is an answer to it.
_SHORT: Final = 4
_AGREES: Final = word_set("""
    yes yeah yep yup sure right exactly correct indeed absolutely definitely agreed true ok okay deal perfect precisely
    ja jawohl genau stimmt richtig klar gerne einverstanden sí si claro exacto vale correcto oui exactement d'accord
    bien sûr certo esatto sim claro exato klopt inderdaad да верно точно конечно はい うん ええ そう そうです
    是 是的 对 對 好 好的 嗯 네 예
""")
# "The second one", "I'll take that", "let's go there": what is meant stands in what was said before.
_POINTS = re.compile(
    r"\b(?:the\s(?:first|second|third|last|former|latter|other)(?:\sone|\soption)?|(?:that|this)\sone|both\sof\s(?:them|those)"
    r"|(?:i['\u2019]ll|i\swill|let['\u2019]s|i['\u2019]d|i\swould|we['\u2019]ll|i['\u2019]m\sgoing\sto)\s(?:\w+\s){1,3}?"
    r"(?:that|there|it|this|them|those|one)"
    r"|da[sn]?\s(?:erste|zweite|dritte|letzte)|die\s(?:erste|zweite|dritte|letzte)|el\ssegundo|la\ssegunda|el\sprimero)\b",
    re.IGNORECASE,
)
_PRAISES = re.compile(r"\bsounds\s(?:good|great|perfect|fine)\b", re.IGNORECASE)
# What the assistant offers to do itself: who agrees to that says nothing about themselves.
_OFFERS = re.compile(
    r"(?:(?:well|so|sure|great|also|then|if\s(?:you\s(?:like|want|wish)|that\shelps)),?\s){0,2}"
    r"(?:(?:shall|should|can|could|may)\si\b|i\s(?:can|could|will|would|may)\b|i['\u2019](?:ll|d)\b|let\sme\b|"
    r"(?:would\syou\slike|do\syou\swant|want)\s(?:me\sto|a|an|some|another)\b|"
    r"(?:soll|kann|darf)\sich\b|ich\s(?:kann|könnte)\b)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")


def affirmed(messages: Sequence[StoredMessage], *, just_now: bool = False) -> Iterator[StoredMessage]:
    """Yield the assistant's messages that the user's next one answers, agrees to or points at.

    What the assistant told somebody else is left out: it may say again what they said of themselves.

    Args:
        messages: The conversation.
        just_now: Leave out those whose answer was seen before.
    """
    asked: Role = "user"
    for before, reply in pairwise(messages):
        if before.role != "assistant":
            asked = before.role
            continue
        if asked == "other" or reply.role != "user" or (just_now and reply.seen):
            continue
        if takes_up(reply.text, before.text):
            yield before


def takes_up(reply: str, before: str) -> bool:
    """Say whether a reply means what was said before it: yes, a few words to a question, or "the second one".

    Thanks do not, nor does a question, nor a few words about something that was no question. To agree to what the
    assistant offers to do is no word about oneself either.
    """
    words = _WORD.findall(reply.casefold())
    if not words or is_thanks_or_greeting(reply):
        return False
    if _POINTS.search(reply):
        return True
    said = sentences(before)
    if said and _OFFERS.match(said[-1]):
        return False
    if words[0] in _AGREES or _PRAISES.search(reply):
        return True
    return len(reply.split()) <= _SHORT and not _asks(reply) and _asks(before)


def _asks(text: str) -> bool:
    return "?" in text or "\uff1f" in text or "か。" in text
