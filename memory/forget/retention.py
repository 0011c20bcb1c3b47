"""How long memory keeps what is old: facts that are over, their history, and the journal.

Retention is no deletion: nothing is recorded as deleted, so that what is said again is learned again. Deletion records
are kept: without them, what a person deleted could come back.
"""

import logging
import math
from typing import Final

from memory.config import MemoryConfig
from memory.door import transaction
from memory.facts import rules
from memory.facts.fact import DAY_SECONDS, moment
from memory.facts.rows import read_fact_set, save
from memory.journal.journal import prune
from memory.message import day_of, iso_time
from memory.namespaces import Kind, Owner

logger = logging.getLogger(__name__)

KINDS: Final[tuple[Kind, ...]] = ("facts", "history", "journal")


@transaction
async def clean(owner: Owner, config: MemoryConfig, now: float) -> dict[str, int]:
    """Move an owner's facts that are over into history, and delete what waited, or is kept, no longer.

    Args:
        owner: Whose memory.
        config: `journal_days` and `journal_bytes`; `approval_days` and `history_days`, of which 0 keeps all.
        now: Seconds since 1970.

    Returns:
        How much went: facts that are `over`, into history; what `lapsed`, `revisions` and `lines`, for good.
    """
    facts = await read_fact_set(owner, now=iso_time(now), config=config)
    since = now - config.history_days * DAY_SECONDS if config.history_days else -math.inf
    # As times: what a program or an import wrote may have another offset than UTC.
    kept = [fact for fact in facts.past if not (at := moment(fact.updated_at)) or at.timestamp() >= since]
    old, facts.past = len(facts.past) - len(kept), kept
    over, lapsed = rules.sweep(facts, now)
    await save(facts)
    today = day_of(iso_time(now), facts.control.zone)
    lines = await prune(owner, today, config.journal_days, config.journal_bytes)
    done = {"over": over, "lapsed": lapsed, "revisions": old, "lines": lines}
    if any(done.values()):
        logger.info("cleaned up %s: %s", owner.due_key, done)
    return done
