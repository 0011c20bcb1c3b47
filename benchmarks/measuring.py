"""How the benchmarks measure: CPU time of this process, several rounds taken in turn, medians, ratios."""

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory.context.tokens import Tokenizer

Prepared = Callable[[], Callable[[], Any]]
"""Prepares one round outside the measured time and returns what is measured."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what was measured, ours and theirs with units, their ratio, and what it should be."""

    measure: str
    ours: str
    peer: str
    ratio: float | None
    goal: float | None

    def holds(self, times: float) -> bool:
        """Say whether the ratio is at most so many times its goal."""
        return self.ratio is None or self.goal is None or self.ratio <= times * self.goal


def options(description: str | None) -> argparse.ArgumentParser:
    """Return what reads the options of a benchmark whose exit code says whether its goals hold."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=float, default=1.0, help="a ratio may be so many times its goal (default: 1)")
    return parser


def verdict(rows: Sequence[Row], times: float) -> int:
    """Print the rows, and return the exit code: 1 when a ratio is more than so many times its goal."""
    print(table(rows))
    for row in rows:
        if not row.holds(times):
            print(f"{row.measure}: {row.ratio:.3f} is more than {times:g} x {row.goal:g}", file=sys.stderr)
    return 0 if all(row.holds(times) for row in rows) else 1


def cpu_seconds(contestants: Mapping[str, Prepared], rounds: int) -> dict[str, float]:
    """Return each contestant's median CPU seconds; rounds alternate, so that a slow moment hits all."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name, prepare in contestants.items():
            work = prepare()
            gc.collect()
            start = time.process_time()
            work()
            taken[name].append(time.process_time() - start)
    return {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}  # the first round warms up


def why_not_counted(tokenizer: Tokenizer) -> str:
    """Load a tokenizer; return why tokens cannot be counted here and what helps, or nothing where they can.

    An estimate counts other tokens than those that a published table names.
    """
    tokenizer.warm_up()
    if tokenizer.exact:
        return ""
    return (
        "Refused: no tokenizer can be loaded, and estimated tokens would make other figures. Install one with "
        "`pip install 'palimpsest-memory[tokens]'`, which needs no network when it counts; the `make` target does so."
    )


def progress(what: str) -> None:
    """Say what is measured now, with the time, beside the table and not in it."""
    print(f"{time.strftime('%H:%M:%S')} {what} …", file=sys.stderr, flush=True)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| measure | ours | compared with | ratio | goal |", "|---|---:|---:|---:|---:|"]
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
        goal = "" if row.goal is None else f"≤ {row.goal:g}"
        lines.append(f"| {row.measure} | {row.ours} | {row.peer} | {ratio} | {goal} |")
    return "\n".join(lines)


def keep(file: Path, text: str) -> None:
    """Write what was measured into a file, whose folder is made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n", "utf-8")
