"""What updates leave behind beside facts: which messages were flushed, and receipts. Store access as steps."""

from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.store.base import Item, Op

from memory.control import belongs
from memory.effects import StoreEffects, delete, put, read, scan
from memory.namespaces import Owner
from memory.text import digest

MAX_RECEIPTS = 100


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


def receipt_put(owner: Owner, key: str, receipt: Mapping[str, Any]) -> Op:
    """Return the write of what an update did; `trim_receipts` comes after it."""
    return put(owner.namespace("receipts"), key, dict(receipt))


def trim_receipts(owner: Owner) -> StoreEffects[None]:
    """Delete the oldest receipts above `MAX_RECEIPTS`."""
    items = yield from scan(owner.namespace("receipts"))
    surplus = sorted(items, key=lambda item: (str(item.value.get("time", "")), item.key))[:-MAX_RECEIPTS]
    if surplus:
        yield [delete(item.namespace, item.key) for item in surplus]


def read_receipts(owner: Owner, epoch: str, since: str = "") -> StoreEffects[list[dict[str, Any]]]:
    """Read the receipts of updates that ended after `since` (ISO 8601), oldest first."""
    return receipts_of((yield from scan(owner.namespace("receipts"))), epoch, since)


def receipts_of(items: Iterable[Item], epoch: str, since: str = "") -> list[dict[str, Any]]:
    """Return the receipts of updates that ended after `since` (ISO 8601), oldest first."""
    receipts = [item.value for item in items if belongs(item.value, epoch) and str(item.value.get("time", "")) > since]
    return sorted(receipts, key=lambda receipt: str(receipt["time"]))
