"""How a change of one owner's facts is written, and taken back where an erase or a deletion came in between.

So end facts without anybody's word, too: those that hold no longer, and those that waited for a person in vain.
"""

from collections.abc import Mapping

from memory.config import MemoryConfig
from memory.control import count_edit
from memory.effects import StoreEffects
from memory.facts.chain import Chain, dormant
from memory.facts.confirmations import read_provenance
from memory.facts.deletions import (
    LastErasure,
    deletion_drops,
    deletion_puts,
    let_go,
    take_back_deleted,
    take_back_erased,
)
from memory.facts.fact import Fact, FactNotFound, is_over, timestamp
from memory.facts.profile import drop_sections_about
from memory.facts.rows import read_current_fact_set, read_history, settle, stands, trim_history, write_difference
from memory.facts.rules import FactSet, remove, retire
from memory.facts.undo import UndoneFacts
from memory.facts.waiting import lapsed
from memory.namespaces import Owner


class FactWriting:
    """Writes one owner's facts.

    Args:
        owner: Whose facts.
        config: Limits and protected categories.
    """

    def __init__(self, owner: Owner, config: MemoryConfig) -> None:
        self._owner, self._config = owner, config

    def write(self, epoch: str, before: FactSet, after: FactSet) -> StoreEffects[FactSet | None]:
        """Write a change and return the facts then; `None` if an erase came in between, and nothing of it is left."""
        yield from write_difference(self._owner, epoch, before, after)
        settled = yield from settle(self._owner, epoch, before, self._config)
        return settled if (yield from stands(self._owner, epoch)) else None

    def take_back_evicted(self, epoch: str, after: FactSet) -> StoreEffects[None]:
        """Delete from history again what went there at the limit and was erased while it was written."""
        if evicted := [fact.id for fact in after.archived]:
            yield from take_back_erased(self._owner, epoch, LastErasure("unknown"), evicted)
            yield from trim_history(self._owner)

    def rewrite(self, epoch: str, before: FactSet, after: FactSet, fact: Fact) -> StoreEffects[None]:
        """Write a change of one fact; `FactNotFound` if somebody deleted it meanwhile, and nothing of it is left."""
        yield from self.write(epoch, before, after)
        if (yield from take_back_deleted(self._owner, epoch, after, fact)):
            raise FactNotFound(fact.id)

    def take_back(
        self, epoch: str, before: FactSet, after: FactSet, done: UndoneFacts, edit: str, erasure: LastErasure
    ) -> StoreEffects[bool]:
        """Write facts that a person takes back or restores; `False` if an erase came in between."""
        now = max((fact.updated_at for fact in after.archived), default="")
        for fact in done.removed:
            # Records first: an update under way looks for them after its last write.
            alone = yield from self._alone(fact)
            yield deletion_puts(self._owner, alone, at=now, edit=edit, epoch=epoch)
        yield from write_difference(self._owner, epoch, before, after)
        earlier = yield from read_history(self._owner, epoch)
        # A section may tell of what the fact corrected, too; not if a fact of the chain is still in use.
        silent = dormant((*earlier, *after.rows.values()), [fact.id for fact in done.removed])
        said = [*(fact for fact in earlier if fact.id in silent), *done.removed]
        yield from drop_sections_about(self._owner, epoch, [fact.content for fact in said])
        yield from settle(self._owner, epoch, before, self._config)
        ids = [fact.id for fact in (*done.removed, *done.restored)]
        if (yield from take_back_erased(self._owner, epoch, erasure, ids)):
            return False
        for fact in done.restored:  # not before: these may be the records of that erase
            yield deletion_drops(self._owner, (yield from self._alone(fact)))
        # Whoever read the journal before the last of these records has to read it again.
        yield from count_edit(self._owner)
        return (yield from stands(self._owner, epoch))

    def _alone(self, fact: Fact) -> StoreEffects[Chain]:
        """Return the chain of one fact as it is now, without what it corrected: that may be true again."""
        return Chain.of([fact], (yield from read_provenance(self._owner, [fact.id])))


def end_over(owner: Owner, config: MemoryConfig, now: float) -> StoreEffects[int]:
    """Move facts that hold no longer into history, and return how many; said again, they are learned again."""
    writing = FactWriting(owner, config)
    epoch, before = yield from read_current_fact_set(owner)
    after = before
    for fact in before.active().values():
        if is_over(fact, now):
            after = retire(after, fact.id, "ended", now=timestamp(now))
    if count := len(after.archived):
        yield from writing.write(epoch, before, after)
        yield from writing.take_back_evicted(epoch, after)
    return count


def end_lapsed(owner: Owner, config: MemoryConfig, now: float) -> StoreEffects[int]:
    """Let go of what has waited for a person as long as it may, and return how many; said again, it waits again."""
    epoch, before = yield from read_current_fact_set(owner)
    gone = lapsed(before, now, config.approval_days)
    if gone:
        yield from end_held(owner, epoch, before, gone, now=timestamp(now))
        yield from stands(owner, epoch)
    return len(gone)


def end_held(owner: Owner, epoch: str, before: FactSet, held: Mapping[str, Fact], *, now: str) -> StoreEffects[None]:
    """Delete facts that wait for a person: from history an undo would make them active, though nobody said yes."""
    yield from let_go(owner, epoch, list(held.values()), now=now)
    yield from write_difference(owner, epoch, before, remove(before, *held))
