"""Records of threads that somebody deletes, so that what memory took from them goes too, whatever happens meanwhile.

Only a record makes a deletion erase anything: threads also vanish by a crash, by age, by pruning, by a rollback, and
when a run without a thread ends.
"""

import uuid
from dataclasses import dataclass, replace
from typing import Literal

from langgraph.store.base import Item, PutOp

from memory.namespaces import DELETIONS, deletion_key
from memory.storage import Steps, delete, put, scan

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


def ask(thread_id: str, now: float) -> Steps[Deletion]:
    """Record that somebody who may do so asks for a thread to be deleted."""
    asked = Deletion(deletion_key(thread_id, uuid.uuid4().hex), thread_id, "asked", now)
    yield [_put(asked)]
    return asked


def confirm(asked: Deletion) -> Steps[Deletion]:
    """Record that the thread is deleted: from now on, what came from it has to go."""
    done = replace(asked, state="done")
    yield [_put(done)]
    return done


def settle(deletion: Deletion) -> Steps[None]:
    """Drop the record: it was carried out, or refused."""
    yield [delete(DELETIONS, deletion.key)]


def left_behind(now: float) -> Steps[list[Deletion]]:
    """Read the deletions that are not carried out though nobody may be at work on them any more."""
    records = [record for item in (yield from scan(DELETIONS)) if (record := _deletion(item))]
    return [one for one in records if one.state == "done" or not 0 <= now - one.at < IN_FLIGHT_SECONDS]


def _put(deletion: Deletion) -> PutOp:
    value = {"thread_id": deletion.thread_id, "state": deletion.state, "at": deletion.at}
    return put(DELETIONS, deletion.key, value)


def _deletion(item: Item) -> Deletion | None:
    thread_id, state, at = (item.value.get(name) for name in ("thread_id", "state", "at"))
    if not isinstance(thread_id, str) or state not in ("asked", "done") or not isinstance(at, int | float):
        return None
    return Deletion(item.key, thread_id, state, float(at))
