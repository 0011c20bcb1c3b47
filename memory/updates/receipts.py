"""What updates leave behind beside facts: receipts, which tell in ids and counts what each did."""

from dataclasses import dataclass
from datetime import UTC
from itertools import starmap
from typing import Any, Self

from memory.control import read_rows, write_rows
from memory.facts.changes import Outcome, reasons
from memory.facts.fact import moment
from memory.forms import of_items, plain
from memory.namespaces import Owner

# For looking back at what updates did lately; facts have a history of their own.
MAX_RECEIPTS = 100


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """How many facts were not stored for one reason."""

    reason: str
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReceipt:
    """What one update did, in ids and counts; never in words, because receipts are sent to clients and kept.

    Attributes:
        time: When it ended, ISO 8601.
        thread_id: The thread whose messages it read.
        created: Ids of new facts.
        confirmed: Ids of facts that were said again.
        superseded: Ids of facts that no longer hold.
        refused: Why facts were not stored.
        messages: Ids of the messages that were new.
        waiting: Ids of facts that wait for the user's yes.
    """

    time: str
    thread_id: str = ""
    created: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    refused: tuple[ReasonCount, ...] = ()
    messages: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()

    @classmethod
    def of(cls, outcome: Outcome, **fields: Any) -> Self:
        """Return the receipt of an outcome, with the fields that it does not tell."""
        refused = tuple(starmap(ReasonCount, reasons(outcome.refused).items()))
        return cls(
            created=outcome.created,
            confirmed=outcome.confirmed,
            superseded=outcome.superseded,
            refused=refused,
            waiting=outcome.waiting,
            **fields,
        )


async def write_receipt(owner: Owner, key: str, receipt: UpdateReceipt) -> None:
    """Write what an update did, as a part of what a caller writes; the oldest receipts make room."""
    await write_rows(owner, "receipts", {key: plain(receipt)})
    items = await read_rows(owner, "receipts")
    oldest = sorted(items, key=lambda item: (str(item.value.get("time", "")), item.key))[:-MAX_RECEIPTS]
    await write_rows(owner, "receipts", {item.key: None for item in oldest})


async def read_receipts(owner: Owner, since: str = "") -> list[UpdateReceipt]:
    """Read the receipts of updates that ended after `since` (ISO 8601), oldest first."""
    found, at = of_items(UpdateReceipt, await read_rows(owner, "receipts")).values(), moment(since)
    after = at.astimezone(UTC).isoformat() if at else ""  # as receipts have it
    return sorted((receipt for receipt in found if receipt.time > after), key=lambda receipt: receipt.time)
