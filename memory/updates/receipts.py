"""What updates leave behind beside facts: which messages were flushed, and receipts."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from langgraph.store.base import Item, Op

from memory.control import belongs
from memory.effects import StoreEffects, delete, put, read, scan
from memory.forms import plain, read_as
from memory.namespaces import Owner
from memory.text import digest

# For looking back at what updates did lately; facts have a history of their own.
MAX_RECEIPTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReceipt:
    """What one update did, in ids and counts; never in words, because receipts are sent to clients and kept.

    Attributes:
        time: When it ended, ISO 8601.
        thread_id: The thread whose messages it read.
        created: Ids of new facts.
        confirmed: Ids of facts that were said again.
        superseded: Ids of facts that no longer hold.
        refused: How many facts were not stored, by the reason.
        waiting: Ids of facts that wait for the user's yes.
        messages: Ids of the messages that were new.
        journal: How many messages the journal tells since, from a `turn`, and as a summary `cut` them.
        epoch: The user's epoch when the messages were said.
    """

    time: str
    thread_id: str
    created: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    refused: Mapping[str, int] = field(default_factory=dict)
    messages: tuple[str, ...] = ()
    journal: Mapping[str, int] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    epoch: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the store keeps and clients get."""
        value = {**plain(self), "refused": [{"reason": reason, "n": n} for reason, n in self.refused.items()]}
        return {name: each for name, each in value.items() if each or name not in ("journal", "waiting")}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the receipt of a stored JSON form; `ValueError` if it is none. What is missing is empty."""
        try:
            refused = {each["reason"]: each["n"] for each in value.get("refused", ())}
            return read_as(cls, {"thread_id": "", "epoch": "", **value, "refused": refused})
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a receipt: it lacks or garbles {error}") from error


def seen_key(thread_id: str) -> str:
    """Return the key under which a thread's flushed messages are kept."""
    return digest("seen", thread_id)[:32]


def read_seen(owner: Owner, thread_id: str, epoch: str) -> StoreEffects[dict[str, str]]:
    """Read when (ISO 8601) what was flushed in a thread was said, by its hash, in the order it was flushed."""
    item = yield from read(owner.namespace("seen"), seen_key(thread_id))
    pairs = item.value.get("hashes") if item and belongs(item.value, epoch) else None
    return {str(pair[0]): str(pair[1]) for pair in pairs or () if isinstance(pair, list | tuple) and len(pair) == 2}


def seen_put(owner: Owner, thread_id: str, epoch: str, flushed: Mapping[str, str]) -> Op:
    """Return the write of what was flushed in a thread."""
    hashes = [list(pair) for pair in flushed.items()]
    value = {"thread_id": thread_id, "hashes": hashes, "epoch": epoch}
    return put(owner.namespace("seen"), seen_key(thread_id), value)


def receipt_put(owner: Owner, key: str, receipt: UpdateReceipt) -> Op:
    """Return the write of what an update did; `trim_receipts` goes with it."""
    return put(owner.namespace("receipts"), key, receipt.to_json())


def trim_receipts(owner: Owner, room: int = 0) -> StoreEffects[None]:
    """Delete the oldest receipts above `MAX_RECEIPTS`, with room for so many more."""
    items = yield from scan(owner.namespace("receipts"))
    surplus = sorted(items, key=lambda item: (str(item.value.get("time", "")), item.key))[: room - MAX_RECEIPTS]
    if surplus:
        yield [delete(item.namespace, item.key) for item in surplus]


def read_receipts(owner: Owner, epoch: str, since: str = "") -> StoreEffects[list[UpdateReceipt]]:
    """Read the receipts of updates that ended after `since` (ISO 8601), oldest first."""
    return receipts_of((yield from scan(owner.namespace("receipts"))), epoch, since)


def receipts_of(items: Iterable[Item], epoch: str, since: str = "") -> list[UpdateReceipt]:
    """Return the receipts of updates that ended after `since` (ISO 8601), oldest first."""
    receipts = []
    for item in items:
        if belongs(item.value, epoch):
            with suppress(ValueError):  # a hand edited the store: a receipt is no reason to fail a turn
                receipts.append(UpdateReceipt.from_json(item.value))
    return sorted((receipt for receipt in receipts if receipt.time > since), key=lambda receipt: receipt.time)
