"""A user's budget of a day for memory's own model calls: what is used up waits for the next day, and nothing is lost.

What was used is counted in the store, one item for each process, because no store has compare-and-swap: two processes
that added to one item would lose each other's calls.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Self

from langgraph.store.base import Item

from memory.config import MemoryConfig
from memory.control import zone_named
from memory.effects import StoreEffects, delete, put, scan
from memory.namespaces import Owner

SPENT_KEY: Final = "spent."
"""What the keys of the items begin with that say, beside a user's controls, what was used."""


class BudgetUsedUp(Exception):
    """The user's budget of the day is used up; `until` says when the next day begins, in seconds since the epoch."""

    def __init__(self, until: float) -> None:
        super().__init__("the budget of the day is used up")
        self.until = until


@dataclass(frozen=True, slots=True)
class DailyBudget:
    """How much one user's memory may use on a day; 0 is no limit.

    Attributes:
        calls: Model calls, failed ones too. One that began is not broken off, so that more may be made than this.
        zone: Where the days begin at midnight.
    """

    calls: int = 0
    zone: tzinfo = UTC

    @classmethod
    def of(cls, config: MemoryConfig) -> Self:
        """Return the budget that a deployment gives its users."""
        return cls(config.budget_calls, zone_named(config.time_zone) or UTC)

    def day(self, now: float) -> str:
        """Return the day (ISO 8601) that it is at a time, in seconds since the epoch."""
        return datetime.fromtimestamp(now, self.zone).date().isoformat()

    def next_day(self, now: float) -> float:
        """Return when the next day begins, in seconds since the epoch."""
        today = datetime.fromtimestamp(now, self.zone).date()
        # Midnight by the clocks of the zone: a day there may have 23 or 25 hours.
        return datetime.combine(today + timedelta(days=1), datetime.min.time(), self.zone).timestamp()


@dataclass(slots=True)
class _Day:
    """How many calls one user's memory made on a day: in this process, and in all others as far as it has looked."""

    day: str
    own: int = 0
    others: int = 0
    is_looked_up: bool = False


class Purse:
    """What this process knows of its users' budgets. Days that are over are forgotten.

    Args:
        budget: What each user has.
        clock: Returns seconds since the epoch.
        process: A random token of this process.
    """

    def __init__(self, budget: DailyBudget, clock: Callable[[], float], process: str) -> None:
        self.budget, self._clock, self._process = budget, clock, process
        self._lock = threading.Lock()
        self._days: dict[str, _Day] = {}

    def note(self, owner: Owner) -> None:
        """Add a call to what the user has used."""
        if self.budget.calls:
            with self._lock:
                self._today(owner).own += 1

    def used_up_until(self, owner: Owner) -> float | None:
        """Return until when the user's memory asks no model, by what is known here; `None` if it may."""
        if not self.budget.calls:
            return None
        with self._lock:
            day = self._today(owner)
            is_used_up = day.own + day.others >= self.budget.calls
        return self.budget.next_day(self._clock()) if is_used_up else None

    def check(self, owner: Owner) -> None:
        """Raise `BudgetUsedUp` if no other call may begin, by what is known here."""
        if (until := self.used_up_until(owner)) is not None:
            raise BudgetUsedUp(until)

    def is_known(self, owner: Owner) -> bool:
        """Say whether nothing has to be looked up before a call: there is no limit, or it was looked up today."""
        if not self.budget.calls:
            return True
        with self._lock:
            return self._today(owner).is_looked_up

    def look(self, owner: Owner) -> StoreEffects[float | None]:
        """Read what other processes used of the user's budget, then return what `used_up_until` does."""
        if self.budget.calls:
            today = self.budget.day(self._clock())
            items = yield from scan(owner.control)
            others = [item for item in items if item.key != self._key]
            with self._lock:
                day = self._today(owner)
                day.others, day.is_looked_up = spent_in(others, today), True
        return self.used_up_until(owner)

    def save(self, owner: Owner) -> StoreEffects[None]:
        """Write down what this process used, and drop what is told of other days."""
        if not self.budget.calls:
            return
        items = yield from scan(owner.control)
        with self._lock:
            day = self._today(owner)
            own = {"day": day.day, "calls": day.own}
        told = [item for item in items if item.key.startswith(SPENT_KEY) and item.key != self._key]
        over = [item for item in told if item.value.get("day") != day.day]
        yield [put(owner.control, self._key, own), *(delete(owner.control, item.key) for item in over)]

    @property
    def _key(self) -> str:
        return SPENT_KEY + self._process

    def _today(self, owner: Owner) -> _Day:
        today = self.budget.day(self._clock())
        known = self._days.get(owner.segment)
        if known is None or known.day != today:
            if known is not None:  # the first call of a new day: nobody asks for an old one any more
                self._days = {segment: day for segment, day in self._days.items() if day.day == today}
            self._days[owner.segment] = known = _Day(today)
        return known


def read_spent(owner: Owner, day: str) -> StoreEffects[int]:
    """Read how many calls were made of a user's budget on a day (ISO 8601), by all processes."""
    return spent_in((yield from scan(owner.control)), day)


def spent_in(items: list[Item], day: str) -> int:
    """Return how many calls a user's control items tell of on a day; what a hand garbled counts as none."""
    of_day = (item.value for item in items if item.key.startswith(SPENT_KEY) and item.value.get("day") == day)
    return sum(max(0, calls) for value in of_day if isinstance(calls := value.get("calls"), int))
