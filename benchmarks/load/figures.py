"""The figures of load runs. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.line_plot import Axis, line_plot


@dataclass(frozen=True, slots=True)
class Sample:
    """One turn: when it began, how many seconds it took, and the name of its error, if any."""

    began: float
    seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRun:
    """What one run came to.

    Attributes:
        servers: How many server processes.
        memory: Whether memory was used and learned.
        users: How many talked.
        samples: Every turn.
        pending: How many updates waited, by seconds since the first turn.
        drained: Seconds from the first turn until none waited; `None` if some still did at the end.
        updates: How many updates ended.
        calls: Calls of the model, by purpose.
        tokens: Tokens that it read and wrote, by purpose.
        store_bytes: What the store grew by.
        checkpoint_bytes: What the checkpoints grew by; with one database for both, they are part of `store_bytes`.
        rows: How many items the store got.
    """

    servers: int
    memory: bool
    users: int
    samples: Sequence[Sample]
    pending: Sequence[tuple[float, int]] = ()
    drained: float | None = None
    updates: int = 0
    calls: Mapping[str, int] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)
    store_bytes: int = 0
    checkpoint_bytes: int = 0
    rows: int = 0

    @property
    def turns(self) -> int:
        """How many turns were answered."""
        return sum(not sample.error for sample in self.samples)

    @property
    def seconds(self) -> float:
        """From the beginning of the first turn to the end of the last."""
        return max(each.began + each.seconds for each in self.samples) - min(each.began for each in self.samples)

    @property
    def turns_a_second(self) -> float:
        return self.turns / self.seconds

    @property
    def updates_a_second(self) -> float:
        """Updates by the time in which there were any to do."""
        return self.updates / (self.drained or self.seconds)

    def percentile(self, share: float) -> float:
        """Return so many seconds that this share of the answered turns took no longer (nearest rank)."""
        taken = sorted(sample.seconds for sample in self.samples if not sample.error)
        return taken[max(0, math.ceil(share * len(taken)) - 1)] if taken else math.nan


def load_table(runs: Sequence[LoadRun]) -> str:
    """Return the runs as a Markdown table."""
    lines = [
        "| servers | memory | users | turns (failed) | turns a second | p50 | p95 | p99 | updates a second "
        "| pending at most | model calls a turn | tokens a turn | store, bytes a user | checkpoints, bytes a user |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for run in runs:
        p50, p95, p99 = (f"{run.percentile(share):.2f} s" for share in (0.5, 0.95, 0.99))
        turns = max(1, run.turns)
        cells = (
            f"{run.servers} | {'yes' if run.memory else 'no'} | {run.users}",
            f"{run.turns:,} ({len(run.samples) - run.turns}) | {run.turns_a_second:.2f} | {p50} | {p95} | {p99}",
            f"{run.updates_a_second:.2f} | {max((depth for _, depth in run.pending), default=0)}",
            f"{sum(run.calls.values()) / turns:.2f} | {sum(run.tokens.values()) / turns:,.0f}",
            f"{run.store_bytes / run.users:,.0f} | {run.checkpoint_bytes / run.users:,.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def pending_plot(runs: Sequence[LoadRun]) -> str:
    """Return how many updates waited over time as an SVG."""
    shown = [run for run in runs if run.memory and run.pending]
    longest = max((at for run in shown for at, _ in run.pending), default=1.0)
    deepest = max((depth for run in shown for _, depth in run.pending), default=1)
    return line_plot(
        "Updates that wait, over time",
        Axis("seconds since the first turn", [round(longest * part / 6) for part in range(7)]),
        Axis("updates that wait", [deepest * part / 4 for part in range(5)] if deepest else [0, 1]),
        {f"Palimpsest, {run.servers} server{'s' if run.servers > 1 else ''}": list(run.pending) for run in shown},
    )
