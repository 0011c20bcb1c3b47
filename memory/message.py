"""One message as memory keeps it: text, who said it, and when. What the outbox, the journal and extraction share."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
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
    """

    id: str
    role: Role
    text: str
    time: str
    seen: bool = False

    def to_json(self) -> dict[str, object]:
        """Return the JSON form that the store keeps."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """Return the message of a stored JSON form; `ValueError` if it is none."""
        try:
            role = value["role"]
            if role not in ("user", "assistant"):
                raise ValueError(f"role must be user or assistant, not {role!r}")
            return cls(str(value["id"]), role, str(value["text"]), str(value["time"]), bool(value.get("seen", False)))
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a stored message: {value!r}") from error


def iso_time(seconds: float) -> str:
    """Return seconds since the epoch as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
