"""A user's control item: the epoch that fences everything written before an erase, and which threads were forgotten.

The epoch is a random token compared for equality (a counter would let two erases meet). Everything stored for a
user carries the epoch it was written under; readers ignore other epochs, and a writer reads it again afterwards
and takes its own rows back if it changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from langgraph.store.base import Item

from memory.namespaces import Owner
from memory.storage import Steps, put, read
from memory.text import digest

INITIAL_EPOCH = "initial"
MAX_FORGOTTEN_THREADS = 500
"""The newest are kept: a mark has to outlive the updates that are under way, not the user."""
CONTROL_KEY = "control"
_LEARNING_KEY = "learning"


@dataclass(frozen=True, slots=True)
class Fences:
    """What must not come back.

    Attributes:
        epoch: The token that valid items carry.
        threads: When threads were forgotten, in seconds since the epoch, by a digest of their id.
    """

    epoch: str = INITIAL_EPOCH
    threads: Mapping[str, float] = field(default_factory=dict)

    def cancels(self, epoch: str, thread_id: str, created: float) -> bool:
        """Say whether what was written under this epoch, for this thread, at this time must not be applied."""
        return epoch != self.epoch or created <= self.threads.get(_mark(thread_id), 0.0)


def read_fences(owner: Owner) -> Steps[Fences]:
    """Read the user's epoch and forgotten threads; a user who never erased anything has the initial epoch and none."""
    return fences_in((yield from read(owner.control, CONTROL_KEY)))


def fences_in(control: Item | None) -> Fences:
    """Return the fences that a control item (`Owner.control`, `CONTROL_KEY`) holds."""
    value = control.value if control else {}
    epoch = value.get("epoch")
    return Fences(epoch if isinstance(epoch, str) and epoch else INITIAL_EPOCH, _threads(value))


def read_time_zone(owner: Owner) -> Steps[tzinfo]:
    """Read the user's time zone; UTC while it is not known."""
    item = yield from read(owner.control, CONTROL_KEY)
    name = item.value.get("timeZone") if item else None
    return _zone(name) if isinstance(name, str) and name else UTC


def write_time_zone(owner: Owner, name: str) -> Steps[None]:
    """Write the user's time zone; `ValueError` if `name` is no IANA name such as `Europe/Oslo`."""
    if _zone(name) is UTC and name != "UTC":
        raise ValueError(f"name must be an IANA time zone such as Europe/Oslo, not {name!r}")
    item = yield from read(owner.control, CONTROL_KEY)
    yield [put(owner.control, CONTROL_KEY, {**(item.value if item else {}), "timeZone": name})]


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return UTC


def read_epoch(owner: Owner) -> Steps[str]:
    """Read the user's current epoch; a user who never erased anything has the initial one."""
    fences = yield from read_fences(owner)
    return fences.epoch


def write_epoch(owner: Owner, epoch: str) -> Steps[None]:
    """Fence everything written so far: readers ignore it from now on."""
    item = yield from read(owner.control, CONTROL_KEY)
    yield [put(owner.control, CONTROL_KEY, {**(item.value if item else {}), "epoch": epoch})]


def forget_thread(owner: Owner, thread_id: str, now: float) -> Steps[None]:
    """Cancel the updates of a thread that were written down up to now (seconds since the epoch)."""
    item = yield from read(owner.control, CONTROL_KEY)
    value = item.value if item else {}
    marks = {**_threads(value), _mark(thread_id): now}
    newest = sorted(marks, key=lambda mark: marks[mark])[-MAX_FORGOTTEN_THREADS:]
    yield [put(owner.control, CONTROL_KEY, {**value, "threads": {mark: marks[mark] for mark in newest}})]


def _mark(thread_id: str) -> str:
    return digest("thread", thread_id)[:32]


def _threads(value: Mapping[str, object]) -> dict[str, float]:
    found = value.get("threads")
    marks = found if isinstance(found, dict) else {}
    return {str(mark): float(time) for mark, time in marks.items() if isinstance(time, int | float)}


def belongs(value: Mapping[str, object], epoch: str) -> bool:
    """Say whether a stored value counts: its epoch is the current one, or a hand added it without any."""
    return value.get("epoch", epoch) == epoch


def read_learning(owner: Owner) -> Steps[bool]:
    """Say whether the user's memory learns; it does until the user pauses it, for all agents."""
    item = yield from read(owner.control, _LEARNING_KEY)
    return item is None or item.value.get("learning") is not False


def write_learning(owner: Owner, learning: bool) -> Steps[None]:
    """Pause learning or go on. An item of its own: writing it can never undo an erase that happens meanwhile."""
    yield [put(owner.control, _LEARNING_KEY, {"learning": learning})]
