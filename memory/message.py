"""One message as memory keeps it: text, who said it, and when. What the outbox, the journal and extraction share."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Literal, Self

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """What one side said.

    Attributes:
        id: The message's id in its thread.
        role: `user` for human messages, `assistant` for the model's.
        text: Its sanitized text, without tool calls, images or other blocks.
        time: When it was said, ISO 8601 with an offset.
        seen: `True` if it was flushed before and is here only as context.
        edit: The mark of the user's newest edit by hand when it was said (`memory.control`); empty if unknown.
    """

    id: str
    role: Role
    text: str
    time: str
    seen: bool = False
    edit: str = field(default="", compare=False)

    def to_json(self) -> dict[str, object]:
        """Return the JSON form that the store keeps."""
        value = asdict(self)
        return value if self.edit else {name: each for name, each in value.items() if name != "edit"}

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """Return the message of a stored JSON form; `ValueError` if it is none."""
        try:
            role = value["role"]
            if role not in ("user", "assistant"):
                raise ValueError(f"role must be user or assistant, not {role!r}")
            seen, edit = bool(value.get("seen", False)), str(value.get("edit") or "")
            return cls(str(value["id"]), role, str(value["text"]), str(value["time"]), seen, edit)
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a stored message: {value!r}") from error


def find_gone(
    conversations: Iterable[tuple[str, Sequence[StoredMessage]]], is_gone: Callable[[str, StoredMessage], bool]
) -> dict[str, frozenset[str]]:
    """Return the ids of the messages that go and of the replies to them, by thread.

    Args:
        conversations: Messages, oldest first, each after the thread they are from.
        is_gone: Says whether a message of a thread goes.
    """
    found: dict[str, frozenset[str]] = {}
    for thread_id, messages in conversations:
        if gone := with_replies(messages, {one.id for one in messages if is_gone(thread_id, one)}):
            found[thread_id] = found.get(thread_id, frozenset()) | gone
    return found


def with_replies(messages: Iterable[StoredMessage], gone: Collection[str]) -> frozenset[str]:
    """Return those ids that are gone, and the ids of the replies to them: an echo says what the message said."""
    found: set[str] = set()
    is_reply_gone = False
    for message in messages:
        if message.role == "user":
            is_reply_gone = message.id in gone
        if is_reply_gone or message.id in gone:
            found.add(message.id)
    return frozenset(found)


def iso_time(seconds: float) -> str:
    """Return seconds since the epoch as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
