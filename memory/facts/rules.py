"""The rules of facts as functions on values: create, update, retire, confirm, limit. Pure.

A `FactSet` is what one owner's facts are at a moment. Every rule takes one and returns another; what has to be
written is the difference of the two (`memory.facts.rows`).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, count
from typing import Final

from memory.config import MemoryConfig
from memory.facts.changes import Reason
from memory.facts.fact import (
    DuplicateFact,
    Fact,
    FactNotFound,
    MemoryFull,
    Source,
    Status,
    checked_category,
    checked_confidence,
    checked_content,
    checked_expiry,
    fact_id,
    fact_key,
    is_protected,
    may_be_used,
    strength,
)
from memory.screening.door import admitted
from memory.text import normalize

# What conversations and imports quarantine must not fill the store: where so many wait, more are refused.
MAX_HELD: Final = 100


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A fact was said again: which one, by what (a message id or any unique token), when, and by which messages."""

    fact_id: str
    evidence: str
    time: str
    thread_id: str = ""
    message_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FactSet:
    """One owner's facts.

    Attributes:
        salt: The owner's name, which ids are derived from.
        epoch: The user's epoch, of which they are.
        rows: Active, quarantined and waiting facts by store key.
        retired: Ids in history, which no other fact may get.
        archived: Revisions that left the rows since these were read; they go to history.
        confirmations: What was said again since the rows were read.
        said_again: How often each fact was said again before, by its id; where it was not read, 0 for all.
        evicted: Facts in history that went at the limit, by their normalized content, as far as they were looked up.
        homes: Where rows stand that a hand wrote without a proper key, id or epoch, by the keys that they get.
    """

    salt: str
    rows: Mapping[str, Fact] = field(default_factory=dict)
    retired: frozenset[str] = frozenset()
    archived: tuple[Fact, ...] = ()
    confirmations: tuple[Confirmation, ...] = ()
    said_again: Mapping[str, int] = field(default_factory=dict)
    evicted: Mapping[str, Fact] = field(default_factory=dict)
    homes: Mapping[str, str] = field(default_factory=dict)
    epoch: str = ""

    def active(self) -> dict[str, Fact]:
        """Return the rows that count: those that may be injected."""
        return {key: fact for key, fact in self.rows.items() if fact.status == "active"}


def find(fact_set: FactSet, fact_id: str) -> tuple[str, Fact]:
    """Return key and fact of an id; `FactNotFound` if no row has it."""
    for key, fact in fact_set.rows.items():
        if fact.id == fact_id:
            return key, fact
    raise FactNotFound(fact_id)


def same_content(fact_set: FactSet, content: str, status: Status = "active") -> Fact | None:
    """Return the fact of this status that says the same, whatever case, spacing, form or trailing punctuation."""
    wanted = normalize(content)
    for fact in fact_set.rows.values():
        if fact.status == status and normalize(fact.content) == wanted:
            return fact
    return None


def place(fact_set: FactSet, draft: Fact) -> tuple[FactSet, Fact]:
    """Put a new fact into a row of its own, with an id that no fact has or had.

    What went at the limit and is said again comes back: the same fact, as it is told now.
    """
    back = fact_set.evicted.get(normalize(draft.content)) if draft.status == "active" else None
    taken = fact_set.retired | {fact.id for fact in fact_set.rows.values()}
    key, new_id = next(
        (key, new_id)
        for key, new_id in candidates(fact_set.salt, draft.content)
        if key not in fact_set.rows and new_id not in taken
    )
    fact = replace(draft, id=new_id)
    if back is not None and all(back.id != each.id for each in fact_set.rows.values()):
        fact = replace(
            draft,
            id=back.id,
            created_at=back.created_at,
            revision=back.revision,
            thread_id=draft.thread_id or back.thread_id,
            message_ids=draft.message_ids or back.message_ids,
        )
    return replace(fact_set, rows={**fact_set.rows, key: fact}), fact


def candidates(salt: str, content: str) -> Iterator[tuple[str, str]]:
    """Yield the keys and ids a fact of this content may get, in the order they are tried."""
    return ((fact_key(content, n), fact_id(salt, content, n)) for n in count())


def create(fact_set: FactSet, draft: Fact, config: MemoryConfig, evidence: str) -> tuple[FactSet, Fact]:
    """Add a fact, or confirm the one that already says this.

    Args:
        fact_set: What is there.
        draft: The new fact; its id is given here.
        config: The limit, and which categories are protected.
        evidence: By what a repeat is recognized as a confirmation of its own.

    Returns:
        The facts, within their limit, and the new one (or the unchanged one that was there).

    Raises:
        MemoryFull: If the limit is reached and all that is there is protected.
    """
    if draft.status == "active":  # a person says it themselves: nobody has to say yes to it any more
        twin = same_content(fact_set, draft.content, "waiting")
        fact_set = remove(fact_set, *(key for key, fact in fact_set.rows.items() if fact is twin))
    known = same_content(fact_set, draft.content, draft.status)
    if known is not None:
        return confirm(fact_set, Confirmation(known.id, evidence, draft.created_at)), known
    if is_full(fact_set, config):
        raise MemoryFull(config.max_facts)
    grown, fact = place(fact_set, draft)
    return limit(grown, config, fact_set.rows), fact


def insert(
    fact_set: FactSet, drafts: Iterable[Fact], config: MemoryConfig, fresh: frozenset[str] = frozenset()
) -> tuple[FactSet, list[Fact | Reason]]:
    """Put new facts beside those that are there, within the limit; what is known already stays as it is.

    Args:
        fact_set: What is there.
        drafts: What comes.
        config: The limit, and which categories are protected.
        fresh: Keys of facts that came earlier in the same import, which count as new too.

    Returns:
        The facts then; and for each draft the fact that it became, or why it became none.
    """
    before = frozenset(fact_set.rows) - fresh
    # Looking through all facts for each draft would take the square of an import's length.
    said = {(fact.status, normalize(fact.content)) for fact in fact_set.rows.values()}
    done: list[Fact | Reason] = []
    waits = sum(fact.status == "quarantined" for fact in fact_set.rows.values())
    for draft in drafts:
        content = (draft.status, normalize(draft.content))
        if content in said:
            done.append("duplicate")
        elif (draft.status == "active" and is_full(fact_set, config)) or (
            draft.status == "quarantined" and waits >= MAX_HELD
        ):
            done.append("full")
        else:
            waits += draft.status == "quarantined"
            fact_set, fact = place(fact_set, draft)
            done.append(fact)
            said.add(content)
    return limit(fact_set, config, before), done


def is_full(fact_set: FactSet, config: MemoryConfig) -> bool:
    """Say whether the limit is reached and nothing that is there may go."""
    active = fact_set.active().values()
    return len(active) >= config.max_facts and all(is_protected(fact, config.protected_categories) for fact in active)


def update(
    fact_set: FactSet,
    wanted: str,
    *,
    now: str,
    content: str | None = None,
    category: str | None = None,
    confidence: float | None = None,
    pinned: bool | None = None,
    source: Source | None = None,
    edit: str = "",
    expires_at: str | None = None,
) -> tuple[FactSet, Fact]:
    """Change the given fields of a fact; key, id and creation time stay, the revision before goes to the archive.

    A fact whose new content reads as an order waits for review.

    Args:
        fact_set: What is there.
        wanted: Which fact.
        now: ISO 8601.
        content: What it is to say.
        category: Its category.
        confidence: From 0.0 to 1.0.
        pinned: Whether to spare it.
        source: Who writes it, if what it says changes; `None` leaves it as it was.
        edit: The number of this change by hand (`memory.control`).
        expires_at: Until when it holds, as a day, month or year of ISO 8601; empty takes an end back.

    Raises:
        FactNotFound: If no row has the id.
        ValueError: If a value is invalid, or the new content holds a secret.
        DuplicateFact: If another fact already says the new content.
    """
    key, old = find(fact_set, wanted)
    new = replace(
        old,
        content=old.content if content is None else checked_content(content),
        category=old.category if category is None else checked_category(category),
        confidence=old.confidence if confidence is None else checked_confidence(confidence),
        pinned=old.pinned if pinned is None else bool(pinned),
        valid_to=old.valid_to if expires_at is None else checked_expiry(expires_at),
    )
    if new == old:
        return fact_set, old
    if new.content != old.content:  # what the old words said of its time need not hold for the new ones
        new = replace(new, valid_from="", valid_to="" if expires_at is None else new.valid_to)
    if new.content != old.content and admitted(new.content, "content") is not None:
        new = replace(new, status="quarantined")
    twin = same_content(fact_set, new.content, new.status)
    if twin is not None and twin.id != old.id:
        raise DuplicateFact(twin.id)
    # Who pins what a conversation said does not become its author.
    is_rewritten = replace(new, pinned=old.pinned) != old
    source = source if source and is_rewritten else old.source
    new = replace(new, source=source, updated_at=now, edited_at=now, edit=edit, revision=old.revision + 1)
    archived = replace(old, status="superseded", replaced_by=old.id)
    return replace(fact_set, rows={**fact_set.rows, key: new}, archived=(*fact_set.archived, archived)), new


def remove(fact_set: FactSet, *keys: str) -> FactSet:
    """Return the facts without these rows."""
    return replace(fact_set, rows={key: fact for key, fact in fact_set.rows.items() if key not in keys})


def retire(
    fact_set: FactSet, wanted: str, status: Status, *, now: str, replaced_by: str = "", ended_by: str = ""
) -> FactSet:
    """Move a fact into the archive: `superseded` by another one, or `ended` because it is no longer true."""
    key, fact = find(fact_set, wanted)
    # Its id stays taken: another fact with it would seem to have this one's history.
    archived = replace(fact, status=status, updated_at=now, replaced_by=replaced_by, ended_by=ended_by)
    return replace(remove(fact_set, key), archived=(*fact_set.archived, archived), retired=fact_set.retired | {fact.id})


def confirm(fact_set: FactSet, confirmation: Confirmation) -> FactSet:
    """Note that a fact was said again; the fact itself stays as it is."""
    return replace(fact_set, confirmations=(*fact_set.confirmations, confirmation))


def limit(fact_set: FactSet, config: MemoryConfig, older: Collection[str]) -> FactSet:
    """Return the facts, at most `max_facts` active ones, and of those that wait for a person the newest.

    The order in which they stay is total: protected, then new in this update, then confidence, then how often it was
    said again, then the younger, then the key. What goes is kept in history, as `evicted`, since the time of the newest
    of the new ones. What is new and finds no room was never learned, and is not.

    Args:
        fact_set: What is there.
        config: The limit, and which categories are protected.
        older: Keys of the rows that are not new.
    """
    active = fact_set.active()
    again = Counter(fact_set.said_again) + Counter(each.fact_id for each in fact_set.confirmations)

    def standing(key: str) -> tuple[bool, bool, float, int, str, str]:
        fact = active[key]
        is_safe = is_protected(fact, config.protected_categories)
        return (is_safe, key not in older, fact.confidence, again[fact.id], fact.created_at, key)

    surplus = sorted(active, key=standing, reverse=True)[config.max_facts :]
    now = max((fact.updated_at for key, fact in active.items() if key not in older), default="")
    went = [active[key] for key in surplus if key in older]
    evicted = tuple(replace(fact, status="evicted", updated_at=now or fact.updated_at) for fact in went)
    # What is quarantined stays until a person answers: nobody but a flood would make it go.
    waits = [(fact.updated_at, fact.created_at, key) for key, fact in fact_set.rows.items() if fact.status == "waiting"]
    surplus += [key for *_, key in sorted(waits, reverse=True)[config.max_waiting :]]
    return replace(remove(fact_set, *surplus), archived=(*fact_set.archived, *evicted)) if surplus else fact_set


JUDGED_CHARS: Final = 200_000


def adopt(fact_set: FactSet, by_hand: Collection[str]) -> FactSet:
    """Return the facts with a key and an id of its own for every row that a hand wrote (keys), or copied."""
    rows: dict[str, Fact] = {}
    homes: dict[str, str] = {}
    taken: set[str] = set()
    # Rows of our own writes first: where a hand copied one, the copy gets another id.
    for home in sorted(fact_set.rows, key=lambda key: (key in by_hand, key)):
        key, fact = home, fact_set.rows[home]
        if home in by_hand or fact.id in taken:
            free = (each for each in candidates(fact_set.salt, fact.content) if each[0] == home or each[0] not in rows)
            key, new_id = next(each for each in free if each[1] not in taken)
            fact = replace(fact, id=new_id if fact.id in {"", *taken} else fact.id)
            homes[key] = home
        rows[key] = fact
        taken.add(fact.id)
    return replace(fact_set, rows=rows, homes=homes)


def unite(fact_set: FactSet) -> FactSet:
    """Return the facts with one row for each content, the protected or else the first: a hand may have written two."""
    rows = fact_set.rows
    kept: dict[tuple[Status, str], str] = {}
    for key in sorted(rows, key=lambda key: (not is_protected(rows[key]), rows[key].created_at, key)):
        kept.setdefault((rows[key].status, normalize(rows[key].content)), key)
    return remove(fact_set, *(rows.keys() - kept.values()))


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
