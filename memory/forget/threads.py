"""What memory keeps about threads: the epoch that an erase of one changes, and requests to delete threads."""

import uuid
from dataclasses import dataclass, field
from typing import Final, Literal

from memory.door import ask, delete, put, read, scan, transaction
from memory.forms import of_item, of_items, plain
from memory.namespaces import DELETIONS, deletion_key, erased_thread_key, erased_threads_namespace

NEVER_ERASED: Final = "initial"
KEPT_SECONDS: Final = 365 * 86_400.0
"""An epoch has to outlive the turns that are under way, and those that wait to be written down after an outage."""


@dataclass(frozen=True, slots=True)
class ErasedThread:
    """The last erase of a thread: the epoch that it began, and when, in seconds since 1970; 0 if there was none."""

    epoch: str = NEVER_ERASED
    at: float = 0.0


async def read_thread_erase(thread_id: str) -> ErasedThread:
    """Read of a thread's last erase; its epoch is `NEVER_ERASED` if there was none lately."""
    found = await read(erased_threads_namespace(thread_id), erased_thread_key(thread_id))
    return of_item(ErasedThread, found)


@transaction
async def write_thread_epoch(thread_id: str, epoch: str, now: float) -> None:
    """End the epoch of the turns of a thread that are under way now (seconds since 1970); old epochs go."""
    # A turn that is being written down is written before, or finds the new one.
    namespace = erased_threads_namespace(thread_id)
    await ask(put(namespace, erased_thread_key(thread_id), plain(ErasedThread(epoch, now))))
    # Other threads' items: an erase is the one moment at which somebody looks here, so nothing else sweeps them.
    others = await scan(namespace)
    old = [item.key for item in others if now - of_item(ErasedThread, item).at >= KEPT_SECONDS]
    await ask(*(delete(namespace, key) for key in old))


def erased_between(before: str, after: str) -> bool:
    """Say whether a thread was erased between two readings of its epoch; an old epoch that went is no erase.

    An empty `before` (nobody read it) counts as no erase.
    """
    return bool(before) and after not in (before, NEVER_ERASED)


IN_FLIGHT_SECONDS: Final = 60.0
"""After that long nobody waits for a request's answer any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """One request to delete a thread.

    Attributes:
        thread_id: The thread.
        at: When it was asked for, in seconds since the epoch.
        state: `asked`, or `done` once the server has said that the thread is deleted: what came from it has to go.
        request: Tells two requests for one thread apart.
    """

    thread_id: str
    at: float
    state: Literal["asked", "done"] = "asked"
    request: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def key(self) -> str:
        """The record's key."""
        return deletion_key(self.thread_id, self.request)


async def record_deletion(deletion: Deletion) -> None:
    """Write down that somebody who may do so asks for a thread to be deleted, or that it is."""
    await ask(put(DELETIONS, deletion.key, plain(deletion)))


async def drop_deletion(deletion: Deletion) -> None:
    """Drop the record: it was carried out, or refused."""
    await ask(delete(DELETIONS, deletion.key))


async def deletions_left(now: float) -> list[Deletion]:
    """Read the deletions that are not carried out, and that nobody is at work on any more."""
    found = of_items(Deletion, await scan(DELETIONS)).values()
    # A negative age was written under a clock that was ahead: nobody can tell how long ago, so it is old.
    return [one for one in found if one.state == "done" or not 0 <= now - one.at < IN_FLIGHT_SECONDS]
