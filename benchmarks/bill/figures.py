"""The figures of one contestant, from its calls. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.bill.ledger import Call
from benchmarks.bill.parts import Difference

_BACKGROUND = frozenset({"summary", "extraction", "roll-up"})
PRICES = (1.0, 0.25, 4.0)
"""Of a token that is read new, read from the cache, written, as gpt-4.1-mini's are to each other."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What one contestant spent.

    Attributes:
        name: Who.
        turns: How many.
        calls: All its calls.
        facts: How many facts it knew in the end.
    """

    name: str
    turns: int
    calls: Sequence[Call]
    facts: int

    def of(self, *purposes: str) -> list[Call]:
        """Return the calls for these purposes."""
        return [call for call in self.calls if call.purpose in purposes]

    def tokens(self, *purposes: str) -> int:
        """Return what these calls read and wrote."""
        return sum(call.read + call.written for call in self.of(*purposes))

    def prompt(self, turn: int) -> int:
        """Return the tokens of a turn's prompt, the first turn being 1."""
        return next(call.read for call in self.of("chat") if call.turn == turn - 1)

    def prompts(self) -> list[int]:
        """Return the tokens of each turn's prompt."""
        return [call.read for call in self.of("chat")]

    def unchanged(self) -> float:
        """Return which share of a prompt is the beginning of the one before: the mean of turns that follow soon."""
        return statistics.fmean(call.unchanged / call.read for call in self.of("chat") if call.is_warm)

    def made_of(self, purpose: str, part: str) -> float:
        """Return the tokens of one part of the calls for a purpose, on average."""
        return statistics.fmean(call.made_of.get(part, 0) for call in self.of(purpose))

    def differing(self, where: Difference) -> tuple[int, float]:
        """Return how many of the turns that follow soon have a prompt that differs first there, and what it takes.

        That is the part of the prompts that is no beginning of those before: together with the other places, and with
        what is unchanged, it makes one.
        """
        warm = [call for call in self.of("chat") if call.is_warm]
        found = [call for call in warm if call.differs == where]
        return len(found), sum(1 - call.unchanged / call.read for call in found) / len(warm)

    def cached(self) -> int:
        """Return the prompt tokens that a provider has in its cache: what began alike a short time ago."""
        return sum(call.unchanged for call in self.of("chat") if call.is_warm)

    def read_new(self) -> int:
        """Return the prompt tokens of chat calls that no cache has."""
        return sum(self.prompts()) - self.cached()

    def background(self) -> int:
        """Return what summaries, extraction and roll-ups read and wrote."""
        return self.tokens(*_BACKGROUND)

    def cost(self) -> float:
        """Return the price of all turns, in tokens that are read new."""
        new, cached, written = PRICES
        behind = self.of(*_BACKGROUND)
        return (
            new * (self.read_new() + sum(call.read for call in behind))
            + cached * self.cached()
            + written * sum(call.written for call in self.calls)
        )
