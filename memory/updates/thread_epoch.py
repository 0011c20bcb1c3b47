"""A thread's epoch: what tells a turn under way that its thread was erased meanwhile.

It belongs to no user: an erase has to reach a first turn too, of which nobody can say yet whose memory it feeds.
"""

from langgraph.store.base import GetOp, Item

from memory.namespaces import erased_thread_key, erased_threads_namespace
from memory.storage import Steps, delete, put, scan

NEVER_ERASED = "initial"
KEPT_SECONDS = 86_400.0
"""An epoch has to outlive the turns that are under way, not the deployment."""


def read_thread_epoch(thread_id: str) -> Steps[str]:
    """Read a thread's epoch; `NEVER_ERASED` if it was not erased lately."""
    return thread_epoch_in((yield [thread_epoch_get(thread_id)])[0])


def thread_epoch_get(thread_id: str) -> GetOp:
    """Return the read of the item that holds a thread's epoch (`thread_epoch_in`)."""
    return GetOp(erased_threads_namespace(thread_id), erased_thread_key(thread_id), refresh_ttl=False)


def thread_epoch_in(item: Item | None) -> str:
    """Return the epoch that a thread's item holds; `NEVER_ERASED` if it was not erased lately."""
    epoch = item.value.get("epoch") if item else None
    return epoch if isinstance(epoch, str) and epoch else NEVER_ERASED


def write_thread_epoch(thread_id: str, epoch: str, now: float) -> Steps[None]:
    """Fence the turns of a thread that are under way now (seconds since the epoch); old fences go."""
    namespace = erased_threads_namespace(thread_id)
    yield [put(namespace, erased_thread_key(thread_id), {"epoch": epoch, "at": now})]
    old = [item for item in (yield from scan(namespace)) if not _is_recent(item.value.get("at"), now)]
    if old:
        yield [delete(item.namespace, item.key) for item in old]


def erased_between(before: str, after: str) -> bool:
    """Say whether a thread was erased between two readings of its epoch; an old epoch that went is no erase."""
    return after not in (before, NEVER_ERASED)


def _is_recent(at: object, now: float) -> bool:
    return isinstance(at, int | float) and now - at < KEPT_SECONDS
