"""The dated journal of what summarization took away: append-only, one item an exchange.

An item is keyed by day, thread and first message, so that appending it twice is the same as once, and holds the
source text, so that it can be read when the summary no longer tells.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Self

from langgraph.store.base import Item

from memory.control import belongs
from memory.effects import StoreEffects, delete, put, read_many, scan
from memory.message import StoredMessage
from memory.namespaces import Owner
from memory.text import digest


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One exchange that left the context of a thread.

    Attributes:
        day: The user's calendar day, ISO 8601.
        thread_id: The thread it was said in.
        messages: What was said, oldest first.
        epoch: The user's epoch when it was written down.
        model: Which model may read it, as `provider:model`; empty means the deployment's own.
        written: The user's day on which it was written down, which may be long after; empty means the same day.
    """

    day: str
    thread_id: str
    messages: tuple[StoredMessage, ...]
    epoch: str
    model: str = ""
    written: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "written", self.written or self.day)

    @property
    def key(self) -> str:
        """The store key: sorts by day."""
        return f"{self.day}.{digest(self.thread_id, self.messages[0].id)[:32]}"

    def to_json(self) -> dict[str, object]:
        """Return the JSON form that the store keeps."""
        return {
            "day": self.day,
            "thread_id": self.thread_id,
            "message_ids": [message.id for message in self.messages],
            "from": self.messages[0].time,
            "to": self.messages[-1].time,
            "messages": [message.to_json() for message in self.messages],
            "model": self.model,
            "written": self.written,
            "epoch": self.epoch,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the entry of a stored JSON form; `ValueError` if it is none."""
        try:
            messages = tuple(map(StoredMessage.from_json, value["messages"]))
            if not messages:
                raise ValueError("messages must not be empty")
            epoch, model, written = (str(value.get(name) or "") for name in ("epoch", "model", "written"))
            return cls(str(value["day"]), str(value["thread_id"]), messages, epoch, model, written)
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a journal entry: it lacks or garbles {error}") from error


def day_of(time: str, zone: tzinfo = UTC) -> str:
    """Return the calendar day (ISO 8601) of a time in a zone; a time without an offset is UTC."""
    moment = datetime.fromisoformat(time)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(zone).date().isoformat()


def entries_of(
    draft: JournalEntry, exchanges: Iterable[Sequence[StoredMessage]], zone: tzinfo = UTC
) -> list[JournalEntry]:
    """Return the journal entries for exchanges of one thread; each belongs to the day it began.

    Args:
        draft: What all of them share; its day is that of the writing.
        exchanges: What was said, each with at least one message.
        zone: The user's time zone.
    """
    return [replace(draft, day=day_of(exchange[0].time, zone), messages=tuple(exchange)) for exchange in exchanges]


def append(owner: Owner, entries: Sequence[JournalEntry]) -> StoreEffects[None]:
    """Write the entries; one that is there already gains the messages that it lacks, and loses none."""
    namespace = owner.namespace("journal")
    items = yield from read_many(namespace, [entry.key for entry in entries])
    writes = []
    for item, entry in zip(items, entries, strict=True):
        stored = _readable(item) if item else None
        if stored and stored.epoch == entry.epoch:
            messages = {message.id: message for message in (*entry.messages, *stored.messages)}
            entry = replace(entry, messages=tuple(messages.values()), written=stored.written)
        writes.append(put(namespace, entry.key, entry.to_json()))
    if writes:
        yield writes


def read_journal(owner: Owner, epoch: str, since: str = "") -> StoreEffects[list[JournalEntry]]:
    """Read the entries from the given day (ISO 8601) on, oldest first."""
    items = yield from scan(owner.namespace("journal"))
    entries = [_readable(item) for item in items if belongs(item.value, epoch)]
    found = [entry for entry in entries if entry and entry.day >= since]
    return sorted(found, key=lambda entry: (entry.day, entry.messages[0].time, entry.key))


def _readable(item: Item) -> JournalEntry | None:
    try:
        return JournalEntry.from_json(item.value)
    except ValueError:
        return None


def prune(owner: Owner, today: str, days: int) -> StoreEffects[int]:
    """Delete the entries that were written more than so many days ago, and return how many."""
    oldest = (datetime.fromisoformat(today).date() - timedelta(days=days)).isoformat()
    items = yield from scan(owner.namespace("journal"))
    old = [item for item in items if str(item.value.get("written") or item.value.get("day") or oldest) < oldest]
    if old:
        yield [delete(item.namespace, item.key) for item in old]
    return len(old)


def redact(owner: Owner, gone: Mapping[str, Collection[str]]) -> StoreEffects[list[JournalEntry]]:
    """Take messages, by thread, out of the journal, and entries that hold nothing else; return those that changed."""
    items = yield from scan(owner.namespace("journal"))
    taken: list[JournalEntry] = []
    for item, entry in ((item, _readable(item)) for item in items):
        ids = gone.get(entry.thread_id, ()) if entry else ()
        kept = tuple(message for message in entry.messages if message.id not in ids) if entry else ()
        if entry and not kept:
            yield [delete(item.namespace, item.key)]
        elif entry and kept != entry.messages:
            yield [put(item.namespace, item.key, replace(entry, messages=kept).to_json())]
        if entry and kept != entry.messages:
            taken.append(entry)
    return taken
