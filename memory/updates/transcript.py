"""What of a conversation is worth remembering, and which of its pending messages the user edited away. Pure."""

import math
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from memory.message import StoredMessage, stored_id, to_stored
from memory.text import flush_hash
from memory.updates.entry import Entry

SCHEDULED = "[SCHEDULED]"
"""How a user message begins that a scheduler sent, not a person."""


def latest_turn(messages: Sequence[BaseMessage]) -> tuple[BaseMessage, ...]:
    """Return the newest turn: every message since the answer before it.

    Human messages whose own turn failed before an answer belong to it, so that a failed turn is not forgotten.
    """
    return tuple(messages[_turn_start(messages) :])


def _turn_start(messages: Sequence[BaseMessage]) -> int:
    last_human = max((at for at, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    answered = (
        at
        for at, message in enumerate(messages[: max(last_human, 0)])
        if isinstance(message, AIMessage) and not message.tool_calls
    )
    return max(answered, default=-1) + 1


def to_turn(messages: Sequence[BaseMessage], time: str, speaker: str | None = None) -> tuple[StoredMessage, ...]:
    """Return the newest turn as memory keeps it, after the answer it replies to, which is marked as seen.

    A "yes" needs its question.

    An answer to a scheduler is left out, as is all of a scheduled turn when it is read.

    Args:
        messages: Messages of one thread, oldest first.
        time: When they were said, ISO 8601.
        speaker: As for `to_stored`.
    """
    answer = {stored_id(message.id) for message in messages[: _turn_start(messages)][-1:]}
    context = [one for one in strip_scheduled(to_stored(messages, time)) if one.id in answer]
    return (*(replace(one, seen=True) for one in context), *to_stored(latest_turn(messages), time, speaker))


def is_scheduled(message: StoredMessage) -> bool:
    """Say whether a scheduler sent the message, not a person."""
    return message.role == "user" and message.text.lstrip().startswith(SCHEDULED)


def strip_scheduled(messages: Iterable[StoredMessage]) -> tuple[StoredMessage, ...]:
    """Return the messages without scheduled turns: a `[SCHEDULED]` user message and all up to the next user message."""
    kept: list[StoredMessage] = []
    scheduled = False
    for message in messages:
        if message.role != "assistant":
            scheduled = is_scheduled(message)
        if not scheduled:
            kept.append(message)
    return tuple(kept)


def exchanges(messages: Iterable[StoredMessage]) -> tuple[tuple[StoredMessage, ...], ...]:
    """Return the messages grouped: what a person said and the replies to it; leading replies are a group alone."""
    groups: list[list[StoredMessage]] = []
    for message in messages:
        if message.role != "assistant" or not groups:
            groups.append([])
        groups[-1].append(message)
    return tuple(map(tuple, groups))


def unseen(messages: Iterable[StoredMessage], flushed: Collection[str]) -> tuple[StoredMessage, ...]:
    """Return what an extraction has to read: new messages, and seen ones where they give new ones their meaning.

    A seen message stays where its exchange holds something new or answers something new, and the reply just before
    an exchange stays with it, so that no question is read without its "yes" and no "yes" without its question.

    Args:
        messages: Messages of one thread, oldest first.
        flushed: Hashes (`memory.text.flush_hash`) of what was flushed before in this thread.
    """
    everything = [replace(one, seen=one.seen or flush_hash(one.role, one.text) in flushed) for one in messages]
    kept: dict[str, StoredMessage] = {}
    opening: tuple[StoredMessage, ...] = ()
    for exchange in exchanges(everything):
        exchange_and_opening = opening + exchange
        if any(not one.seen for one in exchange_and_opening):
            kept.update((one.id, one) for one in exchange_and_opening)
        opening = exchange[-1:] if exchange[-1].role == "assistant" else ()
    return tuple(kept.values())


@dataclass(frozen=True, slots=True)
class ThreadView:
    """What a thread holds, whichever of its branches it goes on from.

    Attributes:
        ids: The ids of its messages as memory keeps them, and of the messages whose ids its summary remembers.
        is_complete: Whether the summary stands for no others: it remembers only the newest.
        begun: When the turn began that saw the thread so, in seconds since the epoch: what was written down since was
            said in a run beside it. Infinite where nobody knows.
    """

    ids: Container[str]
    is_complete: bool = True
    begun: float = math.inf


def without_edits(entries: Sequence[Entry], view: ThreadView, until: float) -> list[Entry]:
    """Return the pending turns of a thread whose edited messages are others now, with their ids.

    Args:
        entries: What is pending of the thread, in the order in which it was written down.
        view: What the thread holds now.
        until: When that was, in seconds since the epoch.
    """
    turns = [entry for entry in entries if entry.kind == "turn"]
    gone, changed = edited_away(entries, view), []
    for entry in turns:
        before = tuple(one.id for one in entry.messages if one.id in gone and one.id in entry.edited_away)
        now = replace(entry, edited_away=tuple(one.id for one in entry.messages if one.id in gone))
        # From an entry that was written after the view nothing more is taken, nor from one that was said in a run
        # beside it, as later turns began when both had been said. A message that is back is given back in any case.
        if now.edited_away != before and entry.created > until:
            now = replace(entry, edited_away=before)
        elif now.edited_away != before and (entry.overlapped or _is_beside(entry, view)):
            now = replace(entry, edited_away=before, overlapped=True)
        if now != entry:
            changed.append(now)
    return changed


def edited_away(entries: Iterable[Entry], view: ThreadView) -> frozenset[str]:
    """Return the ids of pending messages that the user edited away, on the branch that the thread goes on from.

    That the thread lacks a message is no proof, as somebody may have trimmed it. It is edited away only if neither
    the thread, nor a cut, nor a summary has it or anything that was said after it, and if what was said right before
    it is still there, or was edited away too. What was edited away before stays so until it is there again.

    Where the view is not complete, the summary may stand for what it does not name, but only for what is older than
    all it names: then a message counts as edited away only if it was written down after one that the thread has.

    Args:
        entries: What is pending of the thread, in the order in which it was written down.
        view: What the thread holds now.
    """
    pending = list(entries)
    turns = [entry for entry in pending if entry.kind == "turn"]
    held = {one.id for entry in pending for one in entry.messages if entry.kind == "cut" or one.id in view.ids}
    before = _predecessors(turns)
    # Whoever trims a thread takes its beginning away: what was said before a held message was not edited away.
    kept, open_ends = set(held), list(held)
    while open_ends:
        new = before.get(open_ends.pop(), set()) - kept
        kept |= new
        open_ends.extend(new)
    gone = {identity for entry in turns for identity in entry.edited_away} - kept
    is_newer = view.is_complete
    for message in (message for entry in turns for message in entry.messages):
        is_newer = is_newer or message.id in held
        if is_newer and message.id not in kept and message.id in before and before[message.id] <= held | gone:
            gone.add(message.id)
    return frozenset(gone)


def _is_beside(entry: Entry, view: ThreadView) -> bool:
    """Say whether a turn was written down by a run that went on beside the one whose view this is."""
    # An answer that is made again is of the same turn, whose question the thread has.
    asked = [one.id for one in entry.messages if one.role != "assistant" and not one.seen]
    return entry.created > view.begun and not all(identity in view.ids for identity in asked)


def _predecessors(turns: Iterable[Entry]) -> dict[str, set[str]]:
    """Return what was said right before each new message of the turns: nothing, where a thread begins."""
    before: dict[str, set[str]] = {}
    for messages in (entry.messages for entry in turns):
        before.update((first.id, before.get(first.id, set())) for first in messages[:1] if not first.seen)
        for one, following in pairwise(messages):
            before.setdefault(following.id, set()).add(one.id)
    return before
