"""What updates leave behind beside facts: which messages were flushed, and receipts."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import starmap
from typing import Any

from langgraph.store.base import Item, Op

from memory.control import belongs
from memory.door import StoreEffects, delete, put, read, scan
from memory.facts.changes import Refusal, reasons
from memory.forms import plain, read_as
from memory.namespaces import Owner
from memory.text import digest

# For looking back at what updates did lately; facts have a history of their own.
MAX_RECEIPTS = 100


@dataclass(frozen=True, slots=True)
class Refused:
    """How many facts were not stored for one reason."""

    reason: str
    n: int


def refusals(refused: tuple[Refusal, ...]) -> tuple[Refused, ...]:
    """Return what a receipt tells of what was refused."""
    return tuple(starmap(Refused, reasons(refused).items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReceipt:
    """What one update did, in ids and counts; never in words, because receipts are sent to clients and kept.

    Attributes:
        time: When it ended, ISO 8601.
        thread_id: The thread whose messages it read.
        created: Ids of new facts.
        confirmed: Ids of facts that were said again.
        superseded: Ids of facts that no longer hold.
        refused: Why facts were not stored.
        messages: Ids of the messages that were new.
        waiting: Ids of facts that wait for the user's yes.
        epoch: The user's epoch when the messages were said.
    """

    time: str
    thread_id: str = ""
    created: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    messages: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    epoch: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the store keeps and clients get."""
        return plain(self)


def read_seen(owner: Owner, thread_id: str, epoch: str) -> StoreEffects[dict[str, str]]:
    """Read when (ISO 8601) what was flushed in a thread was said, by its hash, in the order it was flushed."""
    item = yield from read(owner.namespace("seen"), _seen_key(thread_id))
    pairs = item.value.get("hashes") if item and belongs(item.value, epoch) else None
    return {str(pair[0]): str(pair[1]) for pair in pairs or () if isinstance(pair, list | tuple) and len(pair) == 2}


def seen_put(owner: Owner, thread_id: str, epoch: str, flushed: Mapping[str, str]) -> Op:
    """Return the write of what was flushed in a thread."""
    hashes = [list(pair) for pair in flushed.items()]  # in order, which a store need not keep of a mapping
    value = {"thread_id": thread_id, "hashes": hashes, "epoch": epoch}
    return put(owner.namespace("seen"), _seen_key(thread_id), value)


def _seen_key(thread_id: str) -> str:
    return digest("seen", thread_id)[:32]


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
        with suppress(ValueError):  # a hand edited the store: a receipt is no reason to fail a turn
            receipt = read_as(UpdateReceipt, {"epoch": epoch, **item.value})
            if receipt.epoch == epoch and receipt.time > since:
                receipts.append(receipt)
    return sorted(receipts, key=lambda receipt: receipt.time)
