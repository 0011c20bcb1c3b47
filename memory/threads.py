"""What memory keeps about threads: the epoch that an erase of one changes, and requests to delete threads."""

import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

from langgraph.store.base import Item, PutOp

from memory.door import in_transaction, thread_name
from memory.effects import StoreEffects, delete, put, read, scan
from memory.forms import plain, read_as
from memory.namespaces import DELETIONS, deletion_key, erased_thread_key, erased_threads_namespace

NEVER_ERASED = "initial"
KEPT_SECONDS = 365 * 86_400.0
"""An epoch has to outlive the turns that are under way, and those that wait to be written down after an outage."""


class ErasedThread(NamedTuple):
    """The last erase of a thread: the epoch that it began, and when, in seconds since 1970; 0 if there was none."""

    epoch: str = NEVER_ERASED
    at: float = 0.0

    @classmethod
    def of_item(cls, item: Item | None) -> Self:
        """Return what its item tells; where a hand garbled the time, the item's own holds."""
        if item is None or not isinstance(epoch := item.value.get("epoch"), str) or not epoch:
            return cls()
        at = item.value.get("at")
        return cls(epoch, at if isinstance(at, int | float) else item.updated_at.timestamp())


def read_thread_erase(thread_id: str) -> StoreEffects[ErasedThread]:
    """Read of a thread's last erase."""
    return ErasedThread.of_item((yield from read(erased_threads_namespace(thread_id), erased_thread_key(thread_id))))


def read_thread_epoch(thread_id: str) -> StoreEffects[str]:
    """Read a thread's epoch; `NEVER_ERASED` if it was not erased lately."""
    return (yield from read_thread_erase(thread_id)).epoch


def write_thread_epoch(thread_id: str, epoch: str, now: float) -> StoreEffects[None]:
    """End the epoch of the turns of a thread that are under way now (seconds since 1970); old epochs go."""
    # A turn that is being written down is written before, or finds the new one.
    yield from in_transaction((thread_name(thread_id),), _write_epoch(thread_id, epoch, now))


def _write_epoch(thread_id: str, epoch: str, now: float) -> StoreEffects[None]:
    namespace = erased_threads_namespace(thread_id)
    yield [put(namespace, erased_thread_key(thread_id), {"epoch": epoch, "at": now})]
    # Other threads' items: an erase is the one moment at which somebody looks here, so nothing else has to sweep them.
    old = [item for item in (yield from scan(namespace)) if now - ErasedThread.of_item(item).at >= KEPT_SECONDS]
    if old:
        yield [delete(item.namespace, item.key) for item in old]


def erased_between(before: str, after: str) -> bool:
    """Say whether a thread was erased between two readings of its epoch; an old epoch that went is no erase.

    Where nobody read it before (it is empty), nothing tells that it was.
    """
    return bool(before) and after not in (before, NEVER_ERASED)


IN_FLIGHT_SECONDS = 60.0
"""So old a request is that nobody knows an answer to: whoever asked is no longer being answered."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """One request to delete a thread.

    Attributes:
        key: The record's key; two requests for one thread have two.
        thread_id: The thread.
        state: `asked`, or `done` once the server has said that the thread is deleted.
        at: When it was asked for, in seconds since the epoch.
    """

    key: str
    thread_id: str
    state: Literal["asked", "done"]
    at: float

    def write(self) -> PutOp:
        """Return the write of the record."""
        return put(DELETIONS, self.key, {name: each for name, each in plain(self).items() if name != "key"})

    @classmethod
    def of_item(cls, item: Item) -> Self | None:
        """Return the request that an item records; `None` if it is no such record."""
        with suppress(ValueError):
            return read_as(cls, {**item.value, "key": item.key})
        return None


def ask_deletion(thread_id: str, now: float) -> StoreEffects[Deletion]:
    """Record that somebody who may do so asks for a thread to be deleted."""
    asked = Deletion(deletion_key(thread_id, uuid.uuid4().hex), thread_id, "asked", now)
    yield [asked.write()]
    return asked


def confirm_deletion(asked: Deletion) -> StoreEffects[Deletion]:
    """Record that the thread is deleted: from now on, what came from it has to go."""
    done = replace(asked, state="done")
    yield [done.write()]
    return done


def settle_deletion(deletion: Deletion) -> StoreEffects[None]:
    """Drop the record: it was carried out, or refused."""
    yield [delete(DELETIONS, deletion.key)]


def deletions_left(now: float) -> StoreEffects[list[Deletion]]:
    """Read the deletions that are not carried out though nobody may be at work on them any more."""
    records = [record for item in (yield from scan(DELETIONS)) if (record := Deletion.of_item(item))]
    # A negative age was written under a clock that was ahead: nobody can tell how long ago, so it counts as old.
    return [one for one in records if one.state == "done" or not 0 <= now - one.at < IN_FLIGHT_SECONDS]
