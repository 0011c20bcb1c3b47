"""A conversation that was held elsewhere, in the one form that every export comes to. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, count
from typing import Any, Final, Literal, NamedTuple, Self

from pydantic import TypeAdapter

from memory.message import Role, StoredMessage, stored_id
from memory.text import digest, sanitize, without_middle
from memory.updates.transcript import exchanges

Origin = Literal["chatgpt", "claude", "jsonl"]

PASTED: Final = "pasted-"
"""How the id of a message begins that the user pasted: it is written down, and nothing is learned from it."""

_TOLD: Final = ("id", "role", "name", "text", "time")
_SECONDS = TypeAdapter(datetime)
# What one pending update holds: as much as one extraction reads.
_PORTION_CHARS: Final = 24_000


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

    @property
    def begun(self) -> str:
        """When the first message was said, ISO 8601 in UTC."""
        return min((message.time for message in self.messages), default="")

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
    """Return the messages in their order, with ids of their own where two have one and say different things."""
    found: dict[str, StoredMessage] = {}
    for message in messages:
        names = chain([message.id], (f"{message.id}-{n}" for n in count(1)))
        named = next(one for one in (replace(message, id=name) for name in names) if found.get(one.id, one) == one)
        found.setdefault(named.id, named)
    return tuple(found.values())


def short_id(message_id: str) -> str:
    """Return by what it is noted that a message was written down: enough within one conversation, and no text."""
    return digest("message", message_id)[:12]


def to_portions(conversation: Conversation, known: Collection[str], limit: int) -> list[tuple[StoredMessage, ...]]:
    """Return what of a conversation is new, cut between exchanges into what is read together, oldest first.

    A portion begins with the reply that its first message answers, marked as seen: a "yes" needs its question.

    Args:
        conversation: All of it.
        known: The `short_id` of each message that was written down before.
        limit: The most messages of one portion; an exchange that alone has more is not cut.
    """
    cut: list[list[StoredMessage]] = []
    before: StoredMessage | None = None
    size = chars = 0
    for exchange in exchanges(conversation.messages):
        fresh = [one for one in exchange if short_id(one.id) not in known]
        if fresh:
            more = sum(len(one.text) for one in fresh)
            if not cut or size + len(fresh) > limit or chars + more > _PORTION_CHARS:
                cut.append([replace(before, seen=True)] if before else [])
                size = chars = 0
            # What is known of an exchange gives the new its meaning.
            cut[-1].extend(one if one in fresh else replace(one, seen=True) for one in exchange)
            size, chars = size + len(fresh), chars + more
        before = exchange[-1] if exchange[-1].role == "assistant" else None
    return [tuple(portion) for portion in cut]
