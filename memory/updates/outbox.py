"""Pending updates, written down before the turn ends: entries, due markers, dead letters.

An entry lives under its owner's own namespace; its due marker, in a shard that all users share, lets any process
find it. The order of writes is the promise: entry, then marker; after applying, the entry is deleted, the marker
last. Killed between any two of them, nothing is lost and nothing is applied twice.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from langgraph.store.base import Item, ListNamespacesOp, MatchCondition

from memory.control import read_epoch
from memory.message import StoredMessage
from memory.namespaces import Kind, Owner, due_namespaces, owner_of
from memory.storage import PAGE, Steps, delete, put, read, scan
from memory.text import digest
from memory.updates.lease import Lease

logger = logging.getLogger(__name__)

EntryKind = Literal["turn", "cut"]
EntryState = Literal["pending", "running", "dead"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One pending update.

    Attributes:
        kind: `turn`: a finished turn, makes facts. `cut`: left the context by a summary, makes facts and journal lines.
        owner: Whose memory it is.
        thread_id: The thread the messages are from.
        epoch: The user's epoch when it was written; another one cancels it.
        created: When it was written down, in seconds since the epoch.
        due: From when on the sweep may take it, in seconds since the epoch; after a failure, when to try again.
        messages: What was said, oldest first.
        model: The assistant's choice as `provider:model`; empty means the deployment's own.
        attempts: How often it failed.
        lease: Who works on it.
        extracted: The journaled result of the extraction, once there is one.
        state: `dead` needs a hand: it failed for good.
        error: Sort of the last failure, without any text of the conversation.
    """

    kind: EntryKind
    owner: Owner
    thread_id: str
    epoch: str
    created: float
    due: float
    messages: tuple[StoredMessage, ...]
    model: str = ""
    attempts: int = 0
    lease: Lease | None = None
    extracted: Any = None
    state: EntryState = "pending"
    error: str = ""

    @property
    def key(self) -> str:
        """The store key: what was said in one place has one entry, however often it is written down."""
        return digest(self.kind, self.thread_id, *(message.id for message in self.messages))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the store keeps."""
        return {
            "kind": self.kind,
            "key": [self.thread_id, self.owner.segment, self.owner.agent_name],
            "epoch": self.epoch,
            "created": self.created,
            "due": self.due,
            "attempts": self.attempts,
            "lease": self.lease.to_json() if self.lease else None,
            "messages": [message.to_json() for message in self.messages],
            "model": self.model,
            "extracted": self.extracted,
            "state": self.state,
            "error": self.error,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the entry of a stored JSON form; `ValueError` if it is none."""
        try:
            thread_id, segment, agent_name = value["key"]
            return cls(
                kind=value["kind"],
                owner=Owner(segment, agent_name),
                thread_id=thread_id,
                epoch=value["epoch"],
                created=float(value["created"]),
                due=float(value["due"]),
                messages=tuple(map(StoredMessage.from_json, value["messages"])),
                model=str(value.get("model") or ""),
                attempts=int(value.get("attempts", 0)),
                lease=Lease.from_json(value.get("lease")),
                extracted=value.get("extracted"),
                state=value.get("state", "pending"),
                error=str(value.get("error") or ""),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not an outbox entry: it lacks or garbles {error}") from error


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of a turn that was written down.

    Attributes:
        key: The entry's key.
        due: When the sweep takes it at the latest, in seconds since the epoch.
        since: When the owner's oldest pending update was written down, in seconds since the epoch.
    """

    key: str
    due: float
    since: float


def record(
    owner: Owner,
    *,
    kind: EntryKind,
    thread_id: str,
    messages: Sequence[StoredMessage],
    now: float,
    max_wait: float,
    model: str = "",
) -> Steps[Recorded]:
    """Write down an update: the entry, then its due marker. Writing it down twice changes nothing.

    Args:
        owner: Whose memory it is.
        kind: What became of the messages, see `Entry`.
        thread_id: The thread they are from.
        messages: What was said, oldest first.
        now: Seconds since the epoch.
        max_wait: Seconds until the sweep takes what no trigger took.
        model: The assistant's choice as `provider:model`.
    """
    epoch = yield from read_epoch(owner)
    entry = Entry(
        kind=kind,
        owner=owner,
        thread_id=thread_id,
        epoch=epoch,
        created=now,
        due=now + max_wait,
        messages=tuple(messages),
        model=model,
    )
    known = yield from _known(entry)
    if known is None:
        yield [put(owner.namespace("outbox"), entry.key, entry.to_json())]
    since = yield from _mark_due(owner, (known or entry).due, now)
    return Recorded(entry.key, (known or entry).due, since)


def _known(entry: Entry) -> Steps[Entry | None]:
    """Read the same update if it is already written down: its progress must not be overwritten."""
    item = yield from read(entry.owner.namespace("outbox"), entry.key)
    found = _entry(item) if item else None
    same = found and [(one.id, one.text) for one in found.messages] == [(one.id, one.text) for one in entry.messages]
    return found if same and found and found.epoch == entry.epoch else None


def _mark_due(owner: Owner, due: float, now: float) -> Steps[float]:
    """Write the due marker, never later than it was, and return since when something is pending."""
    item = yield from read(owner.due_namespace, owner.due_key)
    marker = item.value if item else {}
    since = min(_seconds(marker, "since", now), now)
    yield [put(owner.due_namespace, owner.due_key, {"due": min(_seconds(marker, "due", due), due), "since": since})]
    return since


def _seconds(marker: Mapping[str, Any], field: str, default: float) -> float:
    value = marker.get(field)
    return float(value) if isinstance(value, int | float) else default


def read_entries(owner: Owner) -> Steps[list[Entry]]:
    """Read all entries of an owner, oldest first."""
    items = yield from scan(owner.namespace("outbox"))
    entries = [entry for entry in map(_entry, items) if entry]
    return sorted(entries, key=lambda entry: (entry.created, entry.key))


def _entry(item: Item) -> Entry | None:
    try:
        return Entry.from_json(item.value)
    except ValueError:
        logger.warning("outbox item %s is no entry and is left alone", item.key)
        return None


def write(entries: Iterable[Entry]) -> Steps[None]:
    """Write the entries' new states."""
    operations = [put(entry.owner.namespace("outbox"), entry.key, entry.to_json()) for entry in entries]
    if operations:
        yield operations


def remove(entries: Iterable[Entry]) -> Steps[None]:
    """Delete the entries: they were applied, cancelled, or discarded."""
    operations = [delete(entry.owner.namespace("outbox"), entry.key) for entry in entries]
    if operations:
        yield operations


def settle(owner: Owner) -> Steps[list[Entry]]:
    """Bring the due marker in line with what is left, and return what that is, dead letters aside.

    Somebody may write an entry down just before the marker goes, so it is looked for again afterwards.
    """
    while True:
        left = [entry for entry in (yield from read_entries(owner)) if entry.state != "dead"]
        if left:
            due, since = min(entry.due for entry in left), min(entry.created for entry in left)
            yield [put(owner.due_namespace, owner.due_key, {"due": due, "since": since})]
            return left
        marker = yield from read(owner.due_namespace, owner.due_key)
        if marker is None:
            return []
        yield [delete(owner.due_namespace, owner.due_key)]


def due_owners(now: float | None) -> Steps[list[Owner]]:
    """Read the owners whose marker is due at `now` (seconds since the epoch); `None` reads all that have one."""
    found: list[Owner] = []
    for namespace in due_namespaces():
        items = yield from scan(namespace)
        found.extend(_owners(item for item in items if now is None or _seconds(item.value, "due", 0.0) <= now))
    return found


def _owners(markers: Iterable[Item]) -> Iterable[Owner]:
    for marker in markers:
        try:
            yield Owner.from_due_key(marker.key)
        except ValueError:
            logger.warning("due marker %s names no owner and is left alone", marker.key)


def owners_with(kind: Kind) -> Steps[list[Owner]]:
    """Read every owner who has items of a kind. It lists across all users: for once a day, not for a turn."""
    found: dict[Owner, None] = {}
    offset = 0
    while True:
        (page,) = yield [ListNamespacesOp((MatchCondition("suffix", (kind,)),), None, PAGE, offset)]
        found.update((owner, None) for owner in map(owner_of, page) if owner)
        if len(page) < PAGE:
            return list(found)
        offset += PAGE


def retry_dead(owner: Owner, now: float, keys: Iterable[str] | None = None) -> Steps[int]:
    """Give dead letters another chance, all or those with the given keys, and return how many."""
    dead = yield from _dead(owner, keys)
    yield from write(replace(entry, state="pending", attempts=0, due=now, lease=None, error="") for entry in dead)
    yield from settle(owner)
    return len(dead)


def discard_dead(owner: Owner, keys: Iterable[str] | None = None) -> Steps[int]:
    """Delete dead letters, all or those with the given keys, and return how many."""
    dead = yield from _dead(owner, keys)
    yield from remove(dead)
    return len(dead)


def _dead(owner: Owner, keys: Iterable[str] | None) -> Steps[list[Entry]]:
    wanted = None if keys is None else set(keys)
    entries = yield from read_entries(owner)
    return [entry for entry in entries if entry.state == "dead" and (wanted is None or entry.key in wanted)]
