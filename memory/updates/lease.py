"""Who works on a pending update, so that the model is not asked twice for it. Pure but for asking after a process.

A store has no compare-and-swap, so a lease is a courtesy, not a lock: two workers that claim at the same moment may
both go on, and what they do is idempotent. A worker that was killed gives its lease back by being dead: on its own
host that is seen at once, elsewhere the lease runs out.
"""

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self
from uuid import uuid4

# A claim of more seconds than this from now on was made under a clock that was ahead.
_LONGEST = 86_400.0


@dataclass(frozen=True, slots=True)
class Worker:
    """One update's worker: the process it runs in, and a token of its own.

    Attributes:
        host: Name of the machine.
        pid: Process id on that machine.
        process: Random token of the process, as a restarted container has the same host and pid.
        update: Random token of this one update.
    """

    host: str
    pid: int
    process: str
    update: str

    @classmethod
    def here(cls) -> Self:
        """Return a worker for this process; `renewed()` gives one for each of its updates."""
        return cls(socket.gethostname(), os.getpid(), uuid4().hex, uuid4().hex)

    def renewed(self) -> "Worker":
        """Return a worker of the same process for another update."""
        return replace(self, update=uuid4().hex)


@dataclass(frozen=True, slots=True)
class Lease:
    """One worker's claim on an entry.

    Attributes:
        worker: Whose claim it is.
        until: When it runs out, in seconds since the epoch.
    """

    worker: Worker
    until: float

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the store keeps: `{owner, until}`."""
        return {"owner": asdict(self.worker), "until": self.until}

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> Self | None:
        """Return the lease of a stored JSON form, or `None` where there is none that can be read."""
        try:
            return cls(Worker(**value["owner"]), float(value["until"])) if value else None
        except (KeyError, TypeError, ValueError):
            return None


def is_held(lease: Lease | None, now: float, me: Worker, is_alive: Callable[[int], bool]) -> bool:
    """Say whether somebody else's claim still stands.

    Args:
        lease: The claim on the entry, if any.
        now: Seconds since the epoch.
        me: Who asks; one's own claim never stands in one's way.
        is_alive: Whether a process of this host exists.
    """
    if lease is None or lease.worker == me or not now < lease.until <= now + _LONGEST:
        return False
    if lease.worker.host != me.host:
        return True
    if lease.worker.pid == me.pid:
        return lease.worker.process == me.process
    return is_alive(lease.worker.pid)


def process_exists(pid: int) -> bool:
    """Say whether a process of this host exists, also one that belongs to somebody else."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
