"""One pending update: the value, when it may be read, and what a failure makes of it. Pure."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from operator import attrgetter
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

from pydantic import Field

from memory.config import MemoryConfig
from memory.message import Role, StoredMessage
from memory.model_calls import chain, says_too_long, status_of
from memory.namespaces import Owner
from memory.text import digest

EntryKind = Literal["turn", "cut"]
EntryState = Literal["pending", "running", "dead"]
"""`pending`: waits. `running`: is being read. `dead`: failed for good."""

FailureKind = Literal["not_now", "again", "never"]
"""`not_now`: no fault of the call, it passes by itself. `again`: the same call may succeed. `never`: it will not."""

LONGEST_WAIT = 86_400.0
"""In seconds; a longer one comes from a clock that was ahead, and is ignored."""

# No money left, too many requests; and what fails on the server's side, but for what it cannot do.
_NOT_NOW = frozenset({402, 429, *range(500, 600)}) - {501}
# Request timeout, conflict, too early, too many requests. Every other 4xx says "never".
_TRANSIENT = frozenset({408, 409, 425, 429})
_NO_MONEY = re.compile(r"\bquota\b|credit balance", re.IGNORECASE)  # Google's and Anthropic's words
_NO_CONNECTION = frozenset({"ConnectionError", "APIConnectionError", "TransportError", "ModelConnectionError"})

_FAILURES_TOGETHER = 3
_ID = attrgetter("id")


class Overtaken(Exception):
    """The entries changed while a model was asked about them: nothing of its answer is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One pending update.

    Attributes:
        kind: `turn`: a finished turn, makes facts. `cut`: left the context by a summary, makes facts and journal lines.
        owner: Whose memory it is.
        thread_id: The thread the messages are from.
        epoch: The user's epoch when it was written; another one cancels it.
        created: When it was written down, in seconds since the epoch.
        due: From when on the sweep may take it, in seconds since the epoch; after a failure, when to try again.
        messages: What was said, oldest first.
        speaker: The name that the user's messages carried in the thread then (`memory.message.speaker_of`); `None` if
            whose words they are is settled.
        edited_away: Ids of messages that the thread no longer has, as the user edited them away: they are not learned
            unless they are back before the update runs.
        overlapped: Whether the thread went on from another run that ran beside this one. Later turns lack its messages
            then, though nobody edited them away.
        first: Id of the first question of the thread's branch then; empty where nobody knows.
        model: The assistant's choice as `provider:model`; empty means the deployment's own.
        attempts: How often it failed, and its own contents may be to blame.
        waits: How often its model could not be asked, or the entry had changed by the time of the answer.
        not_before: Until when its provider wants not to be asked, in seconds since the epoch.
        state: `dead` failed for good, and waits for a person. Which entries are `running` is in the user's lease.
        error: Class of the last failure, without any text of the conversation; a change meanwhile is no failure.
    """

    kind: EntryKind
    owner: Owner
    thread_id: str
    epoch: str
    created: float
    due: float
    messages: tuple[StoredMessage, ...]
    speaker: str | None = None
    edited_away: tuple[str, ...] = ()
    overlapped: bool = False
    first: str = ""
    model: str = ""
    attempts: int = 0
    waits: int = 0
    not_before: float = 0.0
    state: EntryState = "pending"
    error: str = ""

    @property
    def key(self) -> str:
        """The store key: what was said in one place has one entry, however often it is written down."""
        return digest(self.kind, self.thread_id, *map(_ID, self.messages))

    @property
    def contents(self) -> tuple[object, ...]:
        """What tells it from its earlier versions, tries aside; with the texts, as an edit keeps the id."""
        texts = tuple(message.text for message in self.messages)
        return (self.key, self.epoch, texts, self.edited_away)

    @property
    def to_learn(self) -> tuple[StoredMessage, ...]:
        """What was said and not edited away."""
        return tuple(message for message in self.messages if message.id not in self.edited_away)

    def is_ready(self, now: float, config: MemoryConfig, *, is_woken: bool = False) -> bool:
        """Say whether it may be read: a fresh one at any time, one that failed once it is due again.

        A delay beyond the longest one comes from a clock that was ahead, and is ignored.

        Args:
            now: Seconds since the epoch.
            config: The longest delay.
            is_woken: Whether to read at once what waited for its model.
        """
        if self.state == "dead" or 0 < self.not_before - now <= LONGEST_WAIT:
            return False
        is_fresh = not (self.attempts or (self.waits and not is_woken))
        return is_fresh or not 0 < self.due - now <= config.retry_max_seconds

    def is_suspect(self, config: MemoryConfig) -> bool:
        """Say whether it is read alone, as it may be what makes its model's server fail."""
        return self.waits >= _FAILURES_TOGETHER or self.attempts >= min(_FAILURES_TOGETHER, config.max_attempts - 1)

    def failed(self, error: Exception, now: float, config: MemoryConfig, *, is_alone: bool) -> Self:
        """Return what waits once a model was asked in vain.

        Args:
            error: Why.
            now: Seconds since the epoch.
            config: The delays, and how many attempts there are.
            is_alone: Whether nothing else was read with it. Else it is not given up: another one may be to blame.
        """
        kind, sort = kind_of(error), self.error if isinstance(error, Overtaken) else type(error).__name__
        if kind == "not_now":
            waits, pause = self.waits + 1, asked_to_wait(error, now)
            due = now + max(pause, retry_delay(waits, config))
            return replace(self, waits=waits, due=due, not_before=now + pause if pause else 0.0, error=sort)
        attempts = self.attempts + 1
        if kind == "again" and attempts < config.max_attempts:
            return replace(self, attempts=attempts, due=now + retry_delay(attempts, config), error=sort)
        if is_alone:
            return replace(self, attempts=attempts, state="dead", error=sort)
        return replace(self, attempts=config.max_attempts - 1, due=now, error=sort)


class Said(NamedTuple):
    """One message of a turn that was learned: in the place of its words their digest, and never a time."""

    id: str
    role: Role
    text: str = ""
    time: str = ""
    seen: bool = False


@dataclass(frozen=True, slots=True)
class LearnedTurn:
    """What is kept of a turn that was learned: fields of its entry, without any text."""

    kind: ClassVar[EntryKind] = "turn"
    created: float
    messages: Annotated[tuple[Said, ...], Field(min_length=1)]
    edited_away: tuple[str, ...] = ()
    overlapped: bool = False

    @property
    def key(self) -> str:
        """What tells it from the others of its thread."""
        return digest("learned", *map(_ID, self.messages))


def kind_of(error: BaseException) -> FailureKind:
    """Say what a failure asks for: to wait, to try again, or to give up.

    A request that is too large fails by its own fault, whatever the status; one that times out may.
    """
    if isinstance(error, Overtaken):
        return "not_now"
    status = status_of(error)
    if status is None:
        kinds = {kind.__name__ for one in chain(error) for kind in type(one).__mro__}
        is_late = any("Timeout" in kind for kind in kinds) and "ConnectTimeout" not in kinds
        if not is_late and not kinds.isdisjoint(_NO_CONNECTION):
            return "not_now"
        return "never" if isinstance(error, ImportError | NotImplementedError) else "again"
    lacks_money = status in (400, 403) and _NO_MONEY.search(str(error))
    if (status in _NOT_NOW or lacks_money) and not says_too_long(error):
        return "not_now"
    return "never" if 400 <= status < 500 and status not in _TRANSIENT else "again"


def asked_to_wait(error: BaseException, now: float) -> float:
    """Return for how many seconds a server wants not to be asked (`Retry-After`), a day at most; else 0."""
    told = (getattr(getattr(one, "response", None), "headers", None) for one in chain(error))
    said = next((str(each.get("retry-after", "")) for each in told if isinstance(each, Mapping)), "")
    with suppress(ValueError, OverflowError):
        seconds = float(said) if said[-1:].isdigit() else parsedate_to_datetime(said).timestamp() - now
        return min(max(seconds, 0.0), LONGEST_WAIT)
    return 0.0


def retry_delay(failures: int, config: MemoryConfig) -> float:
    """Return the seconds to wait after so many failures: doubling, up to `retry_max_seconds`."""
    return float(min(config.retry_base_seconds * 2 ** min(failures - 1, 60), config.retry_max_seconds))
