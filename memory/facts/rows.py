"""How an owner's facts are read from a store, and what changes of them is written back."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, NamedTuple, Self

from langgraph.store.base import GetOp, Item, Op

from memory.config import MemoryConfig
from memory.control import belongs, read_epoch
from memory.effects import StoreEffects, delete, put, read, read_many, scan, side_by_side
from memory.facts.changes import Outcome
from memory.facts.confirmations import Confirmations, confirmation_puts
from memory.facts.fact import Fact, from_item, is_proper, to_item
from memory.facts.rules import FactSet, adopt, candidates, identify, limit, suspects, unite
from memory.namespaces import Kind, Owner
from memory.text import normalize

logger = logging.getLogger(__name__)

KEPT_HISTORY: Final = 1000
KEPT_DELETIONS: Final = 2000
KEPT_ANSWERS: Final = 2000
# How many ids of one content are looked up in history before a new fact of it is placed; more relearnings of one
# text than that never happened to anybody.
_CANDIDATES: Final = 4
# What keys of deletion records begin with: they stand among the revisions (`memory.facts.deletions`).
DELETION: Final = "gone."
# What keys of a person's answers about past messages begin with (`memory.facts.answers`).
ANSWER: Final = "asked."
# The item among the revisions that names the extractions applied last (`memory.facts.applying`).
OUTCOMES: Final = "applied"
# The item among the revisions that tells when facts were erased last (`memory.facts.deletions`).
ERASED: Final = "erased"


def read_fact_set(
    owner: Owner, epoch: str, contents: Sequence[str] = (), *, said_again: bool = False
) -> StoreEffects[FactSet]:
    """Read an owner's facts of this epoch; rows that are no facts are skipped and counted.

    Args:
        owner: Whose facts.
        epoch: The user's current epoch; rows of others do not count.
        contents: What is about to be added: facts that history holds for them are looked up.
        said_again: Whether to read how often each was said again, for the order in which they go at the limit.
    """
    rows = yield from _read_rows(owner, contents, said_again)
    return _fact_set_of(owner, epoch, rows)


def read_current_fact_set(
    owner: Owner, contents: Sequence[str] = (), *, said_again: bool = False
) -> StoreEffects[tuple[str, FactSet]]:
    """Read the user's current epoch, and the owner's facts of it."""
    epoch, rows = yield from side_by_side(read_epoch(owner), _read_rows(owner, contents, said_again))
    return epoch, _fact_set_of(owner, epoch, rows)


class _Rows(NamedTuple):
    """Items of an owner: facts, first revisions in history of what is about to be added, and confirmations."""

    facts: list[Item]
    history: list[Item]
    confirmations: list[Item]


def _read_rows(owner: Owner, contents: Sequence[str], said_again: bool) -> StoreEffects[_Rows]:
    ids = [new_id for content in contents for _, new_id in islice(candidates(_salt(owner), content), _CANDIDATES)]
    facts, history, confirmations = yield from side_by_side(
        scan(owner.namespace("facts")),
        # Whatever became of a fact, its first revision is in history as soon as it was changed or went.
        read_many(owner.namespace("history"), [history_key(fact_id, 1) for fact_id in ids]),
        scan(owner.namespace("confirmations")) if said_again else _nothing(),
    )
    return _Rows(facts, [item for item in history if item], confirmations)


def _nothing() -> StoreEffects[list[Item]]:
    return []
    yield


def _salt(owner: Owner) -> str:
    return f"{owner.segment}/{owner.agent_name}"


def _fact_set_of(owner: Owner, epoch: str, read: _Rows) -> FactSet:
    rows: dict[str, Fact] = {}
    unowned = set()
    broken = 0
    for item in read.facts:
        if not belongs(item.value, epoch):
            continue
        try:
            rows[item.key] = from_item(item.value, epoch=epoch, written_at=item.created_at)
        except ValueError as error:
            broken += 1
            logger.warning("skipped an unreadable fact under key %.64s: bad %s", item.key, str(error).partition(" ")[0])
            continue
        if not is_proper(item.key, item.value):
            unowned.add(item.key)
    rows.update(suspects(rows))
    known = [item for item in read.confirmations if belongs(item.value, epoch)]
    before = list(_revisions(read.history, epoch))
    fact_set = FactSet(
        _salt(owner),
        rows,
        frozenset(item.key.rpartition(".")[0] for item in read.history),
        said_again={item.key: Confirmations.from_json(item.value).count for item in known},
        evicted={normalize(fact.content): fact for fact in reversed(before) if fact.status == "evicted"},
        broken=broken,
        unowned=frozenset(unowned),
    )
    return identify(fact_set)


def write_difference(owner: Owner, epoch: str, old: FactSet, new: FactSet) -> StoreEffects[dict[str, Fact]]:
    """Write what makes the stored facts the new ones: rows put and deleted, revisions archived, repeats noted.

    Returns:
        The rows that this overwrote or deleted though a person had edited them since the old ones were read: no store
        has compare-and-swap, but one batch can read what it is about to write.
    """
    facts = owner.namespace("facts")
    history = owner.namespace("history")
    present = frozenset(fact.id for fact in new.rows.values())
    gone = [fact.id for key, fact in old.rows.items() if key not in new.rows and fact.id not in present]
    operations: list[Op] = [
        put(facts, key, to_item(fact))
        for key, fact in new.rows.items()
        if old.rows.get(key) != fact or key in old.unowned
    ]
    operations += [
        put(history, history_key(fact.id, fact.revision), to_item(fact)) for fact in new.archived[len(old.archived) :]
    ]
    operations += [delete(facts, key) for key in old.rows if key not in new.rows]
    # What came back from history is no history any more.
    operations += [
        delete(history, history_key(fact.id, fact.revision)) for fact in old.evicted.values() if fact.id in present
    ]
    retired = {fact.id for fact in new.archived}
    operations += [delete(owner.namespace("confirmations"), fact_id) for fact_id in gone if fact_id not in retired]
    operations += yield from confirmation_puts(owner, epoch, new.confirmations[len(old.confirmations) :], present)
    if not operations:
        return {}
    touched = [key for key, fact in old.rows.items() if new.rows.get(key) != fact]
    # Reads of a batch see the store before its writes.
    reads: list[Op] = [GetOp(facts, key, refresh_ttl=False) for key in touched]
    items = (yield [*reads, *operations])[: len(touched)]
    return {
        item.key: fact
        for item in items
        if item and (fact := _edited_since(old.rows[item.key], item, epoch)) is not None
    }


def _edited_since(known: Fact, item: Item, epoch: str) -> Fact | None:
    try:
        fact = from_item(item.value, epoch=epoch, written_at=item.created_at)
    except ValueError:
        return None
    is_newer = bool(fact.edited_at) and fact.id == known.id and fact.revision > known.revision
    return fact if is_newer and belongs(item.value, epoch) else None


def give_way(
    owner: Owner, epoch: str, wrong: FactSet, right: FactSet, edited: Mapping[str, Fact]
) -> StoreEffects[None]:
    """Write the right facts in the place of those that were written though a person had edited these rows."""
    yield from put_back(owner, edited)
    yield from write_difference(owner, epoch, replace(wrong, archived=(), confirmations=()), right)


def put_back(owner: Owner, edited: Mapping[str, Fact]) -> StoreEffects[None]:
    """Write rows again that a person edited and somebody else overwrote or deleted."""
    if edited:
        yield [put(owner.namespace("facts"), key, to_item(fact)) for key, fact in edited.items()]


def settle(owner: Owner, epoch: str, before: FactSet, config: MemoryConfig) -> StoreEffects[FactSet]:
    """Look again after writing: one row for each content, never more than the limit; return what is there now.

    No store has compare-and-swap, so the laws are enforced on what is there afterwards, in an order that every
    writer agrees on.

    Args:
        owner: Whose facts were written.
        epoch: The epoch it was written under.
        before: The facts as they were read.
        config: The limit, and which categories are protected.
    """
    after = yield from read_fact_set(owner, epoch, said_again=True)
    # What a person has just released is as new as what was just learned.
    there = before.active()
    new = frozenset(key for key in after.active() if key not in there)
    # Nobody looks afterwards whether these were erased meanwhile, so their words must not be written once more.
    settled = limit(unite(adopt(after, epoch)), config, new, to_history=False)
    edited = yield from write_difference(owner, epoch, after, settled)
    yield from put_back(owner, edited)
    return replace(settled, rows={**settled.rows, **edited})


def stands(owner: Owner, epoch: str) -> StoreEffects[bool]:
    """Say, as the last step of writing, whether the epoch is still the current one; if not, take back what it wrote."""
    if (yield from read_epoch(owner)) == epoch:
        return True
    yield from take_back(owner, epoch)
    return False


def take_back(owner: Owner, epoch: str) -> StoreEffects[None]:
    """Delete everything that still stands under an epoch that an erase has ended."""
    # The journal and the outbox are not among them: who writes those takes them back.
    kinds: tuple[Kind, ...] = ("facts", "history", "confirmations", "profile")
    stale: list[Op] = []
    for kind in kinds:
        items = yield from scan(owner.namespace(kind))
        stale += [delete(item.namespace, item.key) for item in items if item.value.get("epoch") == epoch]
    if stale:
        yield stale
    logger.info("took back %d items written across an erase", len(stale))


def read_history(owner: Owner, epoch: str) -> StoreEffects[list[Fact]]:
    """Read the revisions that are no longer true, oldest first; they are never injected."""
    facts = _revisions((yield from scan(owner.namespace("history"))), epoch)
    return sorted(facts, key=lambda fact: (fact.updated_at, fact.id, fact.revision))


def still_evicted(fact_set: FactSet, history: Iterable[Fact]) -> list[Fact]:
    """Return what went at the limit and nothing became of since.

    An undo may have brought it back, and a person may have deleted it then: it stays in history, too.

    Args:
        fact_set: What is there.
        history: The revisions that are no longer true, oldest first.
    """
    last = {fact.id: fact for fact in history}
    present = {fact.id for fact in fact_set.rows.values()}
    said = {normalize(fact.content) for fact in fact_set.rows.values()}
    return [
        fact
        for fact in last.values()
        if fact.status == "evicted" and fact.id not in present and normalize(fact.content) not in said
    ]


def _revisions(items: Iterable[Item], epoch: str) -> Iterator[Fact]:
    for item in items:
        if not is_revision(item) or not belongs(item.value, epoch):
            continue
        try:
            yield from_item(item.value, epoch=epoch, written_at=item.created_at)
        except ValueError:
            logger.warning("skipped an unreadable revision under key %.64s", item.key)


def trim_history(owner: Owner) -> StoreEffects[None]:
    """Delete the oldest revisions, deletion records and answers above their bounds; what lost its answer waits."""
    # By the store's time of the last write, which items of every kind have.
    items = sorted((yield from scan(owner.namespace("history"))), key=lambda item: (item.updated_at, item.key))
    evicted = [item for item in items if item.value.get("status") == "evicted"]
    revisions = [item for item in items if is_revision(item) and item.value.get("status") != "evicted"]
    deletions = [item for item in items if item.key.startswith(DELETION)]
    answers = [item for item in items if item.key.startswith(ANSWER)]
    surplus = [*evicted[:-KEPT_HISTORY], *revisions[:-KEPT_HISTORY], *deletions[:-KEPT_DELETIONS]]
    surplus += answers[:-KEPT_ANSWERS]
    if surplus:
        yield [delete(item.namespace, item.key) for item in surplus]


def is_revision(item: Item) -> bool:
    """Say whether an item of history is a fact's revision, not a record of what was deleted or answered."""
    return item.key not in (OUTCOMES, ERASED) and not item.key.startswith((DELETION, ANSWER))


def history_key(fact_id: str, revision: int) -> str:
    """Return the key under which history keeps one revision of a fact."""
    return f"{fact_id}.{revision}"


KEPT_OUTCOMES: Final = 32


@dataclass(frozen=True, slots=True)
class RecentOutcomes:
    """What applying the newest 32 extractions did, by the extractions' digests, oldest first.

    At the cap, the rules alone cannot make applying twice the same as once: what the first time found no room would
    find it the second time, in the place of what the first time brought.
    """

    by_digest: Mapping[str, Outcome]

    def with_one(self, digest: str, outcome: Outcome) -> Self:
        """Return these with one more."""
        others = [(each, known) for each, known in self.by_digest.items() if each != digest]
        return replace(self, by_digest=dict([*others, (digest, outcome)][-KEPT_OUTCOMES:]))

    def write(self, owner: Owner, epoch: str) -> Op:
        """Return the write of these, in ids and reasons."""
        done = [[digest, outcome.to_json()] for digest, outcome in self.by_digest.items()]
        return put(owner.namespace("history"), OUTCOMES, {"epoch": epoch, "done": done})

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return those of a stored item; what a hand garbled in it is left out, and may be applied twice."""
        found = {}
        done = value.get("done")
        for each in done if isinstance(done, list) else ():
            with suppress(KeyError, TypeError, ValueError):
                digest, outcome = each
                found[str(digest)] = Outcome.from_json(outcome)
        return cls(found)


def read_outcomes(owner: Owner, epoch: str) -> StoreEffects[RecentOutcomes]:
    """Read what applying the newest extractions did."""
    item = yield from read(owner.namespace("history"), OUTCOMES)
    return RecentOutcomes.from_json(item.value if item and belongs(item.value, epoch) else {})
