"""Who works for a user: one row of the user's, so that one process at a time asks a model about what they said.

A worker takes the lease in a transaction, under a token that nobody had before. What applies a model's answer compares
the token in its own transaction: under another token, a later worker has taken over, and nothing is written. So a lease
that ends too early costs a second model call, and no more.
"""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from langgraph.store.base import Op

from memory.door import put, read
from memory.forms import of_item, plain
from memory.namespaces import Owner

_KEY: Final = "lease"
# A lease of more seconds than this from now on was taken under a clock that was ahead.
_LONGEST: Final = 86_400.0


class LeaseLost(Exception):
    """Another worker has the user: nothing is written, and no attempt counted."""


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
        under_way: The tokens of this process's running updates. A lease of this process under another token is free:
            its update broke off, and could not give it back, as the store was away.
    """

    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    is_alive: Callable[[int], bool] = process_exists
    under_way: set[str] = field(default_factory=set)


@cache
def worker_of(pid: int) -> Worker:
    """Return a process of this host as a worker: one, so that each of its updates knows the others."""
    return Worker(pid=pid)


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

    def put(self, owner: Owner) -> Op:
        """Return the write of it."""
        return put(owner.control, _KEY, plain(self))

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


async def read_lease(owner: Owner) -> Lease:
    """Read who works for the user; what cannot be read is nobody's."""
    return of_item(Lease, await read(owner.control, _KEY))
