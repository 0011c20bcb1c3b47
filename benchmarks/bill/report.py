"""The tables and the plot of the bill. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.bill.figures import Bill
from benchmarks.bill.parts import DIFFERENCES, EXTRACTION, SUMMARY
from benchmarks.line_plot import Axis, line_plot

OURS = {4096: "Palimpsest, 4,096 tokens", 8192: "Palimpsest, 8,192 tokens"}
FULL = "bare graph, full history"
EVERY_TURN = "Palimpsest's own calls, every turn"
_UNCHANGED = {4096: 0.8, 8192: 0.9}
_OF_EVERY_TURN, _OF_FULL = 0.25, 0.15


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under what a replay was measured: words of an answer, seconds between two turns of a session."""

    answer_words: int
    pace: float

    def __str__(self) -> str:
        return f"answers of {self.answer_words} words, a turn every {self.pace:g} s"


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal: what was measured, and what it should be."""

    name: str
    measured: float
    wanted: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        return self.measured >= self.wanted if self.at_least else self.measured <= self.wanted

    def row(self) -> str:
        wanted = f"{'≥' if self.at_least else '≤'} {self.wanted:g}"
        return f"| {self.name} | {self.measured:.3f} | {wanted} | {'met' if self.holds else 'missed'} |"


def goals(bills: Mapping[str, Bill]) -> list[Goal]:
    """Return the goals of one replay."""
    full, every = bills[FULL], bills[EVERY_TURN].tokens("summary", "extraction")
    found = []
    for tokens, who in OURS.items():
        bill = bills[who]
        last = f"prompt at turn {bill.turns} against the full history, {tokens:,} tokens"
        found += [
            Goal(
                f"summary and extraction against calling both every turn, {tokens:,} tokens",
                bill.tokens("summary", "extraction") / every,
                _OF_EVERY_TURN,
            ),
            Goal(
                f"the same with roll-ups of the journal, {tokens:,} tokens", bill.background() / every, _OF_EVERY_TURN
            ),
            Goal(f"unchanged prefix, {tokens:,} tokens", bill.unchanged(), _UNCHANGED[tokens], at_least=True),
            Goal(last, bill.prompt(bill.turns) / full.prompt(full.turns), _OF_FULL),
        ]
    return found


def spent(bills: Mapping[str, Bill]) -> str:
    """Return what each contestant spent, as a table."""
    full = bills[FULL].cost()
    lines = [
        "| | prompt, mean | prompt, last turn | unchanged prefix | new prompt tokens a turn | summary calls (tokens) "
        "| extraction calls (tokens) | roll-ups (tokens) | facts | price against full history |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for who, bill in bills.items():
        cells = [f"{len(bill.of(each)):,} ({bill.tokens(each):,})" for each in ("summary", "extraction", "roll-up")]
        if who == EVERY_TURN:  # its prompts are not the question
            lines.append(f"| {who} | | | | | {' | '.join(cells)} | {bill.facts} | |")
            continue
        lines.append(
            f"| {who} | {sum(bill.prompts()) / bill.turns:,.0f} | {bill.prompt(bill.turns):,} | {bill.unchanged():.3f} "
            f"| {bill.read_new() / bill.turns:,.0f} | {' | '.join(cells)} | {bill.facts} | {bill.cost() / full:.2f} |"
        )
    return "\n".join(lines)


def composition(bills: Mapping[str, Bill], purpose: str, parts: Sequence[str]) -> str:
    """Return what our calls for a purpose are made of, as a table."""
    lines = [f"| {purpose} | {' | '.join(parts)} |", f"|---|{'---:|' * len(parts)}"]
    for who in (*OURS.values(), EVERY_TURN):
        cells = (f"{bills[who].made_of(purpose, part):,.0f}" for part in parts)
        lines.append(f"| {who} | {' | '.join(cells)} |")
    return "\n".join(lines)


def differences(bills: Mapping[str, Bill]) -> str:
    """Return what of our prompts is read anew for which reason, as a table."""
    lines = [f"| | {' | '.join(DIFFERENCES.values())} |", f"|---|{'---:|' * len(DIFFERENCES)}"]
    for who in OURS.values():
        found = (bills[who].differing(where) for where in DIFFERENCES)
        lines.append(f"| {who} | {' | '.join(f'{share:.3f} ({turns} turns)' for turns, share in found)} |")
    return "\n".join(lines)


def report(name: str, measured: Mapping[Conditions, Mapping[str, Bill]]) -> str:
    """Return the whole report: the goals, what was spent under the first conditions, and the goals under the others."""
    (first, bills), *others = measured.items()
    turns = bills[FULL].turns
    parts = [
        f"{turns} turns of {name}, {first}:",
        goal_table(goals(bills)),
        spent(bills),
        "What one call reads and writes, in tokens on average:",
        composition(bills, "extraction", EXTRACTION),
        composition(bills, "summary", SUMMARY),
        "Where prompts of turns that follow soon differ first from those before, and which share of these prompts is "
        "read anew for it:",
        differences(bills),
    ]
    for conditions, each in others:
        parts += [f"The same with {conditions}:", goal_table(goals(each))]
    return "\n\n".join(parts)


def goal_table(found: Sequence[Goal]) -> str:
    """Return the goals as a table."""
    return "\n".join(["| | measured | goal | |", "|---|---:|---:|---|", *(goal.row() for goal in found)])


def prompts_plot(bills: Mapping[str, Bill]) -> str:
    """Return the prompt tokens of each turn as an SVG."""
    turns = bills[FULL].turns
    return line_plot(
        "Tokens of each turn's prompt",
        Axis("turn", [round(turns * part / 6) for part in range(7)]),
        Axis("tokens of the prompt", (256, 1024, 4096, 16384, 65536), is_log=True),
        {
            who: [(number, tokens) for number, tokens in enumerate(bill.prompts(), 1)]
            for who, bill in bills.items()
            if who != EVERY_TURN
        },
    )
