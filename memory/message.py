"""One message as memory keeps it: text, who said it, and when. What the outbox, the journal and extraction share."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from operator import attrgetter
from typing import Any, Literal, Self, TypeVar

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    MessageLikeRepresentation,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from memory.forms import plain
from memory.text import after_thoughts, digest, fit_name, normalize, sanitize, without_middle

Message = TypeVar("Message", bound=BaseMessage)
_ID = attrgetter("id")
Role = Literal["user", "assistant", "other"]

GivenMessages = MessageLikeRepresentation | Sequence[MessageLikeRepresentation]
"""One message or several, in any form that LangChain takes: an object, a text, `(role, content)`, a mapping."""


TOLD_KEY = "palimpsest_told"
"""Marks what a run told the user in place of an empty answer; all but the user count it as empty."""

PLAIN = (HumanMessage, AIMessage, ToolMessage, SystemMessage)
"""The types of nearly all messages: looking here takes a third of the time of pydantic's `isinstance`."""


TEXT_TYPES = ("text", "input_text", "output_text")
"""What clients call a block that somebody wrote; the latter two are names of OpenAI, which LangChain does not read."""

_SIDES = ("user", "assistant", "system")


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """What one side said.

    Attributes:
        id: The message's id in its thread.
        role: `user` for what the user said, `other` for other people in the thread, `assistant` for the model.
        text: Its sanitized text, without tool calls, images or other blocks; of a very long one beginning and end.
        time: When it was said, ISO 8601 with an offset.
        seen: `True` if it was flushed before and is here only as context.
        edit: The number of the user's newest edit by hand when it was said (`memory.control`); 0 if unknown.
        name: What the client called the person who said it; empty if it did not.
    """

    id: str
    role: Role
    text: str
    time: str
    seen: bool = False
    edit: int = field(default=0, compare=False)
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", without_middle(self.text))
        if self.name:
            object.__setattr__(self, "name", fit_name(self.name))

    @property
    def speaker(self) -> str:
        """Who said it, in a model's lines; a person called like one of the sides is `another …`."""
        if self.role != "other":
            return self.role
        return f"another {self.name}" if normalize(self.name) in _SIDES else self.name

    def heard(self, speaker: str) -> Self:
        """Return the message as the user's or somebody else's, by the name that the user's messages carry."""
        if self.role == "assistant" or not self.name:
            return self
        return replace(self, role=_said_by(self.name, speaker))

    def to_json(self) -> dict[str, object]:
        """Return the JSON form that the store keeps."""
        return {name: each for name, each in plain(self).items() if each or name not in ("edit", "name")}


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
        if message.role != "assistant":
            is_reply_gone = message.id in gone
        if is_reply_gone or message.id in gone:
            found.add(message.id)
    return frozenset(found)


def iso_time(seconds: float) -> str:
    """Return seconds since the epoch as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def day_of(time: str, zone: tzinfo | None = None) -> str:
    """Return the calendar day (ISO 8601) of a time in a zone, or in UTC; a time without an offset is UTC."""
    moment = datetime.fromisoformat(time)
    with suppress(OverflowError):  # the calendar's first or last day, which is what some programs write for "never"
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(zone or UTC)
    return moment.date().isoformat()


def as_messages(given: GivenMessages) -> list[BaseMessage]:
    """Return messages in any form that LangChain takes as its objects, each with an id.

    A message without an id gets one made of speaker, text and how often these came before: the same each time the
    conversation is given. What was given is not changed.

    Args:
        given: Messages of one thread, oldest first. What memory keeps (`StoredMessage`) stays as it is.

    Raises:
        ValueError: If a message has no form that LangChain takes.
    """
    listed = _listed(given)
    with suppress(AttributeError):  # no Python step for each: it may be a whole thread
        if all(map(_ID, listed)):
            return listed
    messages = convert_to_messages(listed)
    said: Counter[tuple[str, str]] = Counter()
    identified: list[BaseMessage] = []
    for message in messages:
        what = (role_of(message, "") or message.type, said_in(message) or sanitize(without_middle(repr(message))))
        identity = message.id or f"content-{digest(*what, str(said[what]))[:32]}"
        said[what] += 1
        identified.append(message if message.id else message.model_copy(update={"id": identity}))
    return identified


def to_stored(messages: Sequence[BaseMessage], time: str, speaker: str | None = None) -> tuple[StoredMessage, ...]:
    """Return what people and the model said; tool output, system text and messages without text are left out.

    Args:
        messages: Messages of one thread, oldest first.
        time: When they were said, ISO 8601.
        speaker: The name that the user's messages carry (`speaker_of`); by default as these messages tell.
    """
    given = as_messages(messages)
    speaker = speaker_of(names_in(given)) if speaker is None else speaker
    return tuple(
        StoredMessage(stored_id(message.id), role, text, time, name=message.name or "")
        for message in given
        if (role := role_of(message, speaker)) and (text := said_in(message))
    )


def speaker_of(names: Iterable[str], known_as: str = "") -> str:
    """Return the name that the user's messages carry in a thread; empty where they carry none.

    Where all people's messages have one name, a client sends it for its only user. Where more than one person speaks,
    those without a name are the user's, and those with the name that the server knows.

    Args:
        names: The names of people's messages, empty for one without.
        known_as: What the server calls the user, if it does.
    """
    heard = {_same(name) for name in names}
    return heard.pop() if len(heard) == 1 else _same(known_as)


def names_in(messages: Iterable[BaseMessage]) -> set[str]:
    """Return the names of people's messages, empty for one without; what a program wrote in their place has none."""
    return {one.name or "" for one in messages if isinstance(one, HumanMessage) and not is_made(one)}


def _same(name: str) -> str:
    """Return the form in which two spellings of one name are equal: clients write "Ada Lovelace" as "ada_lovelace"."""
    return normalize(fit_name(name).replace("_", " ").replace("-", " ")) if name else ""


def _said_by(name: str, speaker: str) -> Literal["user", "other"]:
    return "user" if not name or _same(name) in ("", _same(speaker)) else "other"


def said_in(message: BaseMessage) -> str:
    """Return what memory reads of a message's text: sanitized, without the middle of a very long one."""
    return sanitize(without_middle(text_of(spoken(message)))).strip()


def text_of(message: BaseMessage) -> str:
    """Return a message's text, in whichever form it was sent."""
    content = message.content
    return content if isinstance(content, str) else "".join(map(_text_in, content))


def _text_in(block: str | Mapping[str, Any]) -> str:
    if isinstance(block, str):
        return block
    text = block.get("text") if block.get("type", "text") in TEXT_TYPES else ""
    return text if isinstance(text, str) else ""


def all_spoken(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return messages without the thoughts in a model's text."""
    return tuple(changed(messages, spoken))


def changed(messages: Iterable[Message], change: Callable[[Message], Message]) -> list[Message]:
    """Return messages, changed where they are more than a text without tags: long threads pay for a look at each."""
    changed = [*messages]
    for at, message in enumerate(changed):
        fields = message.__dict__  # three times as quick as attributes of a pydantic model
        content = fields["content"]
        if fields["additional_kwargs"] or not isinstance(content, str) or "<" in content:
            changed[at] = change(message)
    return changed


def spoken(message: Message) -> Message:
    """Return what a model said in a message, without the thoughts in its text; the message itself is not changed."""
    if not isinstance(message, AIMessage):
        return message
    if message.additional_kwargs.get(TOLD_KEY):
        return message.model_copy(update={"content": ""})
    blocks = [message.content] if isinstance(message.content, str) else message.content
    said = [*blocks]
    for at, block in enumerate(blocks):
        if isinstance(block, str):
            said[at] = after_thoughts(block)
        elif isinstance(text := block.get("text"), str):
            said[at] = {**block, "text": after_thoughts(text)}
    if said == blocks:
        return message
    return message.model_copy(update={"content": said[0] if isinstance(message.content, str) else said})


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


def without_made(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return the messages that no program wrote in somebody's place."""
    # Hardly one of a long thread has anything there: no call for each.
    return [one for one in messages if not one.__dict__["additional_kwargs"] or not is_made(one)]


def role_of(message: BaseMessage, speaker: str) -> Role | None:
    """Return whose words a message is; `None` for nobody's.

    Args:
        message: The message.
        speaker: The name that the user's messages carry (`speaker_of`).
    """
    if is_made(message):
        return None
    if isinstance(message, HumanMessage):
        return _said_by(message.name or "", speaker)
    return "assistant" if isinstance(message, AIMessage) else None


def messages_of(
    messages: GivenMessages | Sequence[BaseMessage | StoredMessage], time: str
) -> tuple[StoredMessage, ...]:
    """Return messages of one thread, all of one sort, as memory keeps them; LangChain's were said at `time`."""
    listed = _listed(messages)
    ready = tuple(each for each in listed if isinstance(each, StoredMessage))
    return ready or to_stored(listed, time)


def _listed(given: Any) -> list[Any]:
    """Return what was given as a list: of one, where it is one message, as `add_messages` reads it."""
    is_pair = isinstance(given, tuple) and [*map(type, given)] in ([str, str], [str, list])
    return [given] if is_pair or isinstance(given, str | Mapping | BaseMessage) else list(given)
