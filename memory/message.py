"""One message as memory keeps it: text, who said it, and when. What the outbox, the journal and extraction share."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Literal, Self

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from memory.text import digest, sanitize

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
        edit: The token of the user's newest edit by hand when it was said (`memory.control`); empty if unknown.
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


def to_stored(messages: Iterable[BaseMessage], time: str) -> tuple[StoredMessage, ...]:
    """Return what people and the model said; tool output, system text and messages without text are left out.

    A message without an id gets one from its role, its text and how often both came before.

    Args:
        messages: Messages of one thread, oldest first.
        time: When they were said, ISO 8601.
    """
    stored: list[StoredMessage] = []
    said: Counter[tuple[Role, str]] = Counter()
    for message in messages:
        role, text = _role(message), sanitize(message.text).strip()
        if role and text:
            identity = stored_id(message.id) or f"content-{digest(role, text, str(said[role, text]))[:32]}"
            said[role, text] += 1
            stored.append(StoredMessage(identity, role, text, time))
    return tuple(stored)


def stored_id(message_id: str | None) -> str:
    """Return an id as it is, or its digest if a store would refuse it: a client may choose any string, or none."""
    given = message_id or ""
    return given if sanitize(given) == given else digest(given)[:32]


def is_made(message: BaseMessage) -> bool:
    """Say whether a program wrote a message in somebody's place.

    A client hides such messages from the user; LangChain's and deepagents' middleware names itself as their source, as
    in the summary that it puts in the place of what people said.
    """
    return bool(message.additional_kwargs.get("hide_from_ui") or message.additional_kwargs.get("lc_source"))


def _role(message: BaseMessage) -> Role | None:
    if is_made(message):
        return None
    if isinstance(message, HumanMessage):
        return "user"
    return "assistant" if isinstance(message, AIMessage) else None


def messages_of(messages: Iterable[BaseMessage | StoredMessage], time: str) -> tuple[StoredMessage, ...]:
    """Return messages of one thread, all of one sort, as memory keeps them; LangChain's were said at `time`."""
    mixed = tuple(messages)
    ready = (each for each in mixed if isinstance(each, StoredMessage))
    return (*ready, *to_stored((each for each in mixed if isinstance(each, BaseMessage)), time))
