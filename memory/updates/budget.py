"""A user's budget of a day for memory's own model calls: what is used up waits for the next day, and nothing is lost.

What was used is counted in the store, in one row of the user's for all processes.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Self

from memory.config import MemoryConfig, zone_named
from memory.door import StoreEffects, put, read, transaction
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
        calls: Model calls, failed ones too.
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


def spend(owner: Owner, budget: DailyBudget, now: float, *, has_begun: bool = False) -> StoreEffects[float | None]:
    """Count a model call that is about to be made, unless the user's budget of the day is used up.

    Args:
        owner: Whose memory it is for.
        budget: What each user has.
        now: Seconds since the epoch.
        has_begun: Whether it belongs to work that has begun, which is finished: its parts alone are of no use.

    Returns:
        Until when no call may be made, in seconds since the epoch; `None` if this one may.
    """
    return (yield from _spend(owner, budget, now, has_begun)) if budget.calls else None


@transaction
def _spend(owner: Owner, budget: DailyBudget, now: float, has_begun: bool) -> StoreEffects[float | None]:
    day = budget.day(now)
    spent = yield from read_spent(owner, day)
    if spent >= budget.calls and not has_begun:
        return budget.next_day(now)
    yield [put(owner.control, _KEY, {"day": day, "calls": spent + 1})]
    return None


def read_spent(owner: Owner, day: str) -> StoreEffects[int]:
    """Read how many calls were made of a user's budget on a day (ISO 8601); what a hand garbled counts as none."""
    item = yield from read(owner.control, _KEY)
    calls = item.value.get("calls") if item and item.value.get("day") == day else 0
    return max(0, calls) if isinstance(calls, int) else 0
