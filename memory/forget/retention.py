"""How long memory keeps what nobody shows any more: facts that are over, their history, and receipts.

Retention is no deletion: nothing is recorded as deleted, so that what is said again is learned again. Deletion records
are kept: without them, what a person deleted could come back.
"""

import logging
from dataclasses import dataclass
from typing import Final

from memory.config import MemoryConfig
from memory.door import StoreEffects, delete, scan, transaction
from memory.facts import rules
from memory.facts.fact import DAY_SECONDS, moment, timestamp
from memory.facts.records import is_revision
from memory.facts.rows import read_fact_set, save
from memory.namespaces import Kind, Owner

logger = logging.getLogger(__name__)

KINDS: Final[tuple[Kind, ...]] = ("facts", "history", "receipts")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What went: facts that are over, into history; what waited in vain, revisions and receipts, for good."""

    over: int = 0
    lapsed: int = 0
    revisions: int = 0
    receipts: int = 0


@transaction
def clean(owner: Owner, config: MemoryConfig, now: float) -> StoreEffects[Cleaned]:
    """Move an owner's facts that are over into history, and delete what waited, or is kept, no longer.

    Args:
        owner: Whose memory.
        config: `approval_days`, `history_days` and `receipt_days`; 0 keeps them.
        now: Seconds since 1970.
    """
    facts = yield from read_fact_set(owner, whole=True, now=timestamp(now), config=config)
    over, lapsed = rules.sweep(facts, now)
    yield from save(facts)
    revisions = yield from _drop(owner, "history", "updatedAt", config.history_days, now)
    receipts = yield from _drop(owner, "receipts", "time", config.receipt_days, now)
    done = Cleaned(over, lapsed, revisions, receipts)
    if done != Cleaned():
        logger.info(
            "cleaned up %s: facts that are over %d, that waited in vain %d, revisions %d, receipts %d",
            *(owner.due_key, over, lapsed, revisions, receipts),
        )
    return done


def _drop(owner: Owner, kind: Kind, field: str, days: int, now: float) -> StoreEffects[int]:
    old = []
    for item in (yield from scan(owner.namespace(kind))) if days else ():
        # Its own time tells, or the store's where a hand garbled that.
        at = moment(str(item.value.get(field, ""))) or item.updated_at
        if at.timestamp() < now - days * DAY_SECONDS and (kind != "history" or is_revision(item)):
            old.append(delete(item.namespace, item.key))
    if old:
        yield old
    return len(old)
