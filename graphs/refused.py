"""What a model could not read: its images, sounds and files are left out, with a note in their place. Pure.

One message must not make a thread unusable: a provider refuses the whole prompt for one image that it cannot read,
in this turn and in every later one. The answer that was given without it remembers what was left out, by the
message's id: so it holds on the branch where it happened, and for the model that refused.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from langchain_core.messages import AIMessage, BaseMessage

from memory.context.tokens import media_kind

REFUSED_KEY = "refused_content"
"""Where an answer says what its model could not read: `{"model": name, "content": [[message id, kind], …]}`."""

NOTE = "[{kind} left out: the model cannot read it]"
ATTACHMENT = "attachment"
"""The kind of what is neither text nor anything that has a name here."""

Refused = frozenset[tuple[str, str]]
"""The id of a message, and a kind of content in it."""

NOTHING: Refused = frozenset()

_NAMES = {
    "image": ("image", "vision", "picture", "photo"),
    "audio": ("audio", "sound", "speech"),
    "video": ("video",),
    "file": ("file", "pdf", "document"),
}
# What a provider says after such words is what it would have read.
_ACCEPTED = re.compile(r"supported (?:values|types|formats)|expected|must be|one of")


def content_of(message: BaseMessage) -> Refused:
    """Return what a message carries beside its text."""
    blocks = [] if isinstance(message.content, str) else message.content
    kinds = (_kind(block, message) for block in blocks)
    return frozenset((message.id or "", kind) for kind in kinds if kind)


def without(message: BaseMessage, refused: Refused) -> BaseMessage:
    """Return the message with a note in the place of what was refused."""
    if not content_of(message) & refused:
        return message
    blocks: list[str | dict[str, object]] = []
    for block in message.content:
        kind = _kind(block, message)
        is_refused = (message.id or "", kind) in refused
        blocks.append({"type": "text", "text": NOTE.format(kind=kind)} if is_refused else block)
    return message.model_copy(update={"content": blocks})


def refused_more(messages: Sequence[BaseMessage], refused: Refused, reason: str) -> Refused | None:
    """Return what to leave out once a provider refused these messages; `None` if all that it may have meant is.

    First what its words name among what is new since the last answer, then all that is new, then all.

    Args:
        messages: What the provider was sent, with what was left out already.
        refused: What that was.
        reason: The provider's words.
    """
    everything = [content_of(message) for message in messages]
    answered = max((at for at, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
    new = frozenset().union(*everything[answered + 1 :])
    blamed = _ACCEPTED.split(reason.lower(), maxsplit=1)[0]
    named = {kind for kind, names in _NAMES.items() if any(name in blamed for name in names)}
    tries = (frozenset(one for one in new if one[1] in named), new, frozenset().union(*everything))
    return next((refused | more for more in tries if more - refused), None)


def refused_before(messages: Iterable[BaseMessage], model: str) -> Refused:
    """Return what a model could not read in earlier turns; a client may have written anything there."""
    said = [one.additional_kwargs.get(REFUSED_KEY) for one in messages if isinstance(one, AIMessage)]
    of_model = [one for one in said if isinstance(one, Mapping) and one.get("model") == model]
    contents = [one["content"] for one in of_model if isinstance(one.get("content"), list)]
    return frozenset(
        (str(pair[0]), str(pair[1]))
        for content in contents
        for pair in content
        if isinstance(pair, list | tuple) and len(pair) == 2
    )


def remembering(answer: AIMessage, model: str, refused: Refused) -> AIMessage:
    """Return the answer with what its model could not read."""
    if not refused:
        return answer
    content = sorted([list(pair) for pair in refused])
    kept = {**answer.additional_kwargs, REFUSED_KEY: {"model": model, "content": content}}
    return answer.model_copy(update={"additional_kwargs": kept})


def _kind(block: object, message: BaseMessage) -> str:
    """Return the kind of a content block, or nothing for text, and for what the model says beside it."""
    if not isinstance(block, Mapping):
        return ""
    kind = media_kind(block)
    if kind is not None or isinstance(message, AIMessage):
        return kind or ""
    return "" if block.get("type") == "text" else ATTACHMENT
