"""What fits and where to cut: pure decisions on messages and their token counts, long messages shortened."""

import logging
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from memory.context.tokens import TokenCounter, media_kind, media_tokens

logger = logging.getLogger(__name__)

SHORTENED_NOTE = "\n[… shortened: about {tokens} tokens left out …]\n"
MEDIA_NOTE = "[left out: too large]"
_HEAD = 0.6
"""The share of the kept text that comes from its beginning: a long message names its subject there, and asks its
question at either end."""
_SHORT = 0.125
"""An answer is short that takes this share of what a cut leaves. With a longer one, two calls may be due."""
_WARNED: deque[str | None] = deque(maxlen=64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many tokens the messages of one view may have, and how far a cut goes down.

    Attributes:
        max_tokens: What the view has at most: leading system message, summary and messages.
        max_summary_tokens: The share reserved for the summary.
        max_tokens_before_summary: New messages of more tokens than this are cut even where the budget still holds.
        keep_tokens: A cut goes down to so many tokens of messages; half of what the summary leaves by default, and at
            most: nearer to the brim the next summary would be due before as much is new as was kept.
        keep_messages: A cut goes down to so many messages at most, in whole units, and to `keep_tokens`.

    Raises:
        ValueError: If a number cannot be meant; the message names it.
    """

    max_tokens: int
    max_summary_tokens: int = 256
    max_tokens_before_summary: int | None = None
    keep_tokens: int | None = None
    keep_messages: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_tokens", "max_summary_tokens", "max_tokens_before_summary", "keep_tokens", "keep_messages"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value!r}")
        if self.max_summary_tokens >= self.max_tokens:
            raise ValueError(
                f"max_summary_tokens ({self.max_summary_tokens}) must be less than max_tokens ({self.max_tokens})"
            )

    def is_exceeded(self, *, messages: int, beside: int) -> bool:
        """Return whether it is time to cut: so many tokens of messages, and `beside` of system message and summary."""
        early = self.max_tokens_before_summary is not None and messages > self.max_tokens_before_summary
        return early or messages + beside > self.max_tokens

    def room(self, beside: int) -> int:
        """Return the tokens left for messages when system message and summary take `beside` of them."""
        return max(0, self.max_tokens - beside)

    def keep(self, system: int) -> "Keep":
        """Return what a cut leaves, next to a leading system message of so many tokens."""
        room = self.room(system + self.max_summary_tokens)
        half = min(room, self.max_tokens_before_summary or room) // 2
        tokens = half if self.keep_tokens is None else min(self.keep_tokens, half)
        return Keep(tokens=tokens, messages=self.keep_messages, least_cut=tokens)

    def keep_ahead(self, share: float, *, system: int, messages: int, beside: int) -> "Keep | None":
        """Return what stays now of what the next cut will leave, so that its summary can be written before it is due.

        What is said until then will stay as well, so that much less stays of what is there now. That way the messages
        that leave now are among those that leave then.

        Args:
            share: Of `max_tokens`; while less than this is there, it is too early, unless it is time to cut.
            system: Tokens of the leading system message.
            messages: Tokens of the messages.
            beside: Tokens of system message and summary.

        Returns:
            `None` if it is too early: too little is there, or all of it could stay.
        """
        room, keep = self.room(beside), self.keep(system)
        if self.is_exceeded(messages=messages, beside=beside):
            return keep
        to_come = max(0, min(room, self.max_tokens_before_summary or room) - messages)
        if messages + beside < share * self.max_tokens or to_come > keep.tokens:
            return None
        return replace(keep, tokens=keep.tokens - to_come)


@dataclass(frozen=True, slots=True)
class Keep:
    """What a cut leaves.

    Attributes:
        tokens: Tokens of messages at most.
        messages: Number of messages at most, if there is such a limit.
        least_cut: Summarizing fewer tokens of messages than this is not worth a model call.
    """

    tokens: int
    messages: int | None
    least_cut: int


def units(messages: Sequence[BaseMessage]) -> list[range]:
    """Return the index ranges that must stay together: a model's message with all results of its tool calls.

    Providers refuse a call without its results and a result without its call. Results may come in any order and
    after further messages; ranges that overlap are one unit.
    """
    asked: dict[str | None, int] = {}
    found: list[range] = []
    for index, message in enumerate(messages):
        start = index
        if isinstance(message, AIMessage):
            asked.update((call["id"], index) for call in message.tool_calls)
        elif isinstance(message, ToolMessage):
            start = asked.get(message.tool_call_id, index)
        while found and found[-1].stop > start:
            start = min(start, found.pop().start)
        found.append(range(start, index + 1))
    return found


def pinned(messages: Sequence[BaseMessage], groups: Sequence[range]) -> set[int]:
    """Return the positions in `groups` that never leave: the newest user message's, and the newest of all.

    Without its question a turn cannot be answered; without its newest results a tool is called again.
    """
    newest = {len(groups) - 1} if groups else set()
    for position in range(len(groups) - 1, -1, -1):
        if has_question(messages, groups[position]):
            return newest | {position}
    return newest


def has_question(messages: Sequence[BaseMessage], group: range) -> bool:
    """Say whether a user message is among these."""
    return any(isinstance(messages[index], HumanMessage) for index in group)


def choose_cut(messages: Sequence[BaseMessage], counts: Sequence[int], keep: Keep, *, ahead: bool = False) -> list[int]:
    """Return the indices of the messages to summarize, oldest first; empty if no summary is worth its call.

    What stays is a run of the newest units within `keep`, and the pinned ones. A short answer leaves with its question,
    if another exchange stays. When the pinned ones alone are so large that little is left to summarize, nothing is:
    those are shortened in the view, or a long tool loop under a huge question would ask for a summary at each of its
    steps.

    Args:
        messages: The conversation, oldest first.
        counts: Tokens of each message.
        keep: What may stay.
        ahead: Whether the cut is made after a further question, so that none of these is pinned any longer.
    """
    groups = units(messages)
    stays = set() if ahead else pinned(messages, groups)
    pinned_counts = [counts[index] for position in stays for index in groups[position]]
    tokens, number = sum(pinned_counts), len(pinned_counts)
    kept_all = tokens <= keep.tokens
    run: list[int] = []
    exchanges = unasked = 0
    for position in range(len(groups) - 1, -1, -1):
        if position in stays:
            continue
        size = sum(counts[index] for index in groups[position])
        tokens += size
        number += len(groups[position])
        if tokens > keep.tokens or (keep.messages is not None and number > keep.messages):
            break
        run.append(position)
        unasked += size
        if has_question(messages, groups[position]):
            exchanges, unasked = len(run), 0
    else:
        return []
    if exchanges and unasked <= keep.tokens * _SHORT:
        del run[exchanges:]
    stays.update(run)
    leaving = [index for position, group in enumerate(groups) if position not in stays for index in group]
    worth = kept_all or sum(counts[index] for index in leaving) >= keep.least_cut
    return leaving if worth else []


def drop_oldest(messages: Sequence[BaseMessage], counts: Sequence[int], room: int) -> list[int]:
    """Return the indices that stay when the oldest units go until the rest fits; pinned ones stay in any case."""
    groups = units(messages)
    spared = pinned(messages, groups)
    excess = sum(counts) - room
    dropped: set[int] = set()
    for position, group in enumerate(groups):
        if excess <= 0:
            break
        if position not in spared:
            excess -= sum(counts[index] for index in group)
            dropped.update(group)
    return [index for index in range(len(messages)) if index not in dropped]


def level(counts: Sequence[int], floors: Sequence[int], room: int) -> int:
    """Return the length to which the longest messages are shortened so that all fit; 0 if even that is too long.

    Args:
        counts: Tokens of each message.
        floors: Tokens of each message without its text, which shortening cannot go below.
        room: Tokens that they may have together.
    """
    sizes = list(zip(counts, floors, strict=True))

    def is_too_long(limit: int) -> bool:
        return sum(min(count, max(floor, limit)) for count, floor in sizes) > room

    return bisect_left(range(1, max(counts, default=0) + 1), True, key=is_too_long)


def fit(messages: Sequence[BaseMessage], room: int, counter: TokenCounter, *, drop: bool) -> list[BaseMessage]:
    """Return a view of the messages of `room` tokens at most; the messages themselves stay as they are.

    The newest user message is always in it. Where the pinned ones alone do not fit, the longest are shortened, and
    a warning is logged, once for each newest user message: one turn has several prompts.

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
    asked = next((message.id for message in reversed(view) if isinstance(message, HumanMessage)), None)
    if asked not in _WARNED:
        _WARNED.append(asked)
        logger.warning("%d messages do not fit %d tokens: the longest are shortened for the model", len(view), room)
    return _shortened(view, room, counter)


def _shortened(view: list[BaseMessage], room: int, counter: TokenCounter) -> list[BaseMessage]:
    """Shorten the longest until all fit; what cannot be shortened enough goes, the newest user message never."""
    while view:
        counts = counter.each(view)
        # What a message has without its text. Within its fair share it will not be shortened, and need not be tried.
        floors = [
            count if count <= room // len(view) else counter.message(shorten(message, 0, counter))
            for message, count in zip(view, counts, strict=True)
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
    """Return a copy of a message of about `tokens` tokens: head and tail of its text around a visible note.

    Media stay where they need half of the tokens at most, else a note takes their place; tool calls stay whole. A
    message that cannot get so small is returned with the note as its only text, or as it is if that is smaller.
    """
    count = counter.message(message)
    text = _text(message)
    media = _media(message, tokens // 2)
    note = SHORTENED_NOTE.format(tokens=max(0, count - tokens))
    bare = _with_text(message, note, media)
    chars = int(len(text) * max(0, tokens - counter.message(bare)) / max(1, count))
    while chars > 0:
        head = int(chars * _HEAD)
        copy = _with_text(message, f"{text[:head]}{note}{text[len(text) - (chars - head) :]}", media)
        if counter.message(copy) <= tokens:
            return copy
        chars = int(chars * 0.8)
    return min(bare, message, key=counter.message)


def shorten_text(text: str, tokens: int, counter: TokenCounter) -> str:
    """Return a text as a message of about `tokens` tokens can have it; the message's frame counts too."""
    message = HumanMessage(text)
    return text if counter.message(message) <= tokens else shorten(message, tokens, counter).text


def _text(message: BaseMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    parts = (block if isinstance(block, str) else block.get("text") for block in message.content)
    return "\n".join(part for part in parts if part and isinstance(part, str))


def _media(message: BaseMessage, room: int) -> list[str | dict[str, Any]]:
    """Return the media blocks of a message if they fit, else a note in their place; nothing where there are none."""
    if isinstance(message.content, str):
        return []
    blocks = [block for block in message.content if isinstance(block, dict) and media_kind(block)]
    fits = sum(map(media_tokens, blocks)) <= room
    return [*blocks] if fits else [{"type": "text", "text": MEDIA_NOTE}]


def _with_text(message: BaseMessage, text: str, media: Sequence[str | dict[str, Any]] = ()) -> BaseMessage:
    content = [*media, {"type": "text", "text": text}] if media else text
    return message.model_copy(update={"content": content})
