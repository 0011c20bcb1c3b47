"""Who works for a user: one row of the user's, so that one process at a time asks a model about what they said.

A worker takes the lease in a transaction, under a token that nobody had before. What applies a model's answer compares
the token in its own transaction: where it is another one, a later worker has taken over, and nothing is written. So a
lease that ends too early costs a second model call, and no more.
"""

import os
import socket
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from langchain_core.language_models import BaseChatModel

from memory.config import MemoryConfig
from memory.door import Batch, StoreEffects, put, read
from memory.forms import plain, read_as
from memory.message import iso_time
from memory.namespaces import Owner
from memory.updates.budget import BudgetUsedUp, DailyBudget, spend

T = TypeVar("T")

_KEY: Final = "lease"
# A lease of more seconds than this from now on was taken under a clock that was ahead.
_LONGEST: Final = 86_400.0
_UNDER_WAY: Final[set[str]] = set()


class LeaseLost(Exception):
    """Another worker has the user: nothing is written, and no attempt counted."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """The effect of work with a model, in one of the process's places for it; its value is sent back.

    Loading a model blocks, and a provider may hang for ever: the work as a whole has a thread, a place and a deadline.

    Attributes:
        model: `provider:model`; empty means the deployment's own.
        use: Asks the model. It runs on a thread of its own and may block.
        purpose: What it is asked for.
    """

    model: str
    use: Callable[[BaseChatModel], Any]
    purpose: Literal["extraction", "rollup"]


WorkerEffects = Generator[Batch | ModelCall, Any, T]
"""Yields batches for the store and model calls, is sent what comes of each, and returns a value."""


def process_exists(pid: int) -> bool:
    """Say whether a process of this host exists, also one that belongs to somebody else."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@dataclass(frozen=True, slots=True)
class Worker:
    """The process that updates run in.

    Attributes:
        host: Name of the machine.
        pid: Process id on that machine.
        is_alive: Whether a process of this host exists.
        under_way: The tokens of the updates that go on, by default of all workers of this process: one that broke off,
            with a store that is away, could not give its lease back.
    """

    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    is_alive: Callable[[int], bool] = process_exists
    under_way: set[str] = field(default_factory=lambda: _UNDER_WAY)


@dataclass(frozen=True, slots=True)
class Lease:
    """One worker's claim on a user, of all agents.

    Attributes:
        token: Random, of this one claim; empty if nobody has any.
        until: When it runs out, in seconds since the epoch.
        host: Of the worker.
        pid: Of the worker.
        keys: Of the pending updates that a model is asked about.
    """

    token: str = ""
    until: float = 0.0
    host: str = ""
    pid: int = 0
    keys: tuple[str, ...] = ()

    def stands(self, now: float) -> bool:
        """Say whether it has not run out at a time, in seconds since the epoch."""
        return now < self.until <= now + _LONGEST

    def is_free(self, now: float, me: Worker) -> bool:
        """Say whether a worker may take the user: nobody has the lease, or whoever has it is known to be gone."""
        if not self.stands(now):
            return True
        if self.host != me.host:
            return False
        # A container that was started again has the same host, and the same number.
        return self.token not in me.under_way if self.pid == me.pid else not me.is_alive(self.pid)


def read_lease(owner: Owner) -> StoreEffects[Lease]:
    """Read who works for the user; what cannot be read is nobody's."""
    item = yield from read(owner.control, _KEY)
    with suppress(ValueError):
        return read_as(Lease, item.value if item else {})
    return Lease()


@dataclass(slots=True)
class Job:
    """One piece of work for a user, in which a model is asked: what it is told from outside, and its lease.

    Attributes:
        owner: Whose memory it is.
        config: Limits and switches.
        worker: The process that carries it out.
        token: Of its lease, a random one.
        clock: Returns seconds since the epoch.
    """

    owner: Owner
    config: MemoryConfig
    worker: Worker
    token: str
    clock: Callable[[], float]

    def now(self) -> str:
        """Return the time as ISO 8601 in UTC."""
        return iso_time(self.clock())

    def take(self) -> StoreEffects[None]:
        """Take the user, as a part of what is written; `LeaseLost` if another worker has them."""
        if not (yield from read_lease(self.owner)).is_free(self.clock(), self.worker):
            raise LeaseLost
        yield [put(self.owner.control, _KEY, plain(Lease(self.token)))]
        yield from self.hold()

    def hold(self, keys: Iterable[str] | None = ()) -> StoreEffects[None]:
        """Go on with the user while a model is asked about the updates of these keys; `None` gives the user back.

        Raises:
            LeaseLost: If another worker has them now: nothing of the transaction is written.
        """
        if (yield from read_lease(self.owner)).token != self.token:
            raise LeaseLost
        until, me = self.clock() + self.config.lease_seconds, self.worker
        lease = Lease() if keys is None else Lease(self.token, until, me.host, me.pid, tuple(keys))
        yield [put(self.owner.control, _KEY, plain(lease))]

    def ask(self, call: ModelCall, *, has_begun: bool = False) -> WorkerEffects[Any]:
        """Have a model asked, and return its answer; `BudgetUsedUp` if none may be asked for the user today."""
        until = yield from spend(self.owner, DailyBudget.of(self.config), self.clock(), has_begun=has_begun)
        if until is not None:
            raise BudgetUsedUp(until)
        return (yield call)
