"""What was said, as the memory model reads it: dated, one line each, the user's new messages numbered. Pure."""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Final

from memory.core.dates import leading_stamp, stamped_day, with_dates
from memory.message import StoredMessage
from memory.text import one_line

logger = logging.getLogger(__name__)

MAX_USER_CHARS: Final = 4000
# Of a longer message, a book pasted into the chat, beginning and end are read.
MAX_READ_CHARS: Final = 100_000
# What the assistant said is there to understand the user's next words; its beginning and end do that.
MAX_CONTEXT_CHARS: Final = 600
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SENTENCE_END = re.compile(r"[.!?…][\"')\]]*\s|[。！？\n]")  # noqa: RUF001 - full-width punctuation is meant
_SPACE = re.compile(r"\s")


def in_pieces(messages: Iterable[StoredMessage], limit: int = MAX_USER_CHARS) -> list[StoredMessage]:
    """Return the messages with the user's new ones cut into pieces of at most `limit` characters, each with its id.

    A piece ends with a sentence or a word where it can, and states the date that its message begins with. Of a message
    of more than `MAX_READ_CHARS` the middle is left out, and the log says so.
    """
    return [piece for message in messages for piece in _pieces(message, limit)]


def _pieces(message: StoredMessage, limit: int) -> list[StoredMessage]:
    if message.role != "user" or message.seen or len(message.text) <= limit:
        return [message]
    parts = [message.text]
    surplus = len(message.text) - MAX_READ_CHARS
    if surplus > 0:
        logger.warning("of message %s %d of %d characters are not read", message.id, surplus, len(message.text))
        parts = [message.text[: MAX_READ_CHARS // 2], message.text[-MAX_READ_CHARS // 2 :]]
    stamp = f"{leading_stamp(message.text)} ".lstrip()
    texts = [text for part in parts for text in _cut(part, limit - len(stamp))]
    return [replace(message, text=f"{stamp}{text}" if at else text) for at, text in enumerate(texts)]


def _cut(text: str, limit: int) -> Iterator[str]:
    """Yield a text in parts of at most `limit` characters, without the white space between them."""
    start = 0
    while start < len(text):
        end = start + limit if len(text) - start <= limit else _end(text, start, limit)
        if part := text[start:end].strip():
            yield part
        start = end


def _end(text: str, start: int, limit: int) -> int:
    """Return where the last sentence of a part ends, or else its last word; in its second half, or else anywhere."""
    half, full = start + limit // 2, start + limit
    sentences = [found.end() for found in _SENTENCE_END.finditer(text, half, full)]
    spaces = [found.end() for found in _SPACE.finditer(text, half, full)]
    return (sentences or spaces or [full])[-1]


def read_chars(message: StoredMessage) -> int:
    """Return how many characters of a message, in however many pieces, the model is shown."""
    if message.role == "user":
        return min(len(message.text), MAX_USER_CHARS if message.seen else MAX_READ_CHARS)
    return min(len(message.text), MAX_CONTEXT_CHARS)


def new_messages(messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Return the messages that facts may come from, in the order of their numbers (from 1)."""
    return [message for message in messages if message.role == "user" and not message.seen and message.text.strip()]


def render_dialogue(messages: Sequence[StoredMessage]) -> str:
    """Return the messages, one line each: a number in brackets for those of `new_messages`, a dash for context."""
    numbers = {id(message): n for n, message in enumerate(new_messages(messages), 1)}
    return "\n".join(
        _line(message, f"[{numbers[id(message)]}]" if id(message) in numbers else "-") for message in messages
    )


def _line(message: StoredMessage, mark: str) -> str:
    limit = MAX_USER_CHARS if message.role == "user" else MAX_CONTEXT_CHARS
    text = shortened(message.text, limit)
    day = day_of(message)
    if day is None:
        return f"{mark} {message.role}, date unknown: {text}"
    return f"{mark} {message.role}, {_DAYS[day.weekday()]} {day.isoformat()}: {with_dates(text, day)}"


def day_of(message: StoredMessage) -> date | None:
    """Return the day that "yesterday" in a message is relative to; `None` if its time cannot be read.

    It is the day it was written, as its own offset has it, or the earlier one that it states at its beginning.
    """
    stated = stamped_day(leading_stamp(message.text))
    try:
        written = datetime.fromisoformat(message.time).date()
    except ValueError:
        return stated
    return stated if stated and stated < written else written


def shortened(text: str, limit: int) -> str:
    """Return text on one line; from the middle of a long one so much is left out that it has `limit` characters."""
    line = one_line(text)
    half = (limit - 3) // 2
    return line if len(line) <= limit else f"{line[:half]}...{line[-half:]}"
