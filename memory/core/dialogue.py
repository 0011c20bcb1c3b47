"""What was said, as the memory model reads it: dated, one line each, the user's new messages numbered. Pure."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Final

from memory.core.dates import with_dates
from memory.message import StoredMessage
from memory.text import one_line

MAX_USER_CHARS: Final = 4000
# What the assistant said is there to understand the user's next words; its beginning and end do that.
MAX_CONTEXT_CHARS: Final = 600
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


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
    """Return the day a message was written, as its own offset has it; `None` if its time cannot be read."""
    try:
        return datetime.fromisoformat(message.time).date()
    except ValueError:
        return None


def shortened(text: str, limit: int) -> str:
    """Return text on one line; from the middle of a long one so much is left out that it has `limit` characters."""
    line = one_line(text)
    half = (limit - 3) // 2
    return line if len(line) <= limit else f"{line[:half]}...{line[-half:]}"
