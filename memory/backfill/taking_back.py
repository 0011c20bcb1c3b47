"""What was imported taken back as a whole: evidence, pending updates, and the facts that nothing else supports."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from memory.backfill.sources import read_source, source_key
from memory.config import MemoryConfig
from memory.door import StoreEffects, delete, scan, transaction
from memory.facts.fact import timestamp
from memory.facts.fact_set import FactSet
from memory.facts.rows import read_fact_set, save
from memory.forget.erase import forget_rows_of
from memory.forget.threads import write_thread_epoch
from memory.namespaces import Owner, source_unit, thread_namespace, unit_of
from memory.updates import outbox


class SourceNotFound(LookupError):
    """Nothing was imported under this name."""


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
        raise SourceNotFound(f"nothing was imported as {name!r}; GET /memory/sources lists what was")
    unit, namespace = source_unit(owner, name), owner.namespace("sources")

    def is_gone(thread_id: str) -> bool:
        return unit_of(thread_id) == unit

    yield from write_thread_epoch(unit, uuid.uuid4().hex, now)
    cancelled = yield from outbox.remove(owner, lambda entry: is_gone(entry.thread_id))
    facts = yield from read_fact_set(owner, whole=True, now=timestamp(now), config=config)
    facts.note_erasure()
    kept, restored = _take_back(facts, is_gone)
    deleted = yield from forget_rows_of(facts, is_gone)
    yield from save(facts)
    talks = yield from scan(namespace, where={"source": name})
    yield [delete(namespace, key) for key in (source_key(name), *(talk.key for talk in talks))]
    named = {entry.thread_id for entry in cancelled} | {str(talk.value.get("thread_id") or "") for talk in talks}
    yield [delete(thread_namespace(thread_id), owner.due_key) for thread_id in sorted(named - {""})]
    return TakenBack(len(cancelled) + deleted - kept, kept, restored)


def _take_back(facts: FactSet, is_gone: Callable[[str], bool]) -> tuple[int, int]:
    """Keep what others support, put back what these threads had taken away; return how many of each. Pure."""
    kept, going = 0, {fact.id for fact in facts.past if is_gone(fact.thread_id)}
    for fact in [fact for fact in facts.rows.values() if is_gone(fact.thread_id)]:
        elsewhere = [source for source in facts.sources_of(fact)[1:] if source[0] and not is_gone(source[0])]
        if elsewhere or fact.pinned or fact.edited_at:
            thread_id, message_ids = elsewhere[0] if elsewhere else ("", ())
            facts.put(replace(fact, thread_id=thread_id, message_ids=message_ids))
            kept += 1
        else:
            going.add(fact.id)
            facts.drop(fact.id)
    last = {fact.id: fact for fact in facts.past}
    replaced = [
        fact
        for fact in last.values()
        if (fact.status == "superseded" and fact.replaced_by in going)
        or (fact.status == "ended" and fact.ended_by and is_gone(fact.ended_by))
        if fact.id not in facts.rows.keys() | going
    ]
    if not replaced:
        return kept, 0
    facts.count_edit()
    # Unless something else has its place by now.
    back = [facts.bring_back(fact) for fact in replaced if facts.saying(fact.content) is None]
    facts.limit()
    return kept, sum(fact.id in facts.rows for fact in back)
