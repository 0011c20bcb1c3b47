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
    restored: list[Fact] = []
    removed: list[Fact] = []
    for fact in changed:
        if _time(fact) == chosen:
            fact_set, back = _reverted(fact_set, fact, earlier.get((fact.id, fact.revision - 1)), now, edit)
            (restored if back else removed).append(back or fact)
    for fact in gone:
        if _time(fact) == chosen:
            fact_set, back = _restored(fact_set, fact, now, edit)
            restored += [back] if back else []
    return fact_set, UndoneFacts(tuple(restored), tuple(removed))


def brought_back(fact_set: FactSet, gone: Sequence[Fact], *, now: str, edit: str) -> FactSet:
    """Return the facts with those that went, unless others say the same by now.

    Args:
        fact_set: The facts.
        gone: Their last revisions.
        now: ISO 8601.
        edit: The number of this change by hand (`memory.control`).
    """
    for fact in gone:
        fact_set, _ = _restored(fact_set, fact, now, edit)
    return fact_set


def _gone(fact_set: FactSet, history: Sequence[Fact]) -> list[Fact]:
    """Return the last revision of each fact that was superseded by another one or ended."""
    present = {fact.id for fact in fact_set.rows.values()}
    last = {fact.id: fact for fact in sorted(history, key=lambda fact: fact.revision)}
    return [fact for fact in last.values() if fact.id not in present and fact.replaced_by != fact.id]


def _time(fact: Fact) -> datetime:
    return moment(fact.updated_at) or _NEVER


def _reverted(fact_set: FactSet, fact: Fact, before: Fact | None, now: str, edit: str) -> tuple[FactSet, Fact | None]:
    """Take back what a fact that is there became: by creation, by an edit, or by being restored.

    Returns:
        The facts, and the one that says again what it said; `None` if it is there no longer.
    """
    if before is not None and before.replaced_by == fact.id:
        key, _ = find(fact_set, fact.id)
        # Replaced by itself marks an edit, so that undoing once more brings this text back.
        archived = replace(fact, status="superseded", replaced_by=fact.id)
        fact_set = replace(fact_set, archived=(*fact_set.archived, archived))
        return _brought_back(fact_set, key, replace(before, revision=fact.revision), now, edit)
    # A new fact ends; one that was brought back is again what it was before that: ended, or superseded.
    like = before or replace(fact, status="ended", replaced_by="")
    return retire(fact_set, fact.id, like.status, now=now, replaced_by=like.replaced_by), None


def _restored(fact_set: FactSet, gone: Fact, now: str, edit: str) -> tuple[FactSet, Fact | None]:
    """Put a fact back that went, unless another one says the same by now."""
    if same_content(fact_set, gone.content) is not None:
        return fact_set, None
    key = next(key for key, _ in candidates(fact_set.salt, gone.content) if key not in fact_set.rows)
    return _brought_back(fact_set, key, gone, now, edit)


def _brought_back(fact_set: FactSet, key: str, fact: Fact, now: str, edit: str) -> tuple[FactSet, Fact]:
    back = replace(fact, status="active", replaced_by="", ended_by="", updated_at=now, revision=fact.revision + 1)
    back = replace(back, edited_at=now, edit=edit)
    return replace(fact_set, rows={**fact_set.rows, key: back}), back
