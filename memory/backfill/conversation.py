"""A conversation that was held elsewhere, in the one form that every export comes to. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple, Self

from pydantic import TypeAdapter

from memory.message import Role, StoredMessage, stored_id
from memory.text import digest, sanitize, without_middle

Origin = Literal["chatgpt", "claude", "jsonl"]

PASTED: Final = "pasted-"
"""How the id of a message begins that the user pasted: it is written down, and nothing is learned from it."""

_TOLD: Final = ("id", "role", "name", "text", "time")
_SECONDS = TypeAdapter(datetime)


class Flaw(NamedTuple):
    """One thing in a file that cannot be read, and costs nothing else: where it stands, and what is wrong with it."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """What two sides said, oldest first.

    Attributes:
        origin: Where it was held.
        id: Its id there.
        messages: What was said, under the ids and at the times that it had there.
        goes_on: The first message ended the piece before: it only leads into what follows.
        facts: What the other memory knew of the user; it stands in no conversation.
        left_out: How many things of each kind were not read.
    """

    origin: Origin
    id: str
    messages: tuple[StoredMessage, ...] = ()
    goes_on: bool = False
    facts: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict, compare=False)

    def to_json(self) -> dict[str, object]:
        """Return the JSON form in which it is sent to the memory API."""
        said = [{name: getattr(one, name) for name in _TOLD} for one in self.messages]
        return {"origin": self.origin, "id": self.id, "messages": said, "goes_on": self.goes_on}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], known_as: str = "") -> Self:
        """Return the conversation of that form; `ValueError` for a time that is none.

        Args:
            value: As `to_json` returns it.
            known_as: What the server calls the user, who may be one of several people there.
        """
        said = (said_by(**one) for one in value["messages"])
        heard = [one.heard(known_as) if one.role == "other" else one for one in said if one]
        return cls(value["origin"], text_id(value["id"]), unique(heard), value["goes_on"])


def text_id(value: object) -> str:
    """Return an id as a store takes it; a digest of one that it would not take, empty for what is no text."""
    given = stored_id(value) if isinstance(value, str) else ""
    return given if len(given) <= 200 else digest(given)[:32]


def said_by(role: Role, text: object, time: object, name: str = "", id: object = None) -> StoredMessage | None:  # noqa: A002 - as in JSON
    """Return one message; `None` if it says nothing. `ValueError` without a time.

    Args:
        role: Who said it.
        text: What they said.
        time: When, as ISO 8601 or in seconds since 1970.
        name: What the client called them.
        id: Its id; without one it gets one that is made of what it says.
    """
    said = sanitize(without_middle(text)).strip() if isinstance(text, str) else ""
    if not said:
        return None
    try:
        # Pydantic takes an ISO date without dashes for seconds since 1970.
        moment = datetime.fromisoformat(time) if isinstance(time, str) else _SECONDS.validate_python(time)
        at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise ValueError("time must be ISO 8601, as 2026-05-08T14:00:00+02:00, or seconds since 1970") from None
    return StoredMessage(text_id(id) or f"content-{digest(role, said, at)[:32]}", role, said, at, name=name)


def unique(messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
    """Return the messages in their order, each once; with ids of their own where two have one and differ."""
    found: dict[str, StoredMessage] = {}
    for message in messages:
        if found.setdefault(message.id, message) != message:
            other = replace(message, id=f"{message.id}-{digest(message.role, message.text, message.time)[:8]}")
            found.setdefault(other.id, other)
    return tuple(found.values())
