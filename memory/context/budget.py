"""What fits and where to cut: pure decisions on messages and their token counts, long messages shortened."""

import logging
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from memory.context.tokens import TokenCounter, media_kind, media_tokens
from memory.context.turns import blocks_of

logger = logging.getLogger(__name__)

SHORTENED_NOTE = "\n[… shortened: about {tokens} tokens left out …]\n"
MEDIA_NOTE = "[left out: too large]"
_HEAD = 0.6
"""The share of the kept text that comes from its beginning: a long message names its subject there, and asks its
question at either end."""
_SHORT = 0.125
"""An answer is short that takes this share of what a cut leaves. With a longer one, two calls may be due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many tokens the messages of one view may have, and how far a cut goes down.

    Attributes:
        max_tokens: What the view has at most: leading system message, summary and messages.
        max_summary_tokens: The share reserved for the summary.
        max_tokens_before_summary: New messages of more tokens than this are cut even where the budget still holds.
        keep_tokens: A cut leaves so many tokens of messages; by default, and at most, half of the budget beside the
            summary: if it left more, the next summary would be due after fewer new tokens than were kept.
        keep_messages: A cut goes down to so many messages at most, in whole units, and to `keep_tokens`.
        portion_tokens: One call of a model summarizes so many tokens of messages, without showing the existing summary.
        trigger_messages: It is time to cut when so many messages are there, and not before, whatever their tokens.

    Raises:
        ValueError: If a number cannot be meant; the message names it.
    """

    max_tokens: int
    max_summary_tokens: int = 256
    max_tokens_before_summary: int | None = None
    keep_tokens: int | None = None
    keep_messages: int | None = None
    portion_tokens: int | None = None
    trigger_messages: int | None = None

    def __post_init__(self) -> None:
        for each in fields(Budget):
            if (value := getattr(self, each.name)) is not None and value < 1:
                raise ValueError(f"{each.name} must be at least 1, not {value!r}")
        if self.max_summary_tokens >= self.max_tokens:
            raise ValueError(
                f"max_summary_tokens ({self.max_summary_tokens}) must be less than max_tokens ({self.max_tokens})"
            )

    def is_exceeded(self, counts: Sequence[int], beside: int) -> bool:
        """Return whether it is time to cut messages of so many tokens each, next to `beside` of system and summary."""
        if self.trigger_messages is not None:
            return len(counts) >= self.trigger_messages
        tokens = sum(counts)
        return tokens > (self.max_tokens_before_summary or tokens) or tokens + beside > self.max_tokens

    def room(self, beside: int) -> int:
        """Return the tokens left for messages when system message and summary take `beside` of them."""
        return max(0, self.max_tokens - beside)

    def keep(self, system: int) -> "Keep":
        """Return what a cut leaves, next to a leading system message of so many tokens."""
        room = self.room(system + self.max_summary_tokens)
        half = min(room, self.max_tokens_before_summary or room) // 2
        tokens = half if self.keep_tokens is None else min(self.keep_tokens, half)
        return Keep(tokens, self.keep_messages)

    def keep_ahead(self, share: float, *, system: int, counts: Sequence[int], beside: int) -> "Keep | None":
        """Return what the next cut will leave of today's messages, so that its summary can be written before it is due.

        Messages that come until the cut will stay, so that fewer of today's do: all that leave here leave then, too.

        Args:
            share: Of what makes a cut due; while less than this is there, it is too early, unless it is time to cut.
            system: Tokens of the leading system message.
            counts: Tokens of each message.
            beside: Tokens of system message and summary.

        Returns:
            `None` if it is too early: too little is there, or all of it could stay.
        """
        room, keep, tokens, number = self.room(beside), self.keep(system), sum(counts), len(counts)
        if self.is_exceeded(counts, beside):
            return keep
        if self.trigger_messages is None:
            is_early, further = tokens + beside < share * self.max_tokens, 0
            to_come = min(room, self.max_tokens_before_summary or room) - tokens
        else:
            is_early, further = number < share * self.trigger_messages, self.trigger_messages - number
            # Half of what messages have had so far: a summary of more than will leave would be of no use.
            to_come = further * tokens // (2 * max(1, number))
        stay = keep.messages and keep.messages - further
        if is_early or to_come > keep.tokens or (stay is not None and stay <= 0):
            return None
        return Keep(keep.tokens - to_come, stay)


class Keep(NamedTuple):
    """What a cut leaves: tokens of messages at most, and their number at most, if there is such a limit."""

    tokens: int
    messages: int | None


class Unit(NamedTuple):
    """Messages that must stay together: their places, their tokens, and whether one of the user is among them."""

    places: range
    tokens: int
    asks: bool


def units(messages: Sequence[BaseMessage], counter: TokenCounter) -> list[Unit]:
    """Return the units of a conversation: a model's message is one with all results of its tool calls.

    Providers refuse a call without its results and a result without its call. Results may come in any order and
    after further messages; units that overlap are one.
    """
    asked: dict[str | None, int] = {}
    found: list[Unit] = []
    for index, (message, tokens) in enumerate(zip(messages, counter.each(messages), strict=True)):
        start, asks = index, isinstance(message, HumanMessage)
        if isinstance(message, AIMessage):
            asked.update((call["id"], index) for call in message.tool_calls)
        elif isinstance(message, ToolMessage):
            start = asked.get(message.tool_call_id, index)
        while found and found[-1].places.stop > start:
            joined = found.pop()
            start, tokens, asks = min(start, joined.places.start), tokens + joined.tokens, asks or joined.asks
        found.append(Unit(range(start, index + 1), tokens, asks))
    return found


def newest_question(found: Sequence[Unit]) -> Unit | None:
    """Return the unit with the newest message of the user."""
    return next((unit for unit in reversed(found) if unit.asks), None)


def pinned(found: Sequence[Unit]) -> set[Unit]:
    """Return the units that never leave: the newest user message's, and the newest of all.

    Without its question a turn cannot be answered; without its newest results a tool is called again.
    """
    return {unit for unit in (newest_question(found), *found[-1:]) if unit}


def choose_cut(
    messages: Sequence[BaseMessage], counter: TokenCounter, keep: Keep, *, ahead: bool = False, is_urgent: bool = False
) -> list[BaseMessage]:
    """Return the messages to summarize, oldest first; none if no summary is worth its call.

    The newest units within `keep` stay, and the pinned ones. A short answer leaves with its question, if another
    exchange stays. If the pinned units are larger than all that could leave, nothing is summarized, and the view
    shortens them: a long tool loop under a huge question would otherwise ask for a summary at each of its steps.

    Args:
        messages: The conversation, oldest first.
        counter: Counts them.
        keep: What may stay.
        ahead: Whether the cut is made after a further question, so that none of these is pinned any longer.
        is_urgent: Whether any summary is worth its call.
    """
    found = units(messages, counter)
    stays = set() if ahead else pinned(found)
    tokens, number = sum(unit.tokens for unit in stays), sum(len(unit.places) for unit in stays)
    least = 0 if is_urgent or tokens <= keep.tokens else keep.tokens
    newest_first = [unit for unit in reversed(found) if unit not in stays]
    for place, unit in enumerate(newest_first):
        tokens += unit.tokens
        number += len(unit.places)
        if tokens > keep.tokens or (keep.messages is not None and number > keep.messages):
            exchanges = max((n for n, each in enumerate(newest_first[:place], 1) if each.asks), default=place)
            is_short = sum(each.tokens for each in newest_first[exchanges:place]) <= keep.tokens * _SHORT
            leaving = newest_first[exchanges if is_short else place :][::-1]
            is_worth = sum(each.tokens for each in leaving) >= least
            return [messages[at] for each in leaving for at in each.places] if is_worth else []
    return []


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
    view = [*messages]
    if drop and (excess := counter(view) - room) > 0:
        view = _without_oldest(view, excess, counter, pinned)
    if counter(view) <= room:
        return view
    asked = next((message.id for message in reversed(view) if isinstance(message, HumanMessage)), None)
    _warn(asked)
    while counter(smaller := _shortened(view, room, counter)) > room:
        # What cannot be shortened enough goes, the newest user message never.
        rest = _without_oldest(view, 1, counter, lambda found: {newest_question(found) or found[-1]})
        if len(rest) == len(view):
            break
        view = rest
    return smaller


@lru_cache(maxsize=64)
def _warn(asked: str | None) -> None:
    """Warn once for a user message, by its id."""
    logger.warning("the messages up to %s do not fit the model's budget: the longest are shortened", asked)


def _without_oldest(
    view: Sequence[BaseMessage], excess: int, counter: TokenCounter, spared: Callable[[Sequence[Unit]], set[Unit]]
) -> list[BaseMessage]:
    """Return the messages without their oldest units, until so many tokens are gone or only spared units are left."""
    gone, found = set[int](), units(view, counter)
    stays = spared(found)
    for unit in found:
        if excess > 0 and unit not in stays:
            excess -= unit.tokens
            gone.update(unit.places)
    return [message for at, message in enumerate(view) if at not in gone]


def _shortened(view: Sequence[BaseMessage], room: int, counter: TokenCounter) -> list[BaseMessage]:
    """Return the messages with the longest shortened to one length, at which all fit if they can."""
    counts = counter.each(view)
    # What a message has without its text. Within its fair share it will not be shortened, and need not be tried.
    floors = [
        count if count <= room // len(view) else counter.message(shorten(message, 0, counter))
        for message, count in zip(view, counts, strict=True)
    ]
    sizes = list(zip(view, counts, floors, strict=True))

    def is_too_long(limit: int) -> bool:
        return sum(min(count, max(floor, limit)) for _, count, floor in sizes) > room

    limit = bisect_left(range(1, max(counts) + 1), True, key=is_too_long)
    return [
        message if count <= max(limit, floor) else shorten(message, max(limit, floor), counter)
        for message, count, floor in sizes
    ]


def shorten(message: BaseMessage, tokens: int, counter: TokenCounter) -> BaseMessage:
    """Return a copy of a message of about `tokens` tokens: head and tail of its text around a visible note.

    Media stay if they need half of the tokens at most; else a note takes their place. Tool calls stay whole. A message
    that cannot get so small gets the note as its only text, unless it is smaller as it is.
    """
    count, blocks = counter.message(message), blocks_of(message.content)
    text = "\n".join(said for block in blocks if isinstance(said := block.get("text"), str) and said)
    media = [block for block in blocks if media_kind(block)]
    if sum(map(media_tokens, media)) > tokens // 2:
        media = [{"type": "text", "text": MEDIA_NOTE}]
    note = SHORTENED_NOTE.format(tokens=max(0, count - tokens))

    def saying(said: str) -> BaseMessage:
        return message.model_copy(update={"content": [*media, {"type": "text", "text": said}] if media else said})

    bare = saying(note)
    chars = int(len(text) * max(0, tokens - counter.message(bare)) / max(1, count))
    while chars > 0:
        head = int(chars * _HEAD)
        copy = saying(f"{text[:head]}{note}{text[len(text) - (chars - head) :]}")
        if counter.message(copy) <= tokens:
            return copy
        chars = int(chars * 0.8)
    return min(bare, message, key=counter.message)


def shorten_text(text: str, tokens: int, counter: TokenCounter) -> str:
    """Return a text as a message of about `tokens` tokens can have it; the message's frame counts too."""
    message = HumanMessage(text)
    return text if counter.message(message) <= tokens else shorten(message, tokens, counter).text
