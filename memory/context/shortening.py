"""Messages that are too long even alone: shortened in what the model sees, with a mark where something is missing."""

import logging
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from memory.context.budget import drop_oldest, level, pinned, units
from memory.context.tokens import TokenCounter, is_media, media_tokens

logger = logging.getLogger(__name__)

MARK = "\n[… shortened: about {tokens} tokens left out …]\n"
MEDIA_MARK = "[left out: too large]"
_HEAD = 0.6
"""The share of the kept text that comes from its beginning: a long message names its subject there, and asks its
question at either end."""


def fit(messages: Sequence[BaseMessage], room: int, counter: TokenCounter, *, drop: bool) -> list[BaseMessage]:
    """Return a view of the messages of `room` tokens at most; the messages themselves stay as they are.

    The newest user message is always in it. Where the pinned ones alone do not fit, the longest are shortened, and
    a warning is logged.

    Args:
        messages: What the view is made from, oldest first.
        room: Tokens it may have.
        counter: Counts them.
        drop: Whether the oldest units are left out before anything is shortened.
    """
    view = list(messages)
    counts = counter.each(view)
    if sum(counts) <= room:
        return view
    if drop:
        kept = drop_oldest(view, counts, room)
        view = [view[index] for index in kept]
        if sum(counts[index] for index in kept) <= room:
            return view
    logger.warning("%d messages do not fit %d tokens: the longest are shortened for the model", len(view), room)
    return _shortened(view, room, counter)


def _shortened(view: list[BaseMessage], room: int, counter: TokenCounter) -> list[BaseMessage]:
    """Shorten the longest until all fit; what cannot be shortened enough goes, the newest user message never."""
    while view:
        counts = counter.each(view)
        floors = [
            _floor(message, count, room // len(view), counter) for message, count in zip(view, counts, strict=True)
        ]
        limit = level(counts, floors, room)
        smaller = [
            message if count <= max(limit, floor) else shorten(message, max(limit, floor), counter)
            for message, count, floor in zip(view, counts, floors, strict=True)
        ]
        rest = _without_oldest(view)
        if counter(smaller) <= room or rest is None:
            return smaller
        view = rest
    return view


def _floor(message: BaseMessage, count: int, fair: int, counter: TokenCounter) -> int:
    """Return the tokens of a message without its text; a message within its fair share will not be shortened."""
    return count if count <= fair else counter.message(shorten(message, 0, counter))


def _without_oldest(view: list[BaseMessage]) -> list[BaseMessage] | None:
    """Return the view without its oldest unit that has no newest user message in it; `None` if there is none."""
    groups = units(view)
    newest_user = min(pinned(view, groups))
    if not any(isinstance(view[index], HumanMessage) for index in groups[newest_user]):
        newest_user = -1
    for position, group in enumerate(groups):
        if position != newest_user and len(view) > len(group):
            return view[: group.start] + view[group.stop :]
    return None


def shorten(message: BaseMessage, tokens: int, counter: TokenCounter) -> BaseMessage:
    """Return a copy of a message of about `tokens` tokens: head and tail of its text around a visible mark.

    Media stay where they need half of the tokens at most, else a mark takes their place; tool calls stay whole. A
    message that cannot get so small is returned with the mark as its only text, or as it is if that is smaller.
    """
    count = counter.message(message)
    text = _text(message)
    media = _media(message, tokens // 2)
    mark = MARK.format(tokens=max(0, count - tokens))
    bare = _with_text(message, mark, media)
    chars = int(len(text) * max(0, tokens - counter.message(bare)) / max(1, count))
    while chars > 0:
        copy = _with_text(message, _head_and_tail(text, chars, mark), media)
        if counter.message(copy) <= tokens:
            return copy
        chars = int(chars * 0.8)
    return min(bare, message, key=counter.message)


def shorten_text(text: str, tokens: int, counter: TokenCounter) -> str:
    """Return a text as a message of about `tokens` tokens can have it; the message's frame counts too."""
    message = HumanMessage(text)
    return text if counter.message(message) <= tokens else shorten(message, tokens, counter).text


def _head_and_tail(text: str, chars: int, mark: str) -> str:
    head = int(chars * _HEAD)
    return f"{text[:head]}{mark}{text[len(text) - (chars - head) :]}"


def _text(message: BaseMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(part for part in map(_part_text, message.content) if part)


def _part_text(block: object) -> str:
    if isinstance(block, str):
        return block
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else ""


def _media(message: BaseMessage, room: int) -> list[str | dict[str, Any]]:
    """Return the media blocks of a message if they fit, else a mark in their place; nothing where there are none."""
    if isinstance(message.content, str):
        return []
    blocks = [block for block in message.content if isinstance(block, dict) and is_media(block)]
    fits = sum(map(media_tokens, blocks)) <= room
    return [*blocks] if fits else [{"type": "text", "text": MEDIA_MARK}]


def _with_text(message: BaseMessage, text: str, media: Sequence[str | dict[str, Any]] = ()) -> BaseMessage:
    content = [*media, {"type": "text", "text": text}] if media else text
    return message.model_copy(update={"content": content})
