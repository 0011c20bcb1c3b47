"""A user's budget of a day for memory's own model calls: what is used up waits for the next day, and nothing is lost.

What was used is counted in the store, in one row of the user's for all processes.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Self

from memory.config import MemoryConfig
from memory.control import zone_named
from memory.door import transaction
from memory.effects import StoreEffects, put, read
from memory.namespaces import Owner

_KEY: Final = "spent"


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
    """How many calls one user's memory made on a day: as the store told last, `None` if never, and since then."""

    day: str
    told: int | None = None
    unsaved: int = 0


class Purse:
    """What this process knows of its users' budgets. Days that are over are forgotten.

    Args:
        budget: What each user has.
        clock: Returns seconds since the epoch.
    """

    def __init__(self, budget: DailyBudget, clock: Callable[[], float]) -> None:
        self.budget, self._clock = budget, clock
        self._lock = threading.Lock()
        self._days: dict[str, _Day] = {}

    def note(self, owner: Owner) -> None:
        """Add a call to what the user has used."""
        if self.budget.calls:
            with self._lock:
                self._today(owner).unsaved += 1

    def used_up_until(self, owner: Owner) -> float | None:
        """Return until when the user's memory asks no model, by what is known here; `None` if it may."""
        if not self.budget.calls:
            return None
        with self._lock:
            day = self._today(owner)
            is_used_up = self.budget.calls <= (day.told or 0) + day.unsaved
        return self.budget.next_day(self._clock()) if is_used_up else None

    def check(self, owner: Owner) -> None:
        """Raise `BudgetUsedUp` if no other call may begin, by what is known here."""
        if (until := self.used_up_until(owner)) is not None:
            raise BudgetUsedUp(until)

    def is_known(self, owner: Owner) -> bool:
        """Say whether nothing has to be looked up before a call: there is no limit, or it was looked up today."""
        with self._lock:
            return not self.budget.calls or self._today(owner).told is not None

    def look(self, owner: Owner) -> StoreEffects[float | None]:
        """Read what was used of the user's budget, then return what `used_up_until` does."""
        if self.budget.calls:
            told = yield from read_spent(owner, self.budget.day(self._clock()))
            with self._lock:
                self._today(owner).told = told
        return self.used_up_until(owner)

    def save(self, owner: Owner) -> StoreEffects[None]:
        """Write down what was used since the last time."""
        if not self.budget.calls:
            return
        with self._lock:
            day = self._today(owner)
            unsaved = day.unsaved
        if unsaved:
            told = yield from _add(owner, day.day, unsaved)
            with self._lock:
                day.told, day.unsaved = told, day.unsaved - unsaved

    def _today(self, owner: Owner) -> _Day:
        today = self.budget.day(self._clock())
        known = self._days.get(owner.segment)
        if known is None or known.day != today:
            if known is not None:  # the first call of a new day: nobody asks for an old one any more
                self._days = {segment: day for segment, day in self._days.items() if day.day == today}
            self._days[owner.segment] = known = _Day(today)
        return known


@transaction
def _add(owner: Owner, day: str, calls: int) -> StoreEffects[int]:
    told = calls + (yield from read_spent(owner, day))
    yield [put(owner.control, _KEY, {"day": day, "calls": told})]
    return told


def read_spent(owner: Owner, day: str) -> StoreEffects[int]:
    """Read how many calls were made of a user's budget on a day (ISO 8601); what a hand garbled counts as none."""
    item = yield from read(owner.control, _KEY)
    calls = item.value.get("calls") if item and item.value.get("day") == day else 0
    return max(0, calls) if isinstance(calls, int) else 0
