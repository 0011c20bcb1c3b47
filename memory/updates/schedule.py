"""What waits, when it is due, what starts next, when a failure is tried again: pure, in seconds of one clock."""

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple, Self

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from memory.config import MemoryConfig
from memory.failure_chain import chain
from memory.message import StoredMessage, identified
from memory.namespaces import Owner
from memory.provider_reason import first_status, says_too_long, status_of
from memory.text import check_encodable

Message = BaseMessage | StoredMessage


class UpdateKey(NamedTuple):
    """What tells one pending update from another."""

    thread_id: str
    user_id: str
    agent_name: str


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """What one update is about; it carries all that the worker needs, as that looks nothing up.

    Attributes:
        thread_id: The conversation.
        user_id: Whose memory it is: the user's identity. `of` puts their namespace's name here, for who knows no more.
        agent_name: Which agent's memory it is.
        messages: Messages of the conversation, in any form that LangChain takes; each is given an `id` if it has none.
        carried_over: Messages of a context that this one replaced which had left the thread by a summary.
        kind: `turn`: `messages` is the thread as it is now. `cut`: they are what a summary is about to replace.
        store: Where the memory is kept, for a `process` that serves several stores.
        given_owner: What `of` was given; else `user_id` and `agent_name` say it.
        at_once: Whether somebody asked for it, so that it waits for no quiet time.
    """

    thread_id: str
    user_id: str
    agent_name: str = "default"
    messages: Sequence[Any] = ()
    carried_over: Sequence[Message] = ()
    kind: Literal["turn", "cut"] = "turn"
    store: BaseStore | None = field(default=None, compare=False, repr=False)
    given_owner: Owner | None = field(default=None, compare=False, repr=False)
    at_once: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, owner: Owner, thread_id: str, store: BaseStore) -> Self:
        """Return the context of an owner's conversation whose messages are written down already."""
        return cls(thread_id, owner.segment, owner.agent_name, store=store, given_owner=owner)

    @property
    def owner(self) -> Owner:
        """Whose memory it is, as namespaces name it."""
        return self.given_owner or Owner.of(self.user_id, self.agent_name)

    def __post_init__(self) -> None:
        for name in ("thread_id", "user_id", "agent_name"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise ValueError(f"{name} must be a non-empty string, not {value!r}")
        check_encodable("thread_id", self.thread_id)
        object.__setattr__(self, "messages", identified(self.messages))
        object.__setattr__(self, "carried_over", tuple(self.carried_over))

    @property
    def key(self) -> UpdateKey:
        """The key of the pending update of this conversation."""
        return UpdateKey(self.thread_id, self.user_id, self.agent_name)

    def replacing(self, older: "ConversationContext") -> "ConversationContext":
        """Return this context in the older one's place, with what a summary took from the thread in between.

        What the older one had and a turn's view of the thread no longer has, without a summary, was edited away by
        the user and stays away. A cut is no view of the thread: what it does not name is still there.
        """
        left = older.carried_over if older.kind == self.kind == "turn" else (*older.carried_over, *older.messages)
        carried = {_id(message): message for message in (*left, *self.carried_over)}
        for message in self.messages:
            carried.pop(_id(message), None)
        return replace(self, carried_over=tuple(carried.values()), at_once=self.at_once or older.at_once)


def _id(message: Message) -> str | int:
    return message.id or id(message)


# Request timeout, conflict, too early, too many requests: the same call may succeed. Every other 4xx says "never".
_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
# No money left, too many requests; and what fails on the server's side, but for what it cannot do.
_NOT_NOW = frozenset({402, 429, *range(500, 600)}) - {501}
_NO_MONEY = re.compile(r"\bquota\b|credit balance", re.IGNORECASE)  # Google's and Anthropic's words
_NO_CONNECTION = frozenset({"ConnectionError", "APIConnectionError", "TransportError", "ModelConnectionError"})
LONGEST_WAIT = 86_400.0
"""In seconds. What is to wait for longer was told so under a clock that was ahead."""

# Answers about the one who asks: no key, no money, no right, no such model.
_ABOUT_THE_CALLER = frozenset({401, 402, 403, 404})


def is_retryable(error: BaseException) -> bool:
    """Say whether the same call may succeed later.

    A refusal by HTTP status 4xx (a wrong API key, an unknown model) is final, except for timeouts and rate limits;
    a missing package is final too. All else is tried again: timeouts, broken connections, replies that are no JSON.
    """
    status = status_of(error)
    if status is not None and 400 <= status < 500:
        return status in _TRANSIENT_STATUS
    return not isinstance(error, ImportError | NotImplementedError)


def may_blame_text(error: BaseException) -> bool:
    """Say whether a failure may come from what the model was to read, so that less of it may be taken."""
    return status_of(error) not in _ABOUT_THE_CALLER and not isinstance(error, ImportError | NotImplementedError)


def says_not_now(error: BaseException) -> bool:
    """Say whether a failure is no fault of the call and passes by itself: no connection, a quota, a server that fails.

    A request that is too large is at fault, and one may be that runs into a time limit.
    """
    if status := first_status(error):
        is_not_now = status in _NOT_NOW or (status in (400, 403) and _NO_MONEY.search(str(error)))
        return bool(is_not_now) and not says_too_long(error)
    kinds = {kind.__name__ for one in chain(error) for kind in type(one).__mro__}
    is_late = any("Timeout" in kind for kind in kinds) and "ConnectTimeout" not in kinds
    return not is_late and not kinds.isdisjoint(_NO_CONNECTION)


def asked_to_wait(error: BaseException, now: float) -> float:
    """Return for how many seconds a server wants not to be asked (`Retry-After`), a day at most; else 0."""
    told = (getattr(getattr(one, "response", None), "headers", None) for one in chain(error))
    said = next((str(each.get("retry-after", "")) for each in told if isinstance(each, Mapping)), "")
    with suppress(ValueError, OverflowError):
        seconds = float(said) if said[-1:].isdigit() else parsedate_to_datetime(said).timestamp() - now
        return min(max(seconds, 0.0), LONGEST_WAIT)
    return 0.0


def retry_delay(attempts: int, config: MemoryConfig) -> float:
    """Return the seconds to wait after the given number of failures: doubling, up to `retry_max_seconds`."""
    return float(min(config.retry_base_seconds * 2 ** min(attempts - 1, 60), config.retry_max_seconds))


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

    start: UpdateKey | None
    wake: float | None


def plan(now: float, pending: Mapping[UpdateKey, Pending], busy_users: Collection[str], earliest: float) -> Plan:
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
    first, context = old.first if old else now, replace(context, at_once=not quiet)
    due = min(now + config.debounce_seconds, first + config.max_wait_seconds) if quiet else now
    if old:
        context = context.replacing(old.context)
        due = min(due, old.due) if old.due <= now else due
    return Pending(context, first, due, old.failures if old else 0)
