"""What a process counts, as Prometheus metrics: events in, numbers out; no user, no thread and no text in a label."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, get_args

from prometheus_client import CollectorRegistry, Counter

from graphs.turn.state import NotWritten, WithoutMemory
from memory.context.summarizer import Cut
from memory.facts.changes import REASONS
from memory.outbox.receipts import UpdateReceipt
from memory.worker.update import Drained

OTHER: Final = "other"
OUTCOMES: Final = ("created", "confirmed", "superseded", "refused")
PURPOSES: Final = ("chat", "summary", "extraction", "rollup")
SUMMARIES: Final = ("ready", "missed")


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with all that its labels may say; what is not listed is counted as `other`.

    Attributes:
        help: What it counts, in a sentence.
        labels: The values that each label may have, by its name.
    """

    help: str
    labels: Mapping[str, Sequence[str]]


_FACT_LABELS: Mapping[str, Sequence[str]] = {"outcome": OUTCOMES, "reason": ("", *REASONS)}
COUNTERS: Final[Mapping[str, Family]] = {
    "palimpsest_facts": Family("Facts of updates, by what became of them and, if refused, why.", _FACT_LABELS),
    "palimpsest_updates": Family("Updates of memory that ended.", {"outcome": ("done", "failed", "cancelled")}),
    "palimpsest_turns": Family("Turns that ended.", {"written": ("queued", "nothing", "not_written")}),
    "palimpsest_turns_without_memory": Family(
        "Turns that went on without memory, by the reason.", {"reason": get_args(WithoutMemory)}
    ),
    "palimpsest_turns_not_written": Family(
        "Turns that ended before they were written down; a later turn or a look at checkpoints does that.",
        {"reason": get_args(NotWritten)},
    ),
    "palimpsest_summaries": Family(
        "Summaries that were due: ready, or missed, so that a turn waited for it or went on without.",
        {"outcome": SUMMARIES},
    ),
    "palimpsest_model_calls": Family(
        "Model calls by purpose.", {"purpose": PURPOSES, "outcome": ("answered", "failed")}
    ),
}
"""Every counter by its name, to which Prometheus adds `_total`."""


@dataclass(frozen=True, slots=True)
class Count:
    """So much more of one metric."""

    name: str
    labels: tuple[str, ...]
    amount: float = 1


def of_drained(drained: Drained) -> list[Count]:
    """Return what a drain adds."""
    ended = {"failed": drained.failed, "cancelled": drained.cancelled}
    counts = [Count("palimpsest_updates", (outcome,), number) for outcome, number in ended.items()]
    return counts + [count for receipt in drained.receipts for count in of_update(receipt)]


def of_update(receipt: UpdateReceipt) -> list[Count]:
    """Return what an update adds."""
    did = {"created": receipt.created, "confirmed": receipt.confirmed, "superseded": receipt.superseded}
    facts = [Count("palimpsest_facts", (outcome, ""), len(ids)) for outcome, ids in did.items() if ids]
    refused = [Count("palimpsest_facts", ("refused", reason), n) for reason, n in receipt.refused.items()]
    return [Count("palimpsest_updates", ("done",)), *facts, *refused]


def of_turn(receipt: Mapping[str, Any]) -> list[Count]:
    """Return what the receipt of a finished turn adds."""
    not_written, without = receipt.get("not_written"), receipt.get("without_memory")
    written = "not_written" if not_written else "queued" if receipt.get("queued") else "nothing"
    counts = [Count("palimpsest_turns", (written,))]
    counts += [Count("palimpsest_turns_without_memory", (str(without),))] if without else []
    counts += [Count("palimpsest_turns_not_written", (str(not_written),))] if not_written else []
    return counts


def of_summary(cut: Cut | None, *, left_out: int = 0) -> list[Count]:
    """Return what a turn's look at its conversation adds.

    Args:
        cut: What a summary took away; `None` if none did.
        left_out: How many messages the model was not shown, as no summary was there.
    """
    if cut is None and not left_out:
        return []
    return [Count("palimpsest_summaries", ("ready" if cut is not None and cut.ready else "missed",))]


class Metrics:
    """The numbers of one process.

    Attributes:
        registry: What a scrape reads; it may be registered in another one.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self._counters = {
            name: Counter(name, family.help, tuple(family.labels), registry=self.registry)
            for name, family in COUNTERS.items()
        }
        for name, family in COUNTERS.items():
            # What can be counted is there from the start: a rate over a series that begins at 1 misses the first.
            for labels in _combinations(name, family):
                self._counters[name].labels(*labels)

    def add(self, counts: Iterable[Count]) -> None:
        """Add up."""
        for count in counts:
            allowed = COUNTERS[count.name].labels.values()
            labels = [label if label in known else OTHER for label, known in zip(count.labels, allowed, strict=True)]
            self._counters[count.name].labels(*labels).inc(count.amount)

    @contextmanager
    def call(self, purpose: str) -> Iterator[None]:
        """Count the model call that is made inside."""
        outcome = "failed"
        try:
            yield
            outcome = "answered"
        finally:
            self.add([Count("palimpsest_model_calls", (purpose, outcome))])


def _combinations(name: str, family: Family) -> Iterator[tuple[str, ...]]:
    """Yield the labels that are known beforehand: a single label's values, and facts with a reason where refused."""
    if name == "palimpsest_facts":
        yield from ((outcome, "") for outcome in OUTCOMES if outcome != "refused")
    elif len(family.labels) == 1:
        yield from ((value,) for values in family.labels.values() for value in values)
