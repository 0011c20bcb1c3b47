"""What so many users a day would need, from what was measured with few. Pure: numbers in, numbers out.

It adds up; it does not know what happens between processes. Where it says how much there is of something, that is
either a rule of the code (one update starts every half second in a process) or an assumption, and named so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one process was measured to do, and what one turn leaves behind.

    Attributes:
        turns_a_second: Turns that one process answers in a second at most.
        calls_a_turn: Model calls, those of updates and summaries included.
        tokens_a_turn: Tokens of these calls.
        updates_a_turn: Updates; several turns share one.
        rows_a_turn: Items that the store keeps of it.
        bytes_a_turn: What the store grows by.
        checkpoint_bytes_a_turn: What checkpoints grow by.
        update_seconds: How long one update takes with a model of the latency that is meant.
    """

    turns_a_second: float
    calls_a_turn: float
    tokens_a_turn: float
    updates_a_turn: float
    rows_a_turn: float
    bytes_a_turn: float
    checkpoint_bytes_a_turn: float
    update_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What limits one process or the whole, apart from what was measured.

    Attributes:
        update_spacing_seconds: Between the starts of two updates in a process (`MemoryConfig`).
        updates_at_once: Updates that ask a model at a time, in a process.
        held_users: Users of 500 facts whose index one process holds in memory (`recall_megabytes`).
        writes_a_second: Assumed: transactions that one Postgres commits in a second.
        writes_a_turn: Transactions of a turn: checkpoints, and what is written down for memory.
        connections_a_process: Assumed: connections to the database that a process keeps.
        connections: Assumed: connections that one Postgres takes.
        peak: Assumed: how much busier the busiest hour is than the day's mean.
    """

    update_spacing_seconds: float = 0.5
    updates_at_once: int = 4
    held_users: int = 500
    writes_a_second: float = 5_000.0
    writes_a_turn: float = 7.0
    connections_a_process: int = 10
    connections: int = 500
    peak: float = 4.0


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that may run out: how much is needed at the busiest time, and how much there is."""

    name: str
    needed: float
    available: float

    @property
    def share(self) -> float:
        return self.needed / self.available


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What so many users a day need.

    Attributes:
        users: How many.
        turns_a_second: At the busiest time.
        processes_for_turns: So that all turns are answered then.
        processes_for_updates: So that updates keep up then.
        model_calls_a_second: At the busiest time.
        tokens_a_day: Of all model calls.
        rows_a_day: Items that the store gets.
        bytes_a_day: What store and checkpoints grow by.
        limits: What may run out, the fullest first.
    """

    users: int
    turns_a_second: float
    processes_for_turns: int
    processes_for_updates: int
    model_calls_a_second: float
    tokens_a_day: float
    rows_a_day: float
    bytes_a_day: float
    limits: tuple[Limit, ...]

    @property
    def processes(self) -> int:
        return max(self.processes_for_turns, self.processes_for_updates)

    @property
    def breaks_first(self) -> Limit:
        return self.limits[0]


def needs(users: int, turns_each: float, measured: Measured, rules: Rules) -> Needs:
    """Return what so many users a day need who each have so many turns."""
    turns_a_day = users * turns_each
    busiest = turns_a_day / _DAY * rules.peak
    updates = busiest * measured.updates_a_turn
    started = 1 / rules.update_spacing_seconds
    done = rules.updates_at_once / measured.update_seconds
    for_turns = max(1, math.ceil(busiest / measured.turns_a_second))
    for_updates = max(1, math.ceil(updates / min(started, done)))
    processes = max(for_turns, for_updates)
    limits = (
        Limit("commits of one Postgres", busiest * rules.writes_a_turn, rules.writes_a_second),
        Limit("connections of one Postgres", processes * rules.connections_a_process, rules.connections),
        # A user who comes back to another process than before is read there from the store.
        Limit("users held in memory, in the busiest hour", users * rules.peak / 24, processes * rules.held_users),
        Limit("starts of updates", updates, processes * started),
        Limit("updates that ask a model at once", updates, processes * done),
    )
    return Needs(
        users=users,
        turns_a_second=busiest,
        processes_for_turns=for_turns,
        processes_for_updates=for_updates,
        model_calls_a_second=busiest * measured.calls_a_turn,
        tokens_a_day=turns_a_day * measured.tokens_a_turn,
        rows_a_day=turns_a_day * measured.rows_a_turn,
        bytes_a_day=turns_a_day * (measured.bytes_a_turn + measured.checkpoint_bytes_a_turn),
        limits=tuple(sorted(limits, key=lambda limit: -limit.share)),
    )


def first_break(name: str, turns_each: float, measured: Measured, rules: Rules, most: int = 2**40) -> int:
    """Return from how many users a day a limit is passed; `most` if it is not before that."""
    if _share(name, most, turns_each, measured, rules) <= 1:
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _share(name, middle, turns_each, measured, rules) > 1 else (middle, high)
    return high


def _share(name: str, users: int, turns_each: float, measured: Measured, rules: Rules) -> float:
    return next(limit.share for limit in needs(users, turns_each, measured, rules).limits if limit.name == name)


def simulation_table(users: Sequence[int], turns_each: float, measured: Measured, rules: Rules) -> str:
    """Return what different numbers of users need as a Markdown table."""
    lines = [
        "| users a day | turns a second, busiest | processes: turns, updates | model calls a second | tokens a day "
        "| rows a day | bytes a day | fullest |",
        "|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for number in users:
        found = needs(number, turns_each, measured, rules)
        cells = (
            f"{number:,} | {found.turns_a_second:,.1f}",
            f"{found.processes_for_turns:,}, {found.processes_for_updates:,}",
            f"{found.model_calls_a_second:,.1f} | {found.tokens_a_day:,.0f} | {found.rows_a_day:,.0f}",
            f"{found.bytes_a_day:,.0f} | {found.breaks_first.name}: {100 * found.breaks_first.share:,.0f} %",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
