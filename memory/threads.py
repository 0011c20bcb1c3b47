"""What memory keeps about threads: the epoch that an erase of one changes, and requests to delete threads."""

import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, Self

from langgraph.store.base import GetOp, Item, PutOp

from memory.door import in_transaction, thread_name
from memory.effects import StoreEffects, delete, put, scan
from memory.forms import plain, read_as
from memory.namespaces import DELETIONS, deletion_key, erased_thread_key, erased_threads_namespace

NEVER_ERASED = "initial"
KEPT_SECONDS = 86_400.0
"""An epoch has to outlive the turns that are under way, not the deployment."""


def read_thread_epoch(thread_id: str) -> StoreEffects[str]:
    """Read a thread's epoch; `NEVER_ERASED` if it was not erased lately."""
    return thread_epoch_in((yield [thread_epoch_get(thread_id)])[0])


def thread_epoch_get(thread_id: str) -> GetOp:
    """Return the read of the item that holds a thread's epoch (`thread_epoch_in`)."""
    return GetOp(erased_threads_namespace(thread_id), erased_thread_key(thread_id), refresh_ttl=False)


def thread_epoch_in(item: Item | None) -> str:
    """Return the epoch that a thread's item holds; `NEVER_ERASED` if it was not erased lately."""
    epoch = item.value.get("epoch") if item else None
    return epoch if isinstance(epoch, str) and epoch else NEVER_ERASED


def write_thread_epoch(thread_id: str, epoch: str, now: float) -> StoreEffects[None]:
    """End the epoch of the turns of a thread that are under way now (seconds since 1970); old epochs go."""
    # A turn that is being written down is written before, or finds the new one.
    yield from in_transaction((thread_name(thread_id),), _write_epoch(thread_id, epoch, now))


def _write_epoch(thread_id: str, epoch: str, now: float) -> StoreEffects[None]:
    namespace = erased_threads_namespace(thread_id)
    yield [put(namespace, erased_thread_key(thread_id), {"epoch": epoch, "at": now})]
    # Other threads' items: an erase is the one moment at which somebody looks here, so nothing else has to sweep them.
    times = [(item, item.value.get("at")) for item in (yield from scan(namespace))]
    old = [item for item, at in times if not isinstance(at, int | float) or now - at >= KEPT_SECONDS]
    if old:
        yield [delete(item.namespace, item.key) for item in old]


def erased_between(before: str, after: str) -> bool:
    """Say whether a thread was erased between two readings of its epoch; an old epoch that went is no erase."""
    return after not in (before, NEVER_ERASED)


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
