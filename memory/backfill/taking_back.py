"""What was imported taken back as a whole: evidence, pending updates, and the facts that nothing else supports."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from memory.backfill.sources import drop_source, read_source
from memory.config import MemoryConfig
from memory.control import count_edit, read_epoch
from memory.door import transaction
from memory.effects import StoreEffects, delete
from memory.erase import forget_rows_of
from memory.facts.chain import FactHistory, read_fact_history
from memory.facts.deletions import note_erasure
from memory.facts.fact import Fact, timestamp
from memory.facts.rows import read_fact_set, save
from memory.facts.rules import limit
from memory.facts.undo import brought_back
from memory.namespaces import Owner, source_unit, thread_namespace, unit_of
from memory.threads import write_thread_epoch
from memory.updates import outbox


class SourceNotFound(KeyError):
    """Nothing was imported under this name; `name` tells which."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"nothing was imported as {self.name!r}; GET /memory/sources lists what was"


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What was taken back: items of memory that were deleted, facts that others support too, and facts put back."""

    items: int
    kept: int
    restored: int


@transaction
def erase_source(owner: Owner, name: str, now: float, config: MemoryConfig) -> StoreEffects[TakenBack]:
    """Take back what was imported under a name; what is under way of it is cancelled, and comes to nothing.

    A fact stays if another conversation said it again, or a person changed or pinned it. What the import had replaced
    or ended is put back, unless something else says the same by now.

    Args:
        owner: Whose memory.
        name: The name of the source.
        now: Seconds since 1970.
        config: The limit of facts, and which categories are protected.

    Raises:
        SourceNotFound: If there is none.
    """
    if (yield from read_source(owner, name)) is None:
        raise SourceNotFound(name)
    unit = source_unit(owner, name)

    def is_gone(thread_id: str) -> bool:
        return unit_of(thread_id) == unit

    yield from write_thread_epoch(unit, uuid.uuid4().hex, now)
    entries = yield from outbox.read_entries(owner)
    cancelled = [entry for entry in entries if is_gone(entry.thread_id)]
    yield from outbox.remove(cancelled)
    epoch = yield from read_epoch(owner)
    history = yield from read_fact_history(owner)
    yield from note_erasure(owner, history, timestamp(now))
    kept, replaced = _judge(history, is_gone)
    deleted = yield from forget_rows_of(owner, is_gone, epoch, kept)
    restored = yield from _put_back(owner, replaced, now, config)
    threads = yield from drop_source(owner, name)
    named = {*threads, *(entry.thread_id for entry in cancelled)} - {""}
    if named:
        yield [delete(thread_namespace(thread_id), owner.due_key) for thread_id in sorted(named)]
    yield from outbox.settle(owner)
    return TakenBack(len(cancelled) + deleted, len(kept), restored)


def _judge(history: FactHistory, is_gone: Callable[[str], bool]) -> tuple[dict[str, Fact], list[Fact]]:
    """Return what becomes of facts of these threads that stay, by their keys, and what the threads had taken away."""
    kept: dict[str, Fact] = {}
    going = {fact.id for fact in history.past if is_gone(fact.thread_id)}
    for key, fact in history.facts.rows.items():
        if not is_gone(fact.thread_id):
            continue
        again = history.said_again.get(fact.id, ())
        elsewhere = [each for each in again if each.thread_id and not is_gone(each.thread_id)]
        if elsewhere:
            first = elsewhere[0]
            kept[key] = replace(fact, thread_id=first.thread_id, message_ids=first.message_ids)
        elif fact.pinned or fact.edited_at:
            kept[key] = replace(fact, thread_id="", message_ids=())
        else:
            going.add(fact.id)
    present = {fact.id for fact in history.facts.rows.values()}
    last = {fact.id: fact for fact in history.past}
    replaced = [
        fact
        for fact in last.values()
        if (fact.status == "superseded" and fact.replaced_by in going)
        or (fact.status == "ended" and fact.ended_by and is_gone(fact.ended_by))
        if fact.id not in present | going
    ]
    return kept, replaced


def _put_back(owner: Owner, replaced: list[Fact], now: float, config: MemoryConfig) -> StoreEffects[int]:
    if not replaced:
        return 0
    edit = yield from count_edit(owner)
    before = yield from read_fact_set(owner)
    after = limit(brought_back(before, replaced, now=timestamp(now), edit=edit), config, before.rows)
    yield from save(owner, before, after)
    return len(after.rows) - len(before.rows)
