"""How a change of one owner's facts is written, and taken back where an erase or a deletion came in between."""

from memory.config import MemoryConfig
from memory.control import count_edit
from memory.effects import StoreEffects
from memory.facts.chain import Chain, dormant
from memory.facts.confirmations import read_provenance
from memory.facts.deletions import LastErasure, deletion_drops, deletion_puts, take_back_deleted, take_back_erased
from memory.facts.fact import Fact, FactNotFound
from memory.facts.profile import drop_sections_about
from memory.facts.rows import read_history, settle, stands, trim_history, write_difference
from memory.facts.rules import FactSet
from memory.facts.undo import UndoneFacts
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
