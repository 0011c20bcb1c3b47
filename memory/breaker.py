"""When a store is not asked any more: a value that says it, and what each answer of a probe makes of it. Pure.

One user's bad value, or one slow answer, says nothing about a store: a probe decides, a small access of no user. While
the breaker is open nobody else asks, so that a store that is away costs a turn nothing.
"""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["answered", "silent", "failed"]

PROMPT_SECONDS = 0.5
"""A probe that has not answered by then says that the store is away; it goes on, as its answer closes the breaker."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
# Where an answer was lost, only a new probe can find out that the store is back. A probe that is given up may leave a
# thread behind that hangs for good, so they are few.
_FIRST_PATIENCE, _LONGEST_PATIENCE = 10.0, 600.0


@dataclass(frozen=True, slots=True)
class Breaker:
    """What one process knows of one store.

    Attributes:
        is_open: Whether the store counts as away, so that no turn asks it.
        failures: How many probes in a row failed, or were given up.
    """

    is_open: bool = False
    failures: int = 0

    def after(self, outcome: Outcome) -> "Breaker":
        """Return what is known once a probe has `answered`, is `silent` so far, or has `failed`."""
        if outcome == "answered":
            return Breaker()
        return Breaker(True, self.failures + (outcome == "failed"))

    @property
    def pause(self) -> float:
        """Seconds until the next probe: twice as long after each that failed, up to a minute."""
        return _grown(_FIRST_PAUSE, self.failures - 1, _LONGEST_PAUSE)

    @property
    def patience(self) -> float:
        """Seconds until a probe that does not answer is given up."""
        return _grown(_FIRST_PATIENCE, self.failures, _LONGEST_PATIENCE)


def _grown(first: float, times: int, longest: float) -> float:
    return min(first * 2.0 ** min(max(times, 0), 30), longest)
