"""What the pending entries of one conversation come to when they are read together. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from memory.config import MemoryConfig
from memory.extraction.dialogue import in_pieces, read_chars
from memory.message import StoredMessage
from memory.text import flush_hash
from memory.updates.entry import Entry
from memory.updates.transcript import exchanges, is_scheduled, strip_scheduled, unseen

# One model call reads so many messages, and this many characters for each of them, so that neither a backlog nor a long
# message makes a prompt that the model does not take, or an answer with more facts than are believed at once.
PORTION_MESSAGES = MemoryConfig().portion_messages
CHARS_PER_MESSAGE = 1_200

# Stands among what was flushed of a thread while that ends with a scheduled message whose reply is still to come.
_OPEN = flush_hash("scheduled", "")


@dataclass(frozen=True, slots=True)
class Reading:
    """What entries hold.

    Attributes:
        talk: What an extraction has to read; empty if nothing is new.
        said: What belongs into the journal: all that was new in a turn, and all that left the context by a summary.
        cut: What of it left the context by a summary.
        all: Every message, scheduled ones too: what counts as flushed afterwards.
    """

    talk: tuple[StoredMessage, ...]
    said: tuple[StoredMessage, ...]
    cut: tuple[StoredMessage, ...]
    all: tuple[StoredMessage, ...]


def read_together(entries: Sequence[Entry], flushed: Mapping[str, str], *, after_erase: bool) -> Reading:
    """Merge entries of one thread by message id, without scheduled turns and edited messages.

    What was flushed before is left out, or marked as seen where a new message needs it.

    Args:
        entries: Of one thread, in any order.
        flushed: When (ISO 8601) each flushed message was said, by its hash (`memory.text.flush_hash`).
        after_erase: Whether the user erased memory at some time. What a summary cut then counts only where a turn
            since the erase holds it too: the rest of the thread is older than the erase and must not come back.
    """
    entries = sorted(entries, key=in_thread)
    # Who spoke alone at first may not be the user: the newest knows.
    if (speaker := max(entries, key=attrgetter("created")).speaker) is not None:
        entries = [replace(one, messages=tuple(each.heard(speaker) for each in one.messages)) for one in entries]
    listed = [(entry, one) for entry in entries for one in entry.to_learn]
    since = {one.id for entry, one in listed if entry.kind == "turn" and not one.seen}
    if after_erase:
        listed = [
            (entry, one) for entry, one in listed if entry.kind == "turn" or one.id in since or _hash(one) in flushed
        ]
    in_turns = {one.id for entry, one in listed if entry.kind == "turn"}
    cut_ids = {one.id for entry, one in listed if entry.kind == "cut"}
    # A message that comes again, in a cut, was said when it was flushed first. One of a turn was said then, also where
    # somebody says the same on another day.
    messages = tuple(
        one if one.id in in_turns else replace(one, time=min(one.time, flushed.get(_hash(one), one.time)))
        for one in _merged(listed)
    )
    talk = strip_scheduled(_without_scheduled_replies(messages, flushed))
    cut = tuple(one for one in talk if one.id in cut_ids)
    # What a turn holds as context only was said in another one, which has its own line.
    said = tuple(one for one in talk if one.id in cut_ids or not one.seen)
    return Reading(unseen(talk, flushed), said, cut, messages)


def _merged(listed: Iterable[tuple[Entry, StoredMessage]]) -> list[StoredMessage]:
    """Return what entries hold, each id once.

    A message stands at its first place and as of its earliest time, but in the words that were written down last: a
    user may have edited it, and what a summary cut comes first though it was written down after the turns.
    """
    merged: dict[str, tuple[float, StoredMessage]] = {}
    for entry, one in listed:
        at, earlier = merged.get(one.id, (entry.created, one))
        words = one if entry.created >= at else earlier
        time, edit = min(earlier.time, one.time), earlier.edit or one.edit
        words = replace(words, time=time, edit=edit, seen=earlier.seen and one.seen)
        merged[one.id] = (max(at, entry.created), words)
    return [words for _, words in merged.values()]


def _hash(message: StoredMessage) -> str:
    return flush_hash(message.role, message.text)


def _without_scheduled_replies(
    messages: Sequence[StoredMessage], flushed: Mapping[str, str]
) -> tuple[StoredMessage, ...]:
    """Return the messages without the replies at their beginning that are known to answer a scheduler."""
    begin = next((at for at, message in enumerate(messages) if message.role != "assistant"), len(messages))
    replies = () if _OPEN in flushed else (one for one in messages[:begin] if _scheduled_hash(one) not in flushed)
    return (*replies, *messages[begin:])


def _scheduled_hash(message: StoredMessage) -> str:
    return flush_hash("scheduled", message.text)


def remembered(flushed: Mapping[str, str], messages: Iterable[StoredMessage], limit: int) -> dict[str, str]:
    """Return what counts as flushed once these messages are, the newest `limit` of them, and which were scheduled."""
    read = tuple(messages)
    times = {key: time for key, time in flushed.items() if key != _OPEN or not read}
    by_people = {message.id for message in _without_scheduled_replies(strip_scheduled(read), flushed)}
    for message in read:
        if not message.seen:
            # Taken out and put in again, so that the limit drops what was flushed longest ago.
            times[_hash(message)] = min(message.time, times.pop(_hash(message), message.time))
        if message.id not in by_people:
            times[_scheduled_hash(message)] = message.time
    if read and is_scheduled(read[-1]):
        times[_OPEN] = read[-1].time
    return dict(list(times.items())[-limit:])


def together(entries: Iterable[Entry], limit: int = PORTION_MESSAGES) -> list[tuple[Entry, ...]]:
    """Group entries that are updated together: of one thread, meant for one model, and not too much to read at once."""
    groups: dict[tuple[str, str], list[list[Entry]]] = {}
    for entry in sorted(entries, key=in_thread):
        parts = groups.setdefault((entry.thread_id, entry.model), [])
        # Turns share messages: one begins with the answer before it. A cut repeats what turns hold, or what was read:
        # counted, it would take a call of its own. What else it brings is read in portions.
        turns = [one for one in (*(parts[-1] if parts else ()), entry) if one.kind == "turn"]
        messages = {message.id: message for one in turns for message in one.to_learn}
        if not parts or _is_too_much(messages.values(), limit):
            parts.append([])
        parts[-1].append(entry)
    return [tuple(part) for parts in groups.values() for part in parts]


def in_thread(entry: Entry) -> tuple[str, float, str]:
    """Return the sort key that puts entries of a thread in the order of what was said: what was cut is the oldest."""
    return entry.kind, entry.created, entry.key


def portions(talk: Iterable[StoredMessage], limit: int = PORTION_MESSAGES) -> list[tuple[StoredMessage, ...]]:
    """Cut what has to be read between exchanges, into portions for one model call each, each with something new.

    The pieces of a long message count as exchanges: each may be in another portion.
    """
    cut: list[list[StoredMessage]] = [[]]
    for exchange in exchanges(in_pieces(talk)):
        if cut[-1] and _is_too_much([*cut[-1], *exchange], limit):
            cut.append([])
        cut[-1].extend(exchange)
    return [tuple(portion) for portion in cut if any(not message.seen for message in portion)]


def _is_too_much(messages: Collection[StoredMessage], limit: int) -> bool:
    return len(messages) > limit or sum(map(read_chars, messages)) > limit * CHARS_PER_MESSAGE
