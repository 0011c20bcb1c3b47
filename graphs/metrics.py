"""What a process counts, as Prometheus metrics: events in, numbers out; no user, no thread and no text in a label."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from graphs.events import TokenParts
from graphs.turn.state import NotWritten, WithoutMemory
from memory.context.summarizer import Cut
from memory.facts.changes import REASONS
from memory.outbox.backlog import Backlog
from memory.outbox.receipts import UpdateReceipt
from memory.usage import CALL_PURPOSES, ModelUsage

OTHER: Final = "other"
PARTS: Final = tuple(name for name in TokenParts.model_fields if name != "budget")
OUTCOMES: Final = ("created", "confirmed", "superseded", "refused")
SUMMARIES: Final = ("ready", "missed")
_TOKEN_BUCKETS: Final = (0, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)


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
        "Model calls by purpose.", {"purpose": CALL_PURPOSES, "outcome": ("answered", "failed")}
    ),
    "palimpsest_model_tokens": Family(
        "Tokens of model calls.",
        {"purpose": CALL_PURPOSES, "direction": ("input", "output"), "counted": ("by_provider", "estimated")},
    ),
    "palimpsest_model_cost": Family(
        "What model calls cost, in the currency of PALIMPSEST_MODEL_PRICES; without a price nothing is counted.",
        {"purpose": CALL_PURPOSES},
    ),
    "palimpsest_budget_refusals": Family(
        "Model calls that were put off as the user's budget of the day is used up.", {"purpose": CALL_PURPOSES}
    ),
}
"""Every counter by its name, to which Prometheus adds `_total`."""

CONTEXT_TOKENS: Final = "palimpsest_context_tokens"
AWAY: Final = "palimpsest_store_away"

Prices = Mapping[str, tuple[float, float]]
"""What a million tokens of input and of output cost, by `provider:model`."""


@dataclass(frozen=True, slots=True)
class Count:
    """So much more of one metric."""

    name: str
    labels: tuple[str, ...]
    amount: float = 1


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


def of_call(usage: ModelUsage, prices: Prices) -> list[Count]:
    """Return what a model call adds."""
    counts = [Count("palimpsest_model_calls", (usage.purpose, "failed" if usage.failed else "answered"))]
    counted = "estimated" if usage.is_estimated else "by_provider"
    tokens = {"input": usage.input_tokens, "output": usage.output_tokens}
    counts += [Count("palimpsest_model_tokens", (usage.purpose, way, counted), n) for way, n in tokens.items() if n]
    if price := prices.get(usage.model):
        cost = (usage.input_tokens * price[0] + usage.output_tokens * price[1]) / 1_000_000
        counts.append(Count("palimpsest_model_cost", (usage.purpose,), cost))
    return counts


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
        self._context = Histogram(
            CONTEXT_TOKENS,
            "Tokens of each part of a turn's prompt.",
            ("part",),
            buckets=_TOKEN_BUCKETS,
            registry=self.registry,
        )
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

    def context(self, tokens: Mapping[str, int]) -> None:
        """Note how many tokens each part of a prompt took."""
        for part in PARTS:
            if part in tokens:
                self._context.labels(part).observe(tokens[part])


def _combinations(name: str, family: Family) -> Iterator[tuple[str, ...]]:
    """Yield the labels that are known beforehand: a single label's values, and facts with a reason where refused."""
    if name == "palimpsest_facts":
        yield from ((outcome, "") for outcome in OUTCOMES if outcome != "refused")
    elif len(family.labels) == 1 and name != "palimpsest_model_cost":
        yield from ((value,) for values in family.labels.values() for value in values)


def backlog_metrics(backlog: Backlog | None, now: float) -> list[Metric]:
    """Return the gauges of what waits; where nobody has looked yet, they have no value."""
    texts = {
        "palimpsest_pending_updates": "Updates that wait, of all users.",
        "palimpsest_dead_letters": "Updates that failed for good and wait for a person.",
        "palimpsest_oldest_pending_seconds": "How long ago the oldest one was written down; 0 if none is pending.",
        "palimpsest_backlog_is_partial": "1 if there are more users with updates than were counted.",
    }
    values: list[float | None] = [None] * len(texts)
    if backlog is not None:
        age = 0.0 if backlog.oldest is None else max(0.0, now - backlog.oldest)
        values = [float(backlog.pending), float(backlog.dead), age, float(backlog.is_partial)]
    return [
        GaugeMetricFamily(name, text, value=value) for (name, text), value in zip(texts.items(), values, strict=True)
    ]


def away_metric(away: Mapping[str, bool]) -> Metric:
    """Return the gauge that says whether a way of access to a store is shut, by the breaker."""
    gauge = GaugeMetricFamily(AWAY, "1 while the store counts as away, so that no turn asks it.", labels=("access",))
    for access, is_away in away.items():
        gauge.add_metric((access,), float(is_away))
    return gauge
