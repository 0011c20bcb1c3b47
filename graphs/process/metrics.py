"""What a process counts, as Prometheus metrics: events in, numbers out; no user, no thread and no text in a label."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any, Final, get_args

from prometheus_client import Counter, Metric

from graphs.turn.state import NotWritten, WithoutMemory
from memory.context.summarizer import Cut
from memory.facts.changes import REASONS
from memory.updates.receipts import UpdateReceipt
from memory.updates.update import Drain

OTHER: Final = "other"
OUTCOMES: Final = ("created", "confirmed", "superseded")


COUNTERS: Final[Mapping[str, tuple[str, Mapping[str, Sequence[str]]]]] = {
    "palimpsest_facts": (
        "Facts of updates, by what became of them and, if refused, why.",
        {"outcome": (*OUTCOMES, "refused"), "reason": ("", *REASONS)},
    ),
    "palimpsest_updates": ("Updates of memory that ended.", {"outcome": ("done", "failed", "cancelled")}),
    "palimpsest_turns": ("Turns that ended.", {"written": ("queued", "nothing", "not_written")}),
    "palimpsest_turns_without_memory": (
        "Turns that went on without memory, by the reason.",
        {"reason": get_args(WithoutMemory)},
    ),
    "palimpsest_turns_not_written": (
        "Turns that ended before they were written down; a later turn or a look at checkpoints does that.",
        {"reason": get_args(NotWritten)},
    ),
    "palimpsest_summaries": (
        "Summaries that were due: ready, or missed, so that a turn waited for it or went on without.",
        {"outcome": ("ready", "missed")},
    ),
    "palimpsest_model_calls": (
        "Model calls by purpose.",
        {"purpose": ("chat", "summary", "extraction", "rollup"), "outcome": ("answered", "failed")},
    ),
}
"""Every counter by its name, to which Prometheus adds `_total`: what it counts, and all that its labels may say.

What is not listed is counted as `other`.
"""


class Metrics:
    """The numbers of one process; a collector, which a registry of Prometheus reads."""

    def __init__(self) -> None:
        self._counters = {
            name: Counter(name, about, [*labels], registry=None) for name, (about, labels) in COUNTERS.items()
        }

    def collect(self) -> Iterator[Metric]:
        """Yield each counter as it is now."""
        for name, (_, labels) in COUNTERS.items():
            # What can be counted is there from the first look: a rate over a series that begins at 1 misses the first.
            # Not sooner: to make all of them takes milliseconds.
            for said in product(*labels.values()):
                self._counters[name].labels(*said)
            yield from self._counters[name].collect()

    def _count(self, name: str, *labels: str, amount: float = 1) -> None:
        known = COUNTERS[name][1].values()
        said = (label if label in listed else OTHER for label, listed in zip(labels, known, strict=True))
        self._counters[name].labels(*said).inc(amount)

    def drained(self, drained: Drain) -> None:
        """Count what a drain came to."""
        self._count("palimpsest_updates", "failed", amount=drained.failed)
        self._count("palimpsest_updates", "cancelled", amount=drained.cancelled)
        for receipt in drained.receipts:
            self.update(receipt)

    def update(self, receipt: UpdateReceipt) -> None:
        """Count an update."""
        self._count("palimpsest_updates", "done")
        for outcome in OUTCOMES:
            self._count("palimpsest_facts", outcome, "", amount=len(getattr(receipt, outcome)))
        for refused in receipt.refused:
            self._count("palimpsest_facts", "refused", refused.reason, amount=refused.n)

    def turn(self, receipt: Mapping[str, Any]) -> None:
        """Count a turn that has ended, by its receipt."""
        written = "queued" if receipt.get("queued") else "nothing"
        if not_written := receipt.get("not_written"):
            written = "not_written"
            self._count("palimpsest_turns_not_written", str(not_written))
        self._count("palimpsest_turns", written)
        if without := receipt.get("without_memory"):
            self._count("palimpsest_turns_without_memory", str(without))

    def summary(self, cut: Cut | None, *, left_out: int = 0) -> None:
        """Count what a turn's `summarize` did.

        Args:
            cut: What a summary took away; `None` if none did.
            left_out: How many messages the model was not shown, as no summary was there.
        """
        if cut is not None or left_out:
            self._count("palimpsest_summaries", "ready" if cut is not None and cut.ready else "missed")

    @contextmanager
    def call(self, purpose: str) -> Iterator[None]:
        """Count the model call that is made inside."""
        outcome = "failed"
        try:
            yield
            outcome = "answered"
        finally:
            self._count("palimpsest_model_calls", purpose, outcome)
