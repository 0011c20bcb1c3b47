"""The tables of `benchmarks.quality`: means, bootstrap intervals, goals, and how far they hold on other talks."""

import random
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

SEED = 7
RESAMPLES = 1000
# What the parameters of recall were chosen on; the other talks only check them.
TUNED = {"conv-26", "conv-30", "conv-41", "chat-1", "chat-3", "chat-4", "chat-5"}
OURS = "Palimpsest"
WITH = "Palimpsest, with embedder"


@dataclass(slots=True)
class Rows:
    """What was measured, by measure and contestant: one number a question, with the talk that it is about."""

    values: dict[str, dict[str, list[tuple[str, float]]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, measure: str, who: str, talk: str, value: float) -> None:
        self.values.setdefault(measure, {}).setdefault(who, []).append((talk, value))

    def mean(self, measure: str, who: str, talks: Callable[[str], object] = str) -> float:
        return statistics.fmean(value for talk, value in self.values[measure][who] if talks(talk))

    def interval(self, measure: str, who: str) -> tuple[float, float]:
        """Return the bootstrap 95 % interval of the mean over questions."""
        numbers = [value for _, value in self.values[measure][who]]
        chance = random.Random(SEED)
        means = sorted(statistics.fmean(chance.choices(numbers, k=len(numbers))) for _ in range(RESAMPLES))
        return means[round(0.025 * RESAMPLES)], means[round(0.975 * RESAMPLES) - 1]


def share(needed: Iterable[str], found: Iterable[str]) -> float:
    """Return how much of what is needed was found."""
    wanted, there = set(needed), set(found)
    return len(wanted & there) / len(wanted)


GOALS = {
    "facts' evidence in 500 tokens": (0.84, 0.87),
    "facts' evidence in 1000 tokens": (0.90, 0.93),
    "facts' evidence in 2000 tokens": (0.945, 0.965),
    "all evidence, turns, 1000 tokens": (0.82, 0.87),
    "all evidence, turns, 2000 tokens": (0.88, 0.92),
    "the assistant's messages without a fact, turns, 1000 tokens": (0.45, 0.45),
    "unrelated messages that recall nothing, first": (0.85, 0.85),
    "unrelated messages that recall nothing, later": (0.85, 0.85),
    "related messages that find something they need, later": (0.90, 0.90),
    "facts' evidence, prompts of the graph, 500 tokens": (0.84, 0.87),
    "facts' evidence, prompts of the graph, 1000 tokens": (0.90, 0.93),
    "facts' evidence, prompts of the graph, 2000 tokens": (0.945, 0.965),
    "all evidence, prompts of the graph, 500 tokens": (0.76, 0.80),
    "all evidence, prompts of the graph, 1000 tokens": (0.83, 0.89),
    "all evidence, prompts of the graph, 2000 tokens": (0.88, 0.93),
    "facts' evidence, R@10": (0.81, 0.85),
    "FactStore.search, R@10": (0.81, 0.85),
    "turns, R@10": (0.75, 0.75),
    "sessions, R@10": (0.96, 0.96),
    "sessions, any hit@5": (0.95, 0.95),
    "BEAM messages, R@10": (0.60, 0.60),
    "BEAM instructions, R@10": (0.50, 0.50),
    "BEAM messages in a prompt, 2000 tokens": (0.60, 0.60),
    "cached share of a prompt, 4096 tokens": (0.80, 0.80),
    "cached share of a prompt, 4096 tokens, with small talk": (0.80, 0.80),
    "cached share of a prompt, 8192 tokens": (0.90, 0.90),
    "cached share of a prompt, 8192 tokens, with small talk": (0.90, 0.90),
}
"""At least so much, by words alone and with an embedder."""


def report(rows: Rows) -> str:
    """Return the tables as Markdown."""
    lines = ["| measure | who | n | value | 95 % | goal | |", "|---|---|---:|---:|---|---:|---|"]
    for measure, contestants in rows.values.items():
        for who in contestants:
            value, (low, high) = rows.mean(measure, who), rows.interval(measure, who)
            goal, verdict = "", ""
            if who in (OURS, WITH):
                first = measure.removesuffix(", second turn")  # its goal: within .02 of the first turn
                if first != measure or measure in GOALS:
                    aim = GOALS[measure][who == WITH] if first == measure else rows.mean(first, who) - 0.02
                    goal = f"≥ {aim:.3g}"
                    verdict = "reached" if value >= aim else "missed"
            cells = (measure, who, len(contestants[who]), f"{value:.3f}", f"{low:.3f} to {high:.3f}", goal, verdict)
            lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += ["", "| lead over FTS5 | who | tuned on these | held out | difference |", "|---|---|---:|---:|---:|"]
    for measure, contestants in rows.values.items():
        for who in (OURS, WITH):
            talks = {talk for talk, _ in contestants.get(who, ())}
            if talks & TUNED and talks - TUNED and "FTS5" in contestants:
                tuned, held = (
                    rows.mean(measure, who, part) - rows.mean(measure, "FTS5", part)
                    for part in (TUNED.__contains__, lambda name: name not in TUNED)
                )
                lines.append(f"| {measure} | {who} | {tuned:+.3f} | {held:+.3f} | {held - tuned:+.3f} |")
    return "\n".join([*lines, "", *rows.notes])
