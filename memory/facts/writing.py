"""Facts that end without anybody's word: those that hold no longer, and those that waited for a person in vain."""

from collections.abc import Mapping

from memory.config import MemoryConfig
from memory.door import transaction
from memory.effects import StoreEffects
from memory.facts.deletions import let_go
from memory.facts.fact import Fact, is_over, timestamp
from memory.facts.rows import read_fact_set, save
from memory.facts.rules import FactSet, remove, retire
from memory.facts.waiting import lapsed
from memory.namespaces import Owner


@transaction
def end_over(owner: Owner, now: float) -> StoreEffects[int]:
    """Move facts that hold no longer into history, and return how many; said again, they are learned again."""
    before = yield from read_fact_set(owner)
    after = before
    for fact in before.active().values():
        if is_over(fact, now):
            after = retire(after, fact.id, "ended", now=timestamp(now))
    if count := len(after.archived):
        yield from save(owner, before, after)
    return count


@transaction
def end_lapsed(owner: Owner, config: MemoryConfig, now: float) -> StoreEffects[int]:
    """Let go of what has waited for a person as long as it may, and return how many; said again, it waits again."""
    before = yield from read_fact_set(owner)
    gone = lapsed(before, now, config.approval_days)
    if gone:
        yield from end_held(owner, before, gone, now=timestamp(now))
    return len(gone)


def end_held(owner: Owner, before: FactSet, held: Mapping[str, Fact], *, now: str) -> StoreEffects[None]:
    """Delete facts that wait for a person: from history an undo would make them active, though nobody said yes."""
    yield from let_go(owner, before.epoch, list(held.values()), now=now)
    yield from save(owner, before, remove(before, *held))
