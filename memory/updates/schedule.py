"""When what waits is due, and what starts next: pure decisions on times of one clock, in seconds."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from memory.config import MemoryConfig
from memory.updates.conversation import ConversationContext, Key
from memory.updates.retry import retry_delay


@dataclass(frozen=True, slots=True)
class Pending:
    """A context that waits.

    Attributes:
        context: What is to be done.
        first: When the first context that it stands for was added.
        due: When it is to be processed.
        failures: How often that was tried and failed.
    """

    context: ConversationContext
    first: float
    due: float
    failures: int = 0


class Plan(NamedTuple):
    """What a moment asks for: the update to start, if any, and else when to look again (`None`: nothing waits)."""

    start: Key | None
    wake: float | None


def plan(now: float, pending: Mapping[Key, Pending], busy_users: Collection[str], earliest: float) -> Plan:
    """Decide what starts now: of those whose user has no running update, what is due longest.

    A user's updates follow each other whatever the agent, so that one user holds one of the process's few places for
    model calls, however many of them hang.

    Args:
        now: The moment, in seconds of the clock that all other times are of.
        pending: What waits.
        busy_users: Users with a running update.
        earliest: Before this moment nothing starts.
    """
    free = [one for key, one in pending.items() if key.user_id not in busy_users]
    if not free:
        return Plan(None, None)
    first = min(free, key=lambda one: (one.due, one.first))
    start = max(first.due, earliest)
    return Plan(first.context.key, None) if start <= now else Plan(None, start)


def put_back(taken: Pending, newer: Pending | None) -> Pending:
    """Return what waits once something that was taken was not processed, and what came for its conversation since."""
    if newer is None:
        return taken
    return replace(taken, context=newer.context.replacing(taken.context), due=min(taken.due, newer.due))


def failed(taken: Pending, now: float, config: MemoryConfig) -> Pending:
    """Return what waits once something that was taken has failed at this moment: the same, for longer each time."""
    failures = taken.failures + 1
    return replace(taken, due=now + retry_delay(failures, config), failures=failures)


def enqueue(
    now: float, old: Pending | None, context: ConversationContext, config: MemoryConfig, quiet: bool
) -> Pending:
    """Return what waits once a context was added, in place of what waited for its conversation before.

    Args:
        now: The moment.
        old: What waited.
        context: The newer context.
        config: The quiet period and the maximum wait.
        quiet: Whether to wait for a quiet period; what is already due does not wait again.
    """
    first = old.first if old else now
    due = min(now + config.debounce_seconds, first + config.max_wait_seconds) if quiet else now
    if old:
        context = context.replacing(old.context)
        due = min(due, old.due) if old.due <= now else due
    return Pending(context, first, due, old.failures if old else 0)
