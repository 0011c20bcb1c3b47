"""Taking back the last change of the facts, whoever made it: a person, or an update after a conversation.

There is no log of changes: rows and history tell when each fact came, changed or went. All that happened at the
newest of these times is one change, since an update stamps everything it does with one time. Taking it back is a
change of its own, so taking back again does it again.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memory.config import MemoryConfig
from memory.control import count_edit, read_epoch
from memory.effects import StoreEffects
from memory.facts.chain import Chain, dormant
from memory.facts.deletions import LastErasure, discard, marks, moment, read_erasure, take_back_erased, unmarks
from memory.facts.fact import Fact, timestamp
from memory.facts.profile import drop_sections_about
from memory.facts.rows import read_fact_set, read_history, read_provenance, settle, stands, write_difference
from memory.facts.rules import FactSet, candidates, find, retire, same_content
from memory.namespaces import Owner

logger = logging.getLogger(__name__)

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class UndoneFacts:
    """What taking back changed: facts that say again what they said, and those that are no longer used."""

    restored: tuple[Fact, ...] = ()
    removed: tuple[Fact, ...] = ()


def undo_steps(owner: Owner, config: MemoryConfig, seconds: float) -> StoreEffects[UndoneFacts | None]:
    """Take back the last change of the stored facts; `None` if there is none since facts were erased.

    What an eviction took, and what an update wrote into the profile, does not come back.
    """
    epoch = yield from read_epoch(owner)
    erasure = yield from read_erasure(owner, epoch)
    before = yield from read_fact_set(owner, epoch)
    history = yield from read_history(owner, epoch)
    edit = yield from count_edit(owner)
    taken_back = undo(before, history, now=timestamp(seconds), since=erasure.at, edit=edit)
    if taken_back is None:
        return None
    after, done = taken_back
    if not (yield from _write(owner, epoch, before, after, done, edit, config, erasure)):
        return None
    logger.info("took back a change: restored %d, removed %d", len(done.restored), len(done.removed))
    return done


def retire_steps(owner: Owner, fact_id: str, config: MemoryConfig, seconds: float) -> StoreEffects[None]:
    """Move a fact into history, so that taking back can restore it, and keep it from coming back by itself.

    A quarantined one is deleted for good.

    Raises:
        FactNotFound: If the id is unknown.
    """
    now = timestamp(seconds)
    epoch = yield from read_epoch(owner)
    erasure = yield from read_erasure(owner, epoch)
    before = yield from read_fact_set(owner, epoch)
    _, fact = find(before, fact_id)
    edit = yield from count_edit(owner)
    if fact.status == "quarantined":
        yield discard(owner, before, fact, now=now, edit=edit, epoch=epoch)
        return
    after = retire(before, fact_id, "ended", now=now)
    yield from _write(owner, epoch, before, after, UndoneFacts(removed=(fact,)), edit, config, erasure)
    logger.info("retired %s", fact_id)


def _write(
    owner: Owner,
    epoch: str,
    before: FactSet,
    after: FactSet,
    done: UndoneFacts,
    edit: str,
    config: MemoryConfig,
    erasure: LastErasure,
) -> StoreEffects[bool]:
    """Write the shelf; `False` if an erase came in between, and nothing of it is left."""
    now = max((fact.updated_at for fact in after.archived), default="")
    for fact in done.removed:
        yield marks(owner, (yield from _alone(owner, fact)), now=now, edit=edit, epoch=epoch)
    yield from write_difference(owner, epoch, before, after)
    earlier = yield from read_history(owner, epoch)
    silent = dormant((*earlier, *after.rows.values()), [fact.id for fact in done.removed])
    said = [fact.content for fact in earlier if fact.id in silent]
    yield from drop_sections_about(owner, epoch, [*said, *(fact.content for fact in done.removed)])
    yield from settle(owner, epoch, before, config)
    ids = [fact.id for fact in (*done.removed, *done.restored)]
    if (yield from take_back_erased(owner, epoch, erasure, ids)):
        return False
    for fact in done.restored:  # not before: these may be the marks of that erase
        yield unmarks(owner, (yield from _alone(owner, fact)))
    return (yield from stands(owner, epoch))


def _alone(owner: Owner, fact: Fact) -> StoreEffects[Chain]:
    """Return the chain of one fact as it is now, without what it corrected: that may be true again."""
    return Chain.of([fact], (yield from read_provenance(owner, [fact.id])))


def undo(
    fact_set: FactSet, history: Sequence[Fact], *, now: str, since: str = "", edit: str = ""
) -> tuple[FactSet, UndoneFacts] | None:
    """Return the shelf as it was before its last change, and what that changes; `None` if nothing changed.

    To take back is to change by hand: what was said before does not undo it.

    Args:
        fact_set: The facts.
        history: Their revisions before, and those that are gone.
        now: ISO 8601.
        since: Up to when (ISO 8601) no change counts, as facts were erased then; empty if that never happened.
        edit: The mark of this change by hand (`memory.control`).
    """
    earlier = {(fact.id, fact.revision): fact for fact in history}
    horizon = moment(since)
    changed = [
        fact for fact in fact_set.active().values() if _is_known_change(fact, earlier) and _is_after(fact, horizon)
    ]
    gone = [fact for fact in _gone(fact_set, history) if _is_after(fact, horizon)]
    newest = max((_time(fact) for fact in (*changed, *gone)), default=None)
    if newest is None:
        return None
    taking_back = _TakingBack(fact_set, now, edit)
    for fact in changed:
        if _time(fact) == newest:
            taking_back.revert(fact, earlier.get((fact.id, fact.revision - 1)))
    for fact in gone:
        if _time(fact) == newest:
            taking_back.restore(fact)
    return taking_back.fact_set, taking_back.done()


def _is_known_change(fact: Fact, earlier: Mapping[tuple[str, int], Fact]) -> bool:
    return fact.revision == 1 or (fact.id, fact.revision - 1) in earlier


def _gone(fact_set: FactSet, history: Sequence[Fact]) -> list[Fact]:
    """Return the last revision of each fact that was superseded by another one or ended."""
    present = {fact.id for fact in fact_set.rows.values()}
    last = {fact.id: fact for fact in sorted(history, key=lambda fact: fact.revision)}
    return [fact for fact in last.values() if fact.id not in present and fact.replaced_by != fact.id]


def _is_after(fact: Fact, horizon: datetime | None) -> bool:
    return horizon is None or _time(fact) > horizon


def _time(fact: Fact) -> datetime:
    return moment(fact.updated_at) or _NEVER


class _TakingBack:
    """One change on its way back: `fact_set` is what it has become."""

    def __init__(self, fact_set: FactSet, now: str, edit: str) -> None:
        self.fact_set = fact_set
        self._now, self._edit = now, edit
        self._restored: list[Fact] = []
        self._removed: list[Fact] = []

    def done(self) -> UndoneFacts:
        return UndoneFacts(tuple(self._restored), tuple(self._removed))

    def revert(self, fact: Fact, before: Fact | None) -> None:
        """Take back what a fact that is there became: by creation, by an edit, or by being restored."""
        if before is not None and before.replaced_by == fact.id:
            self._take_up(fact, before)
        elif before is None:
            self._retire(fact, replace(fact, status="ended", replaced_by=""))
        else:
            self._retire(fact, before)

    def restore(self, gone: Fact) -> None:
        """Put a fact back that went, unless another one says the same by now."""
        if same_content(self.fact_set, gone.content) is None:
            key = next(key for key, _ in candidates(self.fact_set.salt, gone.content) if key not in self.fact_set.rows)
            back = replace(gone, status="active", replaced_by="", updated_at=self._now, revision=gone.revision + 1)
            self._put(key, back)

    def _take_up(self, fact: Fact, before: Fact) -> None:
        key, _ = find(self.fact_set, fact.id)
        archived = replace(fact, status="superseded", replaced_by=fact.id)
        self.fact_set = replace(self.fact_set, archived=(*self.fact_set.archived, archived))
        back = replace(before, status="active", replaced_by="", updated_at=self._now, revision=fact.revision + 1)
        self._put(key, back)

    def _retire(self, fact: Fact, like: Fact) -> None:
        self.fact_set = retire(self.fact_set, fact.id, like.status, now=self._now, replaced_by=like.replaced_by)
        self._removed.append(fact)

    def _put(self, key: str, fact: Fact) -> None:
        fact = replace(fact, edited_at=self._now, edit=self._edit)
        self.fact_set = replace(self.fact_set, rows={**self.fact_set.rows, key: fact})
        self._restored.append(fact)
