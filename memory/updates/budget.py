"""What memory asks of models for a user, and the budget of a day for it: what is used up waits for the next day.

Nothing is lost by that. What was used is counted in the store, in one row of the user's for all processes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final, Literal

from langchain_core.language_models import BaseChatModel

from memory.config import MemoryConfig, zone_named
from memory.door import StoreEffects, ask, put, read, transaction
from memory.message import iso_time
from memory.namespaces import Owner

Purpose = Literal["extraction", "rollup"]
_KEY: Final = "spent"


class BudgetUsedUp(Exception):
    """The user's budget of the day is used up; `until` says when the next day begins, in seconds since the epoch."""

    def __init__(self, until: float) -> None:
        super().__init__("the budget of the day is used up")
        self.until = until


@dataclass(slots=True)
class Job:
    """One piece of work for a user, in which a model is asked.

    Loading a model blocks, and a provider may hang for ever: both run on one thread, within one deadline.

    Attributes:
        owner: Whose memory it is.
        config: Limits and switches.
        clock: Returns seconds since the epoch.
        do: Carries out what needs the store.
        use: Has the model of a name (`provider:model`; empty means the deployment's own) asked for a purpose.
    """

    owner: Owner
    config: MemoryConfig
    clock: Callable[[], float]
    do: Callable[[StoreEffects[Any]], Any]
    use: Callable[[str, Purpose, Callable[[BaseChatModel], Any]], Any]

    def now(self) -> str:
        """Return the time as ISO 8601 in UTC."""
        return iso_time(self.clock())

    def ask(
        self, model: str, purpose: Purpose, call: Callable[[BaseChatModel], Any], *, has_begun: bool = False
    ) -> Any:
        """Have a model asked, and return its answer.

        Args:
            model: Which one.
            purpose: What it is asked for.
            call: Asks it. It runs on a thread of its own, within the deadline.
            has_begun: As for `spend`.

        Raises:
            BudgetUsedUp: If none may be asked for the user today.
        """
        if self.config.budget_calls:
            until = self.do(spend(self.owner, self.config, self.clock(), has_begun=has_begun))
            if until is not None:
                raise BudgetUsedUp(until)
        return self.use(model, purpose, call)


def day_at(now: float, config: MemoryConfig) -> tuple[str, float]:
    """Return the day (ISO 8601) of a time in the deployment's zone, and when that day ends, in seconds since 1970."""
    zone = zone_named(config.time_zone) or UTC
    today = datetime.fromtimestamp(now, zone).date()
    # Midnight by the clocks of the zone: a day there may have 23 or 25 hours.
    return today.isoformat(), datetime.combine(today + timedelta(days=1), time.min, zone).timestamp()


@transaction
async def spend(owner: Owner, config: MemoryConfig, now: float, *, has_begun: bool = False) -> float | None:
    """Count a model call that is about to be made, unless the user's budget of the day is used up.

    Args:
        owner: Whose memory it is for.
        config: What each user has: `budget_calls`, failed ones too; it has to be a limit, not 0.
        now: Seconds since the epoch.
        has_begun: Whether earlier calls of the same work were counted: it is finished, also over the budget.

    Returns:
        Until when no call may be made, in seconds since the epoch; `None` if this one may.
    """
    day, ends = day_at(now, config)
    spent = await read_spent(owner, day)
    if spent >= config.budget_calls and not has_begun:
        return ends
    await ask(put(owner.control, _KEY, {"day": day, "calls": spent + 1}))
    return None


async def read_spent(owner: Owner, day: str) -> int:
    """Read how many calls were made of a user's budget on a day (ISO 8601); what a hand garbled counts as none."""
    item = await read(owner.control, _KEY)
    calls = item.value.get("calls") if item and item.value.get("day") == day else 0
    return max(0, calls) if isinstance(calls, int) else 0
