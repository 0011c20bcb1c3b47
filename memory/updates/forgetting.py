"""Taking back what came from one thread: its facts and their revisions, journal lines, seen marks and receipts."""

from langgraph.store.base import Item, Op

from memory.core.profile import HISTORY_SECTIONS, drop_sections_about
from memory.daily.rollup import MARKS_KEY
from memory.namespaces import Kind, Owner
from memory.storage import Steps, delete, scan

_OF_THREADS: tuple[Kind, ...] = ("facts", "history", "journal", "seen", "receipts")


def forget_rows(owner: Owner, thread_id: str, epoch: str) -> Steps[int]:
    """Delete every row of this epoch that came from the thread, and return how many.

    A fact that was said in several threads goes with the one that it was first said in. A history that may tell of
    the thread goes as a whole: the next roll-up tells it anew from what is left of the journal.
    """
    rows: list[Item] = []
    for kind in _OF_THREADS:
        items = yield from scan(owner.namespace(kind))
        rows.extend(item for item in items if _came_from(item, thread_id, epoch))
    if not rows:
        return 0
    facts = [item for item in rows if item.namespace[-1] == "facts"]
    yield from drop_sections_about(owner, epoch, [str(fact.value.get("content", "")) for fact in facts])
    yield [
        *(delete(item.namespace, item.key) for item in rows),
        *(delete(owner.namespace("confirmations"), str(fact.value.get("id"))) for fact in facts),
        *(_history(owner) if any(item.namespace[-1] == "journal" for item in rows) else ()),
    ]
    return len(rows)


def _history(owner: Owner) -> list[Op]:
    sections = [delete(owner.namespace("profile"), f"history.{name}") for name in HISTORY_SECTIONS]
    return [*sections, delete(owner.namespace("journal"), MARKS_KEY)]


def _came_from(item: Item, thread_id: str, epoch: str) -> bool:
    return item.value.get("thread_id") == thread_id and item.value.get("epoch", epoch) == epoch
