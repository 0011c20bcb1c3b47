"""Rows that a hand wrote, or two writers at once, put right: one row a content, an id a row, proper keys. Pure."""

from dataclasses import replace

from memory.facts.fact import Fact, is_protected
from memory.facts.rules import FactSet, candidates, remove
from memory.text import normalize


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
