"""Taking back the last change of the facts, whoever made it: a person, or an update after a conversation. Pure.

There is no log of changes: rows and history tell when each fact came, changed or went. All that happened at the
newest of these times is one change, since an update stamps everything it does with one time. Taking it back is a
change of its own, so taking back again does it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memory.facts.fact import Fact, moment
from memory.facts.rules import FactSet, candidates, find, retire, same_content

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class UndoneFacts:
    """What taking back changed: facts that say again what they said, and those that are no longer used."""

    restored: tuple[Fact, ...] = ()
    removed: tuple[Fact, ...] = ()


def undo(
    fact_set: FactSet, history: Sequence[Fact], *, now: str, since: str = "", edit: str = "", at: str = ""
) -> tuple[FactSet, UndoneFacts] | None:
    """Return the facts as they were before their last change, and what that changes; `None` if nothing changed.

    To take back is to change by hand: what was said before does not undo it.

    Args:
        fact_set: The facts.
        history: Their revisions before, and those that are gone.
        now: ISO 8601.
        since: Up to when (ISO 8601) no change counts, as facts were erased then; empty if that never happened.
        edit: The number of this change by hand (`memory.control`).
        at: When the change was made that is taken back (ISO 8601), whatever came after it; by default the last one. A
            fact that has changed again since stays as it is.
    """
    earlier = {(fact.id, fact.revision): fact for fact in history}
    # Nobody can tell what a revision changed whose predecessor is not there: history is bounded, a hand may edit it.
    changed = [
        fact for fact in fact_set.active().values() if fact.revision == 1 or (fact.id, fact.revision - 1) in earlier
    ]
    gone = _gone(fact_set, history)
    times = [_time(fact) for fact in (*changed, *gone)]
    chosen = moment(at) if at else max(times, default=None)
    horizon = moment(since)
    if chosen not in times or (horizon is not None and chosen <= horizon):
        return None
    taking_back = _TakingBack(fact_set, now, edit)
    for fact in changed:
        if _time(fact) == chosen:
            taking_back.revert(fact, earlier.get((fact.id, fact.revision - 1)))
    for fact in gone:
        if _time(fact) == chosen:
            taking_back.restore(fact)
    return taking_back.fact_set, taking_back.done()


def brought_back(fact_set: FactSet, gone: Sequence[Fact], *, now: str, edit: str) -> FactSet:
    """Return the facts with those that went, unless others say the same by now.

    Args:
        fact_set: The facts.
        gone: Their last revisions.
        now: ISO 8601.
        edit: The number of this change by hand (`memory.control`).
    """
    taking_back = _TakingBack(fact_set, now, edit)
    for fact in gone:
        taking_back.restore(fact)
    return taking_back.fact_set


def _gone(fact_set: FactSet, history: Sequence[Fact]) -> list[Fact]:
    """Return the last revision of each fact that was superseded by another one or ended."""
    present = {fact.id for fact in fact_set.rows.values()}
    last = {fact.id: fact for fact in sorted(history, key=lambda fact: fact.revision)}
    return [fact for fact in last.values() if fact.id not in present and fact.replaced_by != fact.id]


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
            key, _ = find(self.fact_set, fact.id)
            # Replaced by itself marks an edit, so that undoing once more brings this text back.
            archived = replace(fact, status="superseded", replaced_by=fact.id)
            self.fact_set = replace(self.fact_set, archived=(*self.fact_set.archived, archived))
            self._bring_back(key, before, revision=fact.revision + 1)
            return
        # A new fact ends; one that was brought back is again what it was before that: ended, or superseded.
        like = before or replace(fact, status="ended", replaced_by="")
        self.fact_set = retire(self.fact_set, fact.id, like.status, now=self._now, replaced_by=like.replaced_by)
        self._removed.append(fact)

    def restore(self, gone: Fact) -> None:
        """Put a fact back that went, unless another one says the same by now."""
        if same_content(self.fact_set, gone.content) is None:
            key = next(key for key, _ in candidates(self.fact_set.salt, gone.content) if key not in self.fact_set.rows)
            self._bring_back(key, gone, revision=gone.revision + 1)

    def _bring_back(self, key: str, fact: Fact, *, revision: int) -> None:
        back = replace(fact, status="active", replaced_by="", ended_by="", updated_at=self._now, revision=revision)
        back = replace(back, edited_at=self._now, edit=self._edit)
        self.fact_set = replace(self.fact_set, rows={**self.fact_set.rows, key: back})
        self._restored.append(back)
