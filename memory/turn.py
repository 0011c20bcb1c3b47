"""What a turn reads from memory before the model is asked: all of it at one moment, in one batch.

How it is written down before the turn ends is `memory.outbox.outbox.record`.
"""

from dataclasses import dataclass
from typing import NamedTuple

from memory.control import EDIT_KEY, LEARNING_KEY, edit_in, learning_in
from memory.effects import StoreEffects, read_many, scan, side_by_side
from memory.facts.snapshot import MemorySnapshot, read_snapshot
from memory.namespaces import Owner
from memory.outbox.receipts import UpdateReceipt, receipts_of
from memory.threads import read_thread_epoch


class TurnEpochs(NamedTuple):
    """Under which epochs and after which edit by hand a turn began; empty where that could not be read."""

    user: str = ""
    thread: str = ""
    edit: str = ""


@dataclass(frozen=True, slots=True)
class Opening:
    """What a turn found when it began.

    Attributes:
        known: Facts and profile.
        epochs: What tells, when the turn is written down, whether an erase or an edit came in between.
        is_learning: Whether the user's memory learns: the user may have paused it.
        updates: The receipts of updates since the turn before, oldest first.
    """

    known: MemorySnapshot
    epochs: TurnEpochs
    is_learning: bool
    updates: tuple[UpdateReceipt, ...]


def open_turn(owner: Owner, thread_id: str, since: str) -> StoreEffects[Opening]:
    """Read what a turn begins with.

    Args:
        owner: Whose memory it is.
        thread_id: The thread.
        since: When (ISO 8601) the turn before read its memory: of later updates the receipts are told.
    """
    known, thread_epoch, (learning, edit), receipts = yield from side_by_side(
        read_snapshot(owner),
        read_thread_epoch(thread_id),
        read_many(owner.control, [LEARNING_KEY, EDIT_KEY]),
        scan(owner.namespace("receipts")),
    )
    epochs = TurnEpochs(known.epoch, thread_epoch, edit_in(edit))
    return Opening(known, epochs, learning_in(learning), tuple(receipts_of(receipts, known.epoch, since)))
