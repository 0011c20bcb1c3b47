"""A user's budget of a day for memory's own model calls: what is used up waits for the next day, and nothing is lost.

What was used is counted in the store, one item for each process, because no store has compare-and-swap: two processes
that added to one item would lose each other's calls.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Self

from langgraph.store.base import Item

from memory.config import MemoryConfig
from memory.control import zone_named
from memory.effects import StoreEffects, delete, put, scan
from memory.namespaces import Owner
from memory.usage import ModelUsage

SPENT_KEY: Final = "spent."
"""What the keys of the items begin with that say, beside a user's controls, what was used."""


class BudgetUsedUp(Exception):
    """The user's budget of the day is used up; `until` says when the next day begins, in seconds since the epoch."""

    def __init__(self, until: float) -> None:
        super().__init__("the budget of the day is used up")
        self.until = until


@dataclass(frozen=True, slots=True)
class Spent:
    """What was used on a day.

    Attributes:
        calls: Model calls, failed ones too.
        tokens: What they read and wrote.
    """

    calls: int = 0
    tokens: int = 0

    def plus(self, other: "Spent") -> "Spent":
        """Return both together."""
        return Spent(self.calls + other.calls, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class DailyBudget:
    """How much one user's memory may use on a day; 0 is no limit.

    Attributes:
        calls: Model calls.
        tokens: Tokens that they read and write.
        zone: Where the days begin at midnight.
    """

    calls: int = 0
    tokens: int = 0
    zone: tzinfo = UTC

    @classmethod
    def of(cls, config: MemoryConfig) -> Self:
        """Return the budget that a deployment gives its users."""
        return cls(config.budget_calls, config.budget_tokens, zone_named(config.time_zone) or UTC)

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return bool(self.calls or self.tokens)

    def is_used_up(self, spent: Spent) -> bool:
        """Say whether no other call may begin. One that began is not broken off, so that more may be used than this."""
        return 0 < self.calls <= spent.calls or 0 < self.tokens <= spent.tokens

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
    """What one user has used on a day: by this process, and by all others as far as it has looked."""

    day: str
    own: Spent = field(default_factory=Spent)
    others: Spent = field(default_factory=Spent)
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

    def note(self, owner: Owner, usage: ModelUsage) -> None:
        """Add a call to what the user has used."""
        if not self.budget.is_limited or usage.purpose == "chat":
            return
        with self._lock:
            day = self._today(owner)
            day.own = day.own.plus(Spent(1, usage.tokens))

    def used_up_until(self, owner: Owner) -> float | None:
        """Return until when the user's memory asks no model, by what is known here; `None` if it may."""
        if not self.budget.is_limited:
            return None
        with self._lock:
            day = self._today(owner)
            is_used_up = self.budget.is_used_up(day.own.plus(day.others))
        return self.budget.next_day(self._clock()) if is_used_up else None

    def check(self, owner: Owner) -> None:
        """Raise `BudgetUsedUp` if no other call may begin, by what is known here."""
        if (until := self.used_up_until(owner)) is not None:
            raise BudgetUsedUp(until)

    def is_known(self, owner: Owner) -> bool:
        """Say whether nothing has to be looked up before a call: there is no limit, or it was looked up today."""
        if not self.budget.is_limited:
            return True
        with self._lock:
            return self._today(owner).is_looked_up

    def look(self, owner: Owner) -> StoreEffects[float | None]:
        """Read what other processes used of the user's budget, then return what `used_up_until` does."""
        if self.budget.is_limited:
            today = self.budget.day(self._clock())
            items = yield from scan(owner.control)
            others = [item for item in items if item.key != self._key]
            with self._lock:
                day = self._today(owner)
                day.others, day.is_looked_up = spent_in(others, today), True
        return self.used_up_until(owner)

    def save(self, owner: Owner) -> StoreEffects[None]:
        """Write down what this process used, and drop what is told of other days."""
        if not self.budget.is_limited:
            return
        items = yield from scan(owner.control)
        with self._lock:
            day = replace(self._today(owner))
        told = [item for item in items if item.key.startswith(SPENT_KEY) and item.key != self._key]
        over = [item for item in told if item.value.get("day") != day.day]
        own = {"day": day.day, "calls": day.own.calls, "tokens": day.own.tokens}
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


def read_spent(owner: Owner, day: str) -> StoreEffects[Spent]:
    """Read what was used of a user's budget on a day (ISO 8601), by all processes."""
    return spent_in((yield from scan(owner.control)), day)


def spent_in(items: list[Item], day: str) -> Spent:
    """Return what a user's control items say of a day; what a hand garbled counts as nothing."""
    spent = Spent()
    for item in items:
        if item.key.startswith(SPENT_KEY) and item.value.get("day") == day:
            calls, tokens = item.value.get("calls"), item.value.get("tokens")
            if isinstance(calls, int) and isinstance(tokens, int):
                spent = spent.plus(Spent(max(0, calls), max(0, tokens)))
    return spent
