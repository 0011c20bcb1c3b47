"""What was said, as the memory model reads it. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, tzinfo
from itertools import pairwise
from typing import Final

from memory.message import StoredMessage
from memory.text import WEEKDAYS, one_line

# Near the ends of Python's calendar, "yesterday" is no date at all.
_YEARS: Final = range(1900, 2101)
# A longer message is read in pieces, so that one prompt of a small memory model can hold each beside the rules.
MAX_USER_CHARS: Final = 4000
# What the assistant said is there to understand the user's next words; its beginning and end do that. Where these
# words stand by themselves, less of it does.
MAX_CONTEXT_CHARS: Final = 600
MAX_PASSED_CHARS: Final = 240
# A reply of so few words may lean on what was said before without pointing at it: "I'd rather have the red one."
_LEANING: Final = 12
_SENTENCE_ENDS: Final = (". ", "! ", "? ", "\n", "\u3002", "\uff01", "\uff1f")


def in_pieces(messages: Iterable[StoredMessage]) -> list[StoredMessage]:
    """Return the messages with the user's new ones cut into pieces that one prompt can hold, each with its id.

    A piece ends with a sentence or a word where it can.
    """
    pieces: list[StoredMessage] = []
    for message in messages:
        is_long = message.role == "user" and not message.seen and len(message.text) > MAX_USER_CHARS
        pieces += [replace(message, text=text) for text in _cut(message.text)] if is_long else [message]
    return pieces


def _cut(text: str) -> Iterator[str]:
    """Yield a text in parts of at most `MAX_USER_CHARS`, without the white space between them.

    A part ends with the last sentence in its second half, or else with the last word there, or else anywhere.
    """
    while len(text := text.strip()) > MAX_USER_CHARS:
        ends = (
            max(text.rfind(mark, MAX_USER_CHARS // 2, MAX_USER_CHARS) for mark in marks)
            for marks in (_SENTENCE_ENDS, " ")
        )
        end = next((at + 1 for at in ends if at > 0), MAX_USER_CHARS)
        yield text[:end].rstrip()
        text = text[end:]
    if text:
        yield text


def new_messages(messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Return the messages that facts may come from, in the order of their numbers (from 1)."""
    return [message for message in messages if message.role == "user" and not message.seen and message.text.strip()]


def render_dialogue(messages: Sequence[StoredMessage], zone: tzinfo | None = None) -> str:
    """Return the messages, one line each: a number in brackets for those of `new_messages`, a dash for context.

    What follows the last new message is left out: it says nothing about the words before it, and is read as context
    with the words that follow it.
    """
    numbers = {id(message): n for n, message in enumerate(new_messages(messages), 1)}
    last = max((at for at, message in enumerate(messages) if id(message) in numbers), default=-1)
    # A reply of a few words may not be understood without the whole of what was said before it.
    taken_up = {id(before) for before, reply in pairwise(messages) if len(reply.text.split()) <= _LEANING}
    lines = []
    for message in messages[: last + 1]:
        label = f"[{numbers[id(message)]}]" if id(message) in numbers else "-"
        limit = MAX_CONTEXT_CHARS if id(message) in taken_up else MAX_PASSED_CHARS
        text = shortened(message.text, MAX_USER_CHARS if message.role == "user" else limit)
        day = day_written(message, zone)
        when = f"{WEEKDAYS[day.weekday()].capitalize()} {day.isoformat()}" if day else "date unknown"
        lines.append(f"{label} {message.speaker}, {when}: {text}")
    return "\n".join(lines)


def day_written(message: StoredMessage, zone: tzinfo | None = None) -> date | None:
    """Return the day that "yesterday" in a message is relative to: that it was written, in a zone or as its time tells.

    `None` if its time cannot be read, or is of a year that no chat is from.
    """
    try:
        written = datetime.fromisoformat(message.time)
        local = written.astimezone(zone) if zone and written.tzinfo else written
    except (ValueError, OverflowError):
        return None
    return local.date() if local.year in _YEARS else None


def shortened(text: str, limit: int) -> str:
    """Return text on one line; from the middle of a long one so much is left out that it has `limit` characters."""
    line = one_line(text)
    half = (limit - 3) // 2
    return line if len(line) <= limit else f"{line[:half]}...{line[-half:]}"


# "A black cat", "in Oslo, since May": a reply of so few words to a question is an answer to it.
_SHORT: Final = 4
_ASKS = re.compile("[?\uff1f]")


def line_before(message: StoredMessage, messages: Sequence[StoredMessage]) -> str:
    """Return what the assistant said directly before a message, which it may be the reply to; else nothing.

    What the assistant told somebody else is left out: it may say again what they said of themselves.
    """
    at = next((n for n, each in enumerate(messages) if each is message), 0)
    if not at or messages[at - 1].role != "assistant" or (at > 1 and messages[at - 2].role == "other"):
        return ""
    return messages[at - 1].text


def answers(reply: str, before: str) -> bool:
    """Say whether a reply is a few words to a question, whose sense the question tells."""
    return 0 < len(reply.split()) <= _SHORT and not _ASKS.search(reply) and _ASKS.search(before) is not None
