"""What of a conversation is worth remembering: what people said and the replies to it, each once. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from memory.message import StoredMessage, to_stored
from memory.text import flush_hash

SCHEDULED = "[SCHEDULED]"
"""How a user message begins that a scheduler sent, not a person."""


def latest_turn(messages: Sequence[BaseMessage]) -> tuple[BaseMessage, ...]:
    """Return the newest turn: every message since the answer before it.

    Human messages whose own turn failed before an answer belong to it, so that a failed turn is not forgotten.
    """
    return tuple(messages[_turn_start(messages) :])


def last_answer(messages: Sequence[BaseMessage]) -> tuple[BaseMessage, ...]:
    """Return the answer that the newest turn replies to, at most one message: a "yes" needs its question."""
    return tuple(messages[: _turn_start(messages)][-1:])


def _turn_start(messages: Sequence[BaseMessage]) -> int:
    last_human = max((at for at, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    answered = (
        at
        for at, message in enumerate(messages[: max(last_human, 0)])
        if isinstance(message, AIMessage) and not message.tool_calls
    )
    return max(answered, default=-1) + 1


def to_turn(messages: Sequence[BaseMessage], time: str) -> tuple[StoredMessage, ...]:
    """Return the newest turn as memory keeps it, after the answer it replies to, which is marked as seen.

    An answer to a scheduler is left out, as is all of a scheduled turn when it is read.
    """
    answer = {message.id for message in to_stored(last_answer(messages), time)}
    context = [one for one in strip_scheduled(to_stored(messages, time)) if one.id in answer]
    return (*(replace(one, seen=True) for one in context), *to_stored(latest_turn(messages), time))


def merge(lists: Iterable[tuple[float, Sequence[StoredMessage]]]) -> tuple[StoredMessage, ...]:
    """Return the messages of several lists as one, each id once.

    A message stands at its first place and as of its earliest time, but in the words that were written down last: a
    user may have edited it, and what a summary cut comes first though it was written down after the turns.

    Args:
        lists: In the order of what was said, each after the time at which it was written down; of two that were
            written down at the same time, the later one's words count.
    """
    merged: dict[str, StoredMessage] = {}
    written: dict[str, float] = {}
    for at, message in ((at, one) for at, messages in lists for one in messages):
        known = merged.get(message.id, message)
        words = message if at >= written.get(message.id, at) else known
        written[message.id] = max(at, written.get(message.id, at))
        time, edit = min(known.time, message.time), known.edit or message.edit
        merged[message.id] = replace(words, time=time, edit=edit, seen=known.seen and message.seen)
    return tuple(merged.values())


def is_scheduled(message: StoredMessage) -> bool:
    """Say whether a scheduler sent the message, not a person."""
    return message.role == "user" and message.text.lstrip().startswith(SCHEDULED)


def strip_scheduled(messages: Iterable[StoredMessage]) -> tuple[StoredMessage, ...]:
    """Return the messages without scheduled turns: a `[SCHEDULED]` user message and all up to the next user message."""
    kept: list[StoredMessage] = []
    scheduled = False
    for message in messages:
        if message.role == "user":
            scheduled = is_scheduled(message)
        if not scheduled:
            kept.append(message)
    return tuple(kept)


def exchanges(messages: Iterable[StoredMessage]) -> tuple[tuple[StoredMessage, ...], ...]:
    """Return the messages grouped: a user message and the replies to it; leading replies are a group of their own."""
    groups: list[list[StoredMessage]] = []
    for message in messages:
        if message.role == "user" or not groups:
            groups.append([])
        groups[-1].append(message)
    return tuple(map(tuple, groups))


def unseen(messages: Iterable[StoredMessage], flushed: Collection[str]) -> tuple[StoredMessage, ...]:
    """Return what an extraction has to read: new messages, and seen ones (marked) where they give new ones meaning.

    A seen message stays where its exchange holds something new or answers something new, and the reply just before
    an exchange stays with it, so that no question is read without its "yes" and no "yes" without its question.

    Args:
        messages: Messages of one thread, oldest first.
        flushed: Hashes (`memory.text.flush_hash`) of what was flushed before in this thread.
    """
    marked = [replace(one, seen=one.seen or flush_hash(one.role, one.text) in flushed) for one in messages]
    kept: dict[str, StoredMessage] = {}
    opening: tuple[StoredMessage, ...] = ()
    for exchange in exchanges(marked):
        exchange_and_opening = opening + exchange
        if any(not one.seen for one in exchange_and_opening):
            kept.update((one.id, one) for one in exchange_and_opening)
        opening = exchange[-1:] if exchange[-1].role == "assistant" else ()
    return tuple(kept.values())
