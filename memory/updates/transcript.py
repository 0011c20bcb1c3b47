"""What of a conversation is worth remembering: its newest turn, what was edited away, what a model reads. Pure."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final, Self

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from memory.config import MemoryConfig
from memory.extraction.dialogue import MAX_CONTEXT_CHARS, MAX_USER_CHARS, answers, in_pieces
from memory.message import StoredMessage, stored_id, to_stored
from memory.text import flush_hash
from memory.updates.entry import Entry, LearnedTurn, Said

AnyTurn = Entry | LearnedTurn

SCHEDULED: Final = "[SCHEDULED]"
"""How a user message begins that a scheduler sent, not a person."""
# Among a thread's flushed hashes while its last, scheduled message waits for its reply.
_OPEN: Final = flush_hash("scheduled", "")
AGE: Final = attrgetter("created", "key")
# What was cut is the oldest.
_IN_THREAD: Final = attrgetter("kind", "created", "key")
# A model call reads at most this, times the messages that it may read: a larger prompt may not fit, or bring more facts
# than are believed at once.
_CHARS_PER_MESSAGE: Final = 1_200
BEGINNING: Final = "beginning "
"""With the id of a branch's first question: what stands before the first message of a learned turn."""


def latest_turn(messages: Sequence[BaseMessage]) -> tuple[BaseMessage, ...]:
    """Return the newest turn: every message since the answer before it.

    Human messages whose own turn failed before an answer belong to it, so that a failed turn is not forgotten.
    """
    return tuple(messages[_turn_start(messages) :])


def _turn_start(messages: Sequence[BaseMessage]) -> int:
    is_asked = False
    for at in range(len(messages), 0, -1):
        message = messages[at - 1]
        is_asked = is_asked or isinstance(message, HumanMessage)
        if is_asked and isinstance(message, AIMessage) and not message.tool_calls:
            return at
    return 0


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


def strip_scheduled(messages: Iterable[StoredMessage], *, is_open: bool = False) -> tuple[StoredMessage, ...]:
    """Return the messages without scheduled turns: a `[SCHEDULED]` user message and all up to the next user message.

    Args:
        messages: Messages of one thread, oldest first.
        is_open: Whether replies that they begin with answer a scheduler.
    """
    kept: list[StoredMessage] = []
    for message in messages:
        if message.role != "assistant":
            is_open = is_scheduled(message)
        if not is_open:
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
    said = [*messages]
    everything = [
        replace(one, seen=one.seen or known[-1] in flushed) for one, known in zip(said, hashes_of(said), strict=True)
    ]
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
        alone_until: What was begun before that time is no branch beside it.
        words: Returns messages of the thread by their ids, as said at a time, as far as they may be learned.
    """

    ids: Container[str]
    is_complete: bool = True
    begun: float = math.inf
    alone_until: float = 0.0
    words: Callable[[Collection[str], str], tuple[StoredMessage, ...]] = lambda *_: ()


def without_edits(entries: Sequence[AnyTurn], view: ThreadView, newest: Entry) -> list[AnyTurn]:
    """Return the entries of a thread, with the ids of those of their messages that count as edited away now.

    Args:
        entries: What is pending of the thread, or was learned, in the order in which it was written down.
        view: What the thread holds now.
        newest: The turn that goes on from that.
    """
    turns, until = [entry for entry in entries if entry.kind == "turn"], newest.created
    question, others = asked_in(newest)[-1:], [entry for entry in turns if entry is not newest]
    answered = {asked_in(entry)[-1:] for entry in others if entry.messages[-1].role == "assistant"}
    if question and question in answered:
        view = replace(view, begun=math.inf)  # its answer is made again: what was written down since was not beside it
    gone, now = edited_away(entries, view, newest.first), list[AnyTurn]()
    # One question may have several entries: as the model was asked, and with its answer.
    beside = {asked_in(entry) for entry in entries if entry.overlapped or _is_beside(entry, view)}
    for entry in entries:
        left = tuple(one.id for one in entry.messages if one.id in gone)
        before = tuple(each for each in left if each in entry.edited_away)
        # No message is taken out of an entry that was written after this view, or by a run beside it: this view cannot
        # have it. A message that is back is given back in any case.
        if left != before and entry.created > until:
            left = before
        elif left != before and asked_in(entry) in beside:
            left, entry = before, replace(entry, overlapped=True)
        now.append(replace(entry, edited_away=left))
    return now


def edited_away(entries: Iterable[AnyTurn], view: ThreadView, first: str) -> frozenset[str]:
    """Return the ids of pending messages that the user edited away, on the branch that the thread goes on from.

    A message that the thread lacks may have been trimmed. It was edited away only if neither the thread nor a
    summary has it or any later message, and if the message right before it is still there, or was edited away, too.
    A message that was edited away stays so until the thread has it again.

    An incomplete view has a summary that stands for more messages than it names, all older than those. Then a message
    counts as edited away only if it was written down after one that the thread has. While a complete one has the first
    question, what stood before a message counts as there if memory never read it, as a client wrote it in, and if that
    was nothing: agents leave a question whose model failed out of the next turn.

    Args:
        entries: What is pending of the thread, in the order in which it was written down.
        view: What the thread holds now.
        first: Id of the first question of the branch; empty where nobody knows.
    """
    turns = [entry for entry in entries if entry.kind == "turn"]
    held = {one.id for entry in turns for one in entry.messages if one.id in view.ids}
    # What began as another branch, of which there is no message before, was left where this one goes on.
    ends = {BEGINNING, BEGINNING + first}
    begun = {entry.messages[0].id for entry in turns if first and entry.created >= view.alone_until}
    held |= {each for each in begun - ends if each.startswith(BEGINNING)}
    before = _predecessors(turns)
    # Whoever trims a thread takes its beginning away: what was said before a held message was not edited away.
    kept, open_ends = set(held), list(held)
    while open_ends:
        new = before.get(open_ends.pop(), set()) - kept
        kept |= new
        open_ends.extend(new)
    gone = {identity for entry in turns for identity in entry.edited_away} - kept
    if view.is_complete and first in view.ids:
        unread = set().union(*before.values()) - before.keys()
        held |= {each for each in unread if each == BEGINNING + first or not each.startswith(BEGINNING)}
    is_newer = view.is_complete
    for message in (message for entry in turns for message in entry.messages):
        is_newer = is_newer or message.id in held
        if is_newer and message.id not in kept and message.id in before and before[message.id] <= held | gone:
            gone.add(message.id)
    return frozenset(gone)


def _is_beside(entry: AnyTurn, view: ThreadView) -> bool:
    """Say whether a turn was written down by a run that went on beside the one whose view this is."""
    # An answer that is made again is of the same turn, whose question the thread has.
    return entry.created > view.begun and not all(identity in view.ids for identity in asked_in(entry))


def asked_in(entry: AnyTurn) -> tuple[str, ...]:
    """Return the ids of the new messages of people."""
    return tuple(one.id for one in entry.messages if one.role != "assistant" and not one.seen)


def _predecessors(turns: Iterable[AnyTurn]) -> dict[str, set[str]]:
    """Return what was said right before each new message of the turns: nothing, where a thread begins."""
    before = defaultdict[str, set[str]](set)
    each: Iterator[Sequence[StoredMessage | Said]] = (turn.messages for turn in turns)
    for messages in each:
        ids = [one.id for one in messages]
        for at, one in enumerate(messages):
            if at or not one.seen:
                before[one.id].update(ids[:at][-1:])
    return before


@dataclass(frozen=True, slots=True)
class Reading:
    """What pending entries of one thread hold, and what was flushed of it before.

    Attributes:
        every: Every message once, scheduled ones too, oldest first.
        said: Those of them that no scheduler caused.
        cut: The ids of what of it left the context by a summary.
        flushed: The hashes of what was flushed before (`memory.text.flush_hash`), in the order in which it was.
    """

    every: tuple[StoredMessage, ...]
    said: tuple[StoredMessage, ...]
    cut: frozenset[str]
    flushed: Collection[str]

    @classmethod
    def of(cls, entries: Sequence[Entry], flushed: Collection[str], *, after_erase: bool) -> Self:
        """Merge entries of one thread by message id, without edited messages.

        Args:
            entries: Of one thread, in any order.
            flushed: The hashes of what was flushed before.
            after_erase: Whether the user erased memory at some time. What a summary cut then counts only where a turn
                since the erase holds it too: the rest of the thread is older than the erase and must not come back.
        """
        entries = sorted(entries, key=_IN_THREAD)
        # Who spoke alone at first may not be the user: the newest knows.
        if (speaker := max(entries, key=attrgetter("created")).speaker) is not None:
            entries = [replace(one, messages=tuple(each.heard(speaker) for each in one.messages)) for one in entries]
        listed = [(entry, one) for entry in entries for one in entry.to_learn]
        if after_erase:
            since = {one.id for entry, one in listed if entry.kind == "turn" and not one.seen}
            listed = [
                (entry, one)
                for entry, one in listed
                if entry.kind == "turn" or one.id in since or _hash(one) in flushed
            ]
        every = tuple(_each_once(listed))
        is_open = _OPEN in flushed or any(flush_hash("scheduled", one.text) in flushed for one in every[:1])
        cut = frozenset(one.id for entry, one in listed if entry.kind == "cut")
        return cls(every, strip_scheduled(every, is_open=is_open), cut, flushed)

    @property
    def orders(self) -> frozenset[str]:
        """The ids of what a model read as an order, in whichever update, or what says the same again."""
        return frozenset(one.id for one in self.every if flush_hash("order", one.text) in self.flushed)

    @property
    def for_journal(self) -> tuple[StoredMessage, ...]:
        """What belongs into the journal: all that was new in a turn, and all that left the context by a summary.

        What a turn holds as context only has its line with another turn.
        """
        return tuple(one for one in self.said if one.id in self.cut or not one.seen)

    def portions(self, limit: int) -> list[tuple[StoredMessage, ...]]:
        """Return what an extraction has to read, in portions for one model call each, each with something new.

        It is cut between exchanges. Each piece of a long message counts as an exchange.
        """
        cut: list[list[StoredMessage]] = [[]]
        for exchange in exchanges(in_pieces(unseen(self.said, self.flushed))):
            longer = [*cut[-1], *exchange]
            shown = sum(
                min(len(each.text), MAX_USER_CHARS if each.role == "user" else MAX_CONTEXT_CHARS) for each in longer
            )
            if cut[-1] and (len(longer) > limit or shown > limit * _CHARS_PER_MESSAGE):
                cut.append([])
            cut[-1].extend(exchange)
        return [tuple(portion) for portion in cut if any(not message.seen for message in portion)]

    def flushed_after(self, later: Collection[str], orders: Collection[str], limit: int) -> list[str]:
        """Return what counts as flushed, as scheduled, or as an order once all but the newest is read.

        Args:
            later: Ids of what is still to be read.
            orders: Ids of what a model read as an order.
            limit: So many hashes are kept.
        """
        read = [one for one in self.every if one.id not in later]
        by_people = {one.id for one in self.said}
        known = {one.id: hashes for one, hashes in zip(self.said, hashes_of(self.said), strict=True)}
        new = {each: None for one in read if not one.seen for each in known.get(one.id, (_hash(one),))}
        new |= {flush_hash("scheduled", one.text): None for one in read if one.id not in by_people}
        new |= {flush_hash("order", one.text): None for one in read if one.id in orders}
        if read and is_scheduled(read[-1]):
            new[_OPEN] = None
        # What is flushed again moves to the end; `_OPEN` goes once something was read.
        before = [each for each in self.flushed if each not in new and (each != _OPEN or not read)]
        return [*before, *new][-limit:]


def _each_once(listed: Iterable[tuple[Entry, StoredMessage]]) -> list[StoredMessage]:
    """Return what entries hold, each id once.

    A message has its first place and earliest time, but the words that were written down last, as a user may have
    edited it. Messages that a summary cut come first, though they were written down after the turns.
    """
    merged: dict[str, tuple[float, StoredMessage]] = {}
    for entry, one in listed:
        at, earlier = merged.get(one.id, (entry.created, one))
        words = one if entry.created >= at else earlier
        time, edit = min(earlier.time, one.time), earlier.edit or one.edit
        words = replace(words, time=time, edit=edit, seen=earlier.seen and one.seen)
        merged[one.id] = (max(at, entry.created), words)
    return [words for _, words in merged.values()]


def hashes_of(messages: Sequence[StoredMessage]) -> Iterator[tuple[str, ...]]:
    """Yield the hash of each message; behind it, of a few words that answer a question, that of both together.

    The same words answer many questions: what was read is the last one that there is.
    """
    before = ""
    for one in messages:
        is_answer = one.role != "assistant" and answers(one.text, before)
        yield (_hash(one), flush_hash(one.role, f"{before}\n{one.text}")) if is_answer else (_hash(one),)
        before = one.text if one.role == "assistant" else ""


def _hash(message: StoredMessage) -> str:
    return flush_hash(message.role, message.text)


def together(entries: Iterable[Entry], config: MemoryConfig) -> list[tuple[Entry, ...]]:
    """Group entries that are updated together: of one thread, meant for one model, and not too much to read at once.

    The messages of a cut are not counted: turns hold most of them, or they were read before; the others are read in
    portions. Suspects are last, each alone.
    """
    groups: dict[tuple[str, str], list[list[Entry]]] = {}
    suspects: list[tuple[Entry, ...]] = []
    for entry in sorted(entries, key=_IN_THREAD):
        if entry.is_suspect(config):
            suspects.append((entry,))
            continue
        parts = groups.setdefault((entry.thread_id, entry.model), [[]])
        turns = [one for one in (*parts[-1], entry) if one.kind == "turn"]
        new = {message.id for one in turns for message in one.to_learn if not message.seen}
        if parts[-1] and len(new) > config.portion_messages:
            parts.append([])
        parts[-1].append(entry)
    return [*(tuple(part) for parts in groups.values() for part in parts), *suspects]
