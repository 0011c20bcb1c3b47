"""Rows that a hand wrote, or two writers at once, put right: one row a content, an id a row, proper keys. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Final

from memory.facts.fact import Fact, is_protected, may_be_used, strength
from memory.facts.rules import FactSet, candidates, remove
from memory.text import normalize

JUDGED_CHARS: Final = 200_000


def unite(fact_set: FactSet) -> FactSet:
    """Return the facts with one row for each content: concurrent edits may have made two say the same."""
    kept: dict[tuple[str, str], str] = {}
    surplus = []
    for key in sorted(
        fact_set.rows, key=lambda key: (not is_protected(fact_set.rows[key]), fact_set.rows[key].created_at, key)
    ):
        fact = fact_set.rows[key]
        if kept.setdefault((fact.status, normalize(fact.content)), key) != key:
            surplus.append(key)
    return remove(fact_set, *surplus) if surplus else fact_set


def identify(fact_set: FactSet) -> FactSet:
    """Return the facts with an id for every row that has none, or that shows the id of another (a hand copied it)."""
    rows: dict[str, Fact] = {}
    taken: set[str] = set()
    # Rows of our own writes first: where a hand copied one, the copy gets another id.
    for key in sorted(fact_set.rows, key=lambda key: (key in fact_set.unowned, key)):
        fact = fact_set.rows[key]
        if not fact.id or fact.id in taken:
            fact = replace(fact, id=next(new for _, new in candidates(fact_set.salt, fact.content) if new not in taken))
        rows[key] = fact
        taken.add(fact.id)
    return replace(fact_set, rows=rows)


def adopt(fact_set: FactSet, epoch: str) -> FactSet:
    """Return the facts with every row that a hand wrote under a proper key and epoch."""
    rows = dict(fact_set.rows)
    for key in sorted(fact_set.unowned & set(rows)):
        fact = replace(rows.pop(key), epoch=epoch)
        proper = next(new for new, _ in candidates(fact_set.salt, fact.content) if new not in rows)
        rows[proper] = fact
    return replace(fact_set, rows=rows, unowned=frozenset())


def suspects(rows: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return the active rows that no prompt may show as they are, quarantined: a person sees them, and decides.

    A hand wrote them. Far more than any prompt shows is judged, and no more: the longest facts
    would hold the event loop for seconds.
    """
    active = sorted(
        (key for key in rows if rows[key].status == "active"), key=lambda key: strength(rows[key]), reverse=True
    )
    read = accumulate(len(rows[key].content) for key in active)
    within = [key for key, chars in zip(active, read, strict=True) if chars <= JUDGED_CHARS]
    return {key: replace(rows[key], status="quarantined") for key in within if not may_be_used(rows[key])}
