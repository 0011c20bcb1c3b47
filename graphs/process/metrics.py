"""What a process counts, for Prometheus' own registry; no user, no thread and no text in a label."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, get_args

from prometheus_client import Counter

from graphs.turn.state import NotWritten, WithoutMemory
from memory.context.summarizer import Cut
from memory.updates.receipts import UpdateReceipt
from memory.updates.update import Drain

FACTS: Final = Counter(
    "palimpsest_facts", "Facts of updates, by what became of them and, if refused, why.", ["outcome", "reason"]
)
UPDATES: Final = Counter("palimpsest_updates", "Updates of memory that ended.", ["outcome"])
TURNS: Final = Counter("palimpsest_turns", "Turns that ended.", ["written"])
WITHOUT_MEMORY: Final = Counter(
    "palimpsest_turns_without_memory", "Turns that went on without memory, by the reason.", ["reason"]
)
NOT_WRITTEN: Final = Counter(
    "palimpsest_turns_not_written",
    "Turns that ended before they were written down; a later turn or a look at checkpoints does that.",
    ["reason"],
)
SUMMARIES: Final = Counter(
    "palimpsest_summaries",
    "Summaries that were due: ready, or missed, so that a turn waited for it or went on without.",
    ["outcome"],
)
MODEL_CALLS: Final = Counter("palimpsest_model_calls", "Model calls by purpose.", ["purpose", "outcome"])


def count_drain(drained: Drain) -> None:
    """Count what a drain came to."""
    UPDATES.labels("failed").inc(drained.failed)
    UPDATES.labels("cancelled").inc(drained.cancelled)
    for receipt in drained.receipts:
        count_update(receipt)


def count_update(receipt: UpdateReceipt) -> None:
    """Count an update."""
    UPDATES.labels("done").inc()
    for outcome in ("created", "confirmed", "superseded"):
        FACTS.labels(outcome, "").inc(len(getattr(receipt, outcome)))
    for refused in receipt.refused:
        FACTS.labels("refused", refused.reason).inc(refused.n)


def count_turn(receipt: Mapping[str, Any]) -> None:
    """Count a turn that has ended, by its receipt."""
    written = "queued" if receipt.get("queued") else "nothing"
    if not_written := receipt.get("not_written"):
        written = "not_written"
        NOT_WRITTEN.labels(_listed(not_written, NotWritten)).inc()
    TURNS.labels(written).inc()
    if without := receipt.get("without_memory"):
        WITHOUT_MEMORY.labels(_listed(without, WithoutMemory)).inc()


def _listed(reason: object, kind: object) -> str:
    """Return a reason as a label: the receipt stands in the state, into which a client may write anything."""
    return str(reason) if reason in get_args(kind) else "other"


def count_summary(cut: Cut | None, *, left_out: int = 0) -> None:
    """Count what a turn's `summarize` did.

    Args:
        cut: What a summary took away; `None` if none did.
        left_out: How many messages the model was not shown, as no summary was there.
    """
    if cut is not None or left_out:
        SUMMARIES.labels("ready" if cut is not None and cut.ready else "missed").inc()


@contextmanager
def counted_call(purpose: str) -> Iterator[None]:
    """Count the model call that is made inside."""
    outcome = "failed"
    try:
        yield
        outcome = "answered"
    finally:
        MODEL_CALLS.labels(purpose, outcome).inc()
