"""Facts that repeat each other become one: it stays, and has what said the others among its confirmations."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from memory.config import MemoryConfig
from memory.control import count_edit, read_epoch
from memory.effects import StoreEffects, put, read_many, side_by_side
from memory.facts.confirmations import Confirmations
from memory.facts.deletions import aside_put, read_erasure, take_back_erased
from memory.facts.fact import Fact, FactNotFound
from memory.facts.rows import read_fact_set
from memory.facts.rules import Confirmation, FactSet, confirm, retire, update
from memory.facts.writing import FactWriting
from memory.namespaces import Owner

logger = logging.getLogger(__name__)

# Merges that were undone, of one fact: more than anybody undoes twice.
_KEPT_PARTED: Final = 32


def joined(kept: Fact, own: Confirmations, other: Fact, its: Confirmations) -> list[Confirmation]:
    """Return what said another fact, as confirmations of the one that is kept, oldest first. Pure.

    Args:
        kept: The fact that stays.
        own: Its confirmations: a message that said both counts once.
        other: The fact that goes.
        its: The confirmations of that one.
    """
    known = {(kept.thread_id, kept.message_ids), *((each.thread_id, each.message_ids) for each in own.said)}
    said = [("", other.created_at, other.thread_id, other.message_ids)]
    said += [(each.evidence, each.time, each.thread_id, each.message_ids) for each in its.said]
    return [
        # Named after the fact that goes, so that an undo finds them again.
        Confirmation(kept.id, f"{other.id}\n{evidence}", time, thread_id, message_ids)
        for evidence, time, thread_id, message_ids in sorted(said, key=lambda one: one[1])
        if not thread_id or (thread_id, message_ids) not in known
    ]


def merge(owner: Owner, config: MemoryConfig, kept_id: str, other_ids: Sequence[str], now: str) -> StoreEffects[str]:
    """Keep one of several active facts and move the others into history, as one change that one undo takes back.

    The kept one is pinned if any of them was, and as sure as the surest. Ids that are not there are passed over.

    Returns:
        The time of the change, for `undo`.

    Raises:
        FactNotFound: If the one to keep is not there, or none of the others, or it was erased meanwhile.
    """
    epoch = yield from read_epoch(owner)
    before, erasure = yield from side_by_side(read_fact_set(owner, epoch), read_erasure(owner, epoch))
    there = {fact.id: fact for fact in before.active().values()}
    others = [there[each] for each in dict.fromkeys(other_ids) if each in there and each != kept_id]
    if kept_id not in there or not others:
        raise FactNotFound(kept_id if others else ", ".join(other_ids))
    every = [there[kept_id], *others]
    own, *its = yield from _read(owner, [fact.id for fact in every])
    edit = yield from count_edit(owner)
    after, kept = update(
        before, kept_id, now=now, edit=edit, pinned=any(fact.pinned for fact in every),
        confidence=max(fact.confidence for fact in every),
    )  # fmt: skip
    for other, confirmations in zip(others, its, strict=True):
        for said in joined(kept, own, other, confirmations):
            after = confirm(after, said)
        after = retire(after, other.id, "superseded", now=now, replaced_by=kept_id)
    yield from FactWriting(owner, config).write(epoch, before, after)
    # Or an update would learn them anew from what was said before.
    yield [aside_put(owner, other, at=now, edit=edit, epoch=epoch) for other in others]
    if (yield from take_back_erased(owner, epoch, erasure, [fact.id for fact in every])):
        raise FactNotFound(kept_id)
    logger.info("merged %d facts into %s", len(others), kept_id)
    return now


def separate(owner: Owner, epoch: str, history: Iterable[Fact], restored: Sequence[Fact]) -> StoreEffects[None]:
    """Take back what facts got by a merge, once those that they were merged with are there again."""
    last = {fact.id: fact for fact in history}
    pairs = [(gone.replaced_by, gone) for fact in restored if (gone := last.get(fact.id)) and gone.replaced_by]
    for kept_id, gone in pairs:
        own, its = yield from _read(owner, [kept_id, gone.id])
        left = own.without(["", *(each.evidence for each in its.said)], of=gone.id)
        if left != own:
            left = replace(left, parted=tuple(dict.fromkeys((*own.parted, gone.id)))[-_KEPT_PARTED:])
            yield [put(owner.namespace("confirmations"), kept_id, left.to_json(kept_id, epoch))]


def join_again(owner: Owner, epoch: str, after: FactSet, removed: Iterable[Fact]) -> StoreEffects[None]:
    """Give a fact again what it got by a merge, once an undo of its undo has moved those facts into history again.

    Args:
        owner: Whose facts.
        epoch: The user's current epoch.
        after: The facts as that undo left them.
        removed: Those that are no longer used since.
    """
    there = {fact.id: fact for fact in after.rows.values()}
    last = {fact.id: fact for fact in after.archived}
    for gone in (last[fact.id] for fact in removed if fact.id in last):
        kept = there.get(gone.replaced_by)
        if kept is None:
            continue
        own, its = yield from _read(owner, [kept.id, gone.id])
        # What a conversation corrected has no part in what said the fact that took its place.
        if gone.id in own.parted:
            again = replace(own, parted=tuple(each for each in own.parted if each != gone.id))
            for said in joined(kept, own, gone, its):
                again = again.confirmed(said)
            yield [put(owner.namespace("confirmations"), kept.id, again.to_json(kept.id, epoch))]


def _read(owner: Owner, fact_ids: Sequence[str]) -> StoreEffects[list[Confirmations]]:
    items = yield from read_many(owner.namespace("confirmations"), fact_ids)
    return [Confirmations.from_json(item.value) if item else Confirmations() for item in items]
