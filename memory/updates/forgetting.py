"""Taking back what came from one thread: its facts and their revisions, journal lines, seen marks and receipts."""

from langgraph.store.base import Item

from memory.core.shelf import without_thread
from memory.namespaces import Kind, Owner
from memory.storage import Steps, delete, put, scan
from memory.updates.rolling import MARKS

_OF_THREADS: tuple[Kind, ...] = ("facts", "history", "journal", "seen", "receipts")


def forget_rows(owner: Owner, thread_id: str, epoch: str) -> Steps[int]:
    """Delete every row of this epoch that came from the thread, and return how many.

    A fact that was said in several threads goes with the one that it was first said in. Of the profile nobody can say
    which thread a sentence is from, so all of it goes, and is told again from what is left.
    """
    yield from _forget_confirmations(owner, thread_id)
    rows: list[Item] = []
    for kind in _OF_THREADS:
        items = yield from scan(owner.namespace(kind))
        rows.extend(item for item in items if _came_from(item, thread_id, epoch))
    if not rows:
        return 0
    facts = [item for item in rows if item.namespace[-1] in ("facts", "history")]
    profile = yield from scan(owner.namespace("profile"))
    yield [
        *(delete(item.namespace, item.key) for item in profile),
        delete(owner.namespace("journal"), MARKS),
        *(delete(item.namespace, item.key) for item in rows),
        *(delete(owner.namespace("confirmations"), str(fact.value.get("id"))) for fact in facts),
    ]
    return len(rows)


def _forget_confirmations(owner: Owner, thread_id: str) -> Steps[None]:
    """Let facts of other threads no longer tell that they were said again in this one."""
    items = yield from scan(owner.namespace("confirmations"))
    left = [(item, without_thread(item.value, thread_id)) for item in items]
    changed = [put(item.namespace, item.key, value) for item, value in left if value is not item.value]
    if changed:
        yield changed


def _came_from(item: Item, thread_id: str, epoch: str) -> bool:
    return item.value.get("thread_id") == thread_id and item.value.get("epoch", epoch) == epoch
