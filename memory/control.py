"""A user's control items: the epoch that an erase changes, the epochs of erased threads, the time zone.

The epoch is a random token compared for equality. Everything stored for a user carries the epoch it was written under;
readers ignore other epochs.
"""

import functools
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from langgraph.store.base import GetOp, Item

from memory.config import APPROVALS, Approval
from memory.door import transaction
from memory.effects import StoreEffects, delete, put, read, read_many, scan
from memory.namespaces import Owner, unit_of
from memory.text import digest

INITIAL_EPOCH = "initial"
MAX_FORGOTTEN_THREADS = 500
"""The newest are kept: a thread's epoch has to outlive the updates that are under way, not the user."""
CONTROL_KEY = "control"
_ZONE_KEY = "time-zone"
_ASSISTANTS_ZONE_KEY = "assistant-time-zone"
# Two items: what an assistant chose must never overwrite what the user did.
ZONE_KEYS = (_ZONE_KEY, _ASSISTANTS_ZONE_KEY)
_THREAD = "thread."
LEARNING_KEY = "learning"
USE_KEY = "use"
APPROVAL_KEY = "approval"
EDIT_KEY = "edit"
INITIAL_EDIT = "0."
"""The number of a user who never changed anything by hand."""


@dataclass(frozen=True, slots=True)
class Epochs:
    """Under which epochs stored values count: whatever carries another one was erased.

    Attributes:
        epoch: The user's epoch.
        threads: The epochs of threads that were erased at some time, by `forgotten_thread_key`.
    """

    epoch: str = INITIAL_EPOCH
    threads: Mapping[str, str] = field(default_factory=dict)

    def cancels(self, epoch: str, thread_id: str, thread_epoch: str) -> bool:
        """Say whether what was written under these epochs of the user and the thread must not be applied."""
        return epoch != self.epoch or thread_epoch != self.threads.get(forgotten_thread_key(thread_id), thread_epoch)


def read_epochs(owner: Owner) -> StoreEffects[Epochs]:
    """Read the epochs of the user and of their erased threads; without any erase, the initial one and none."""
    items = {item.key: item for item in (yield from scan(owner.control))}
    threads = {key: forgotten_epoch_in(item) for key, item in items.items() if key.startswith(_THREAD)}
    return Epochs(epoch_in(items.get(CONTROL_KEY)), threads)


def read_epoch(owner: Owner) -> StoreEffects[str]:
    """Read the user's current epoch; a user who never erased anything has the initial one."""
    return epoch_in((yield from read(owner.control, CONTROL_KEY)))


def control_get(owner: Owner) -> GetOp:
    """Return the read of the item that holds the user's epoch (`epoch_in`)."""
    return GetOp(owner.control, CONTROL_KEY, refresh_ttl=False)


def epoch_in(control: Item | None) -> str:
    """Return the epoch that a control item (`Owner.control`, `CONTROL_KEY`) holds."""
    epoch = control.value.get("epoch") if control else None
    return epoch if isinstance(epoch, str) and epoch else INITIAL_EPOCH


def write_epoch(owner: Owner, epoch: str) -> StoreEffects[None]:
    """End the epoch of everything written so far: readers ignore it from now on."""
    yield [put(owner.control, CONTROL_KEY, {"epoch": epoch})]


def count_edit(owner: Owner) -> StoreEffects[str]:
    """Count a change that a person makes by hand, as a part of it, and return its number.

    What is said from now on is written down with this number, so that nobody compares clocks of two processes.
    """
    number, _, _ = edit_in((yield from read(owner.control, EDIT_KEY))).partition(".")
    # Erased with all else, numbers begin anew: the random end tells those of before apart.
    edit = f"{int(number) + 1}.{uuid.uuid4().hex[:8]}"
    yield [put(owner.control, EDIT_KEY, {"mark": edit})]
    return edit


def edit_in(item: Item | None) -> str:
    """Return the number of the newest edit by hand that a control item (`Owner.control`, `EDIT_KEY`) holds."""
    edit = item.value.get("mark") if item else None
    return edit if isinstance(edit, str) and _count(edit) is not None else INITIAL_EDIT


def was_said_after(said_after: str, edit: str) -> bool | None:
    """Say whether something was said after an edit by hand; `None` where their numbers do not tell.

    Args:
        said_after: The number of the newest edit when it was said; empty if nobody knows.
        edit: The number of the edit in question. Two that were made at once count the same: then only a clock tells.
    """
    seen, own = _count(said_after), _count(edit)
    if seen is None or own is None or (seen == own and said_after != edit):
        return None
    return seen >= own


def _count(edit: str) -> int | None:
    count = edit.partition(".")[0]
    # A hand may have written any number there, and Python refuses to read very long ones.
    return int(count) if count.isdecimal() and len(count) < 20 else None


def forgotten_epoch_in(item: Item | None) -> str:
    """Return the epoch of an erased thread, as its control item holds it; empty before any erase."""
    thread_epoch = item.value.get("generation") if item else None
    return thread_epoch if isinstance(thread_epoch, str) else ""


def forget_thread(owner: Owner, thread_id: str, thread_epoch: str, now: float) -> StoreEffects[None]:
    """Cancel the updates of a thread that were written down so far: they are of another epoch.

    Args:
        owner: Whose memory the thread fed.
        thread_id: The thread.
        thread_epoch: A random token, compared for equality: clocks of two processes differ, and may be set back.
        now: Seconds since 1970, to tell which threads were erased first.
    """
    own = forgotten_thread_key(thread_id)
    yield [put(owner.control, own, {"generation": thread_epoch, "forgotten": now})]
    others = [item for item in (yield from scan(owner.control)) if item.key.startswith(_THREAD) and item.key != own]

    def when(item: Item) -> float:
        time = item.value.get("forgotten")
        return float(time) if isinstance(time, int | float) else 0.0

    # The new one is never among the surplus: it has to stand even where this process's clock is behind all others.
    surplus = sorted(others, key=when)[: 1 - MAX_FORGOTTEN_THREADS]
    if surplus:
        yield [delete(item.namespace, item.key) for item in surplus]


def forgotten_thread_key(thread_id: str) -> str:
    """Return the key of the control item that holds an erased thread's epoch; what was imported together has one."""
    return _THREAD + digest("thread", unit_of(thread_id))[:32]


def read_time_zone(owner: Owner, otherwise: tzinfo = UTC) -> StoreEffects[tzinfo]:
    """Read where the user is, as `read_known_time_zone` does; the other zone where nobody knows."""
    return (yield from read_known_time_zone(owner)) or otherwise


def read_known_time_zone(owner: Owner) -> StoreEffects[tzinfo | None]:
    """Read the time zone that the user set, else that of the assistant they talked to last; `None` if there is none."""
    return zone_in((yield from read_many(owner.control, ZONE_KEYS)))


def zone_in(items: Iterable[Item | None]) -> tzinfo | None:
    """Return the time zone that the items of `ZONE_KEYS` (`Owner.control`) tell, in this order."""
    zones = (zone_named(name) for item in items if item and isinstance(name := item.value.get("name"), str))
    return next((zone for zone in zones if zone), None)


def read_chosen_time_zone(owner: Owner) -> StoreEffects[str | None]:
    """Read the name of the time zone that the user set; `None` if they set none."""
    item = yield from read(owner.control, _ZONE_KEY)
    name = item.value.get("name") if item else None
    return name if isinstance(name, str) and zone_named(name) else None


@transaction
def write_time_zone(owner: Owner, name: str | None) -> StoreEffects[None]:
    """Write the user's time zone, `None` to have none; `ValueError` if there is none of that name."""
    if name is None:
        yield [delete(owner.control, _ZONE_KEY)]
    else:
        yield [put(owner.control, _ZONE_KEY, {"name": checked_time_zone(name)})]


def note_assistants_time_zone(owner: Owner, name: str) -> StoreEffects[None]:
    """Note the time zone of the assistant that the user talks to, for work in the background; empty notes nothing."""
    if name:
        yield [put(owner.control, _ASSISTANTS_ZONE_KEY, {"name": name})]


def forget_time_zone(owner: Owner) -> StoreEffects[None]:
    """Forget where the user is."""
    yield [delete(owner.control, key) for key in ZONE_KEYS]


def checked_time_zone(name: str) -> str:
    """Return the name; `ValueError` if no time zone has it."""
    if zone_named(name) is None:
        raise ValueError(f"time_zone must be an IANA time zone such as Europe/Oslo, not {name!r}")
    return name


@functools.lru_cache(maxsize=1024)
def zone_named(name: str) -> tzinfo | None:
    """Return the time zone of an IANA name such as `Europe/Oslo`; `None` if there is none of that name."""
    try:
        # Reads a file of 2 KB, also on an event loop: `langgraph dev` allows that, and it is read once.
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def belongs(value: Mapping[str, object], epoch: str) -> bool:
    """Say whether a stored value counts: its epoch is the current one, or a hand added it without any."""
    return value.get("epoch", epoch) == epoch


def read_learning(owner: Owner) -> StoreEffects[bool]:
    """Say whether the user's memory learns; it does until the user pauses it, for all agents."""
    return learning_in((yield from read(owner.control, LEARNING_KEY)))


def learning_in(item: Item | None) -> bool:
    """Say whether the user's memory learns, as the item (`Owner.control`, `LEARNING_KEY`) tells."""
    return item is None or item.value.get("learning") is not False


@transaction
def write_learning(owner: Owner, learning: bool) -> StoreEffects[None]:
    """Pause learning or go on. An item of its own: writing it can never undo an erase that happens meanwhile."""
    yield [put(owner.control, LEARNING_KEY, {"learning": learning})]


def read_use(owner: Owner) -> StoreEffects[bool]:
    """Say whether the user's memory is shown to models; it is until the user switches that off, for all agents."""
    return use_in((yield from read(owner.control, USE_KEY)))


def use_in(item: Item | None) -> bool:
    """Say whether the user's memory is shown to models, as the item (`Owner.control`, `USE_KEY`) tells."""
    return item is None or item.value.get("use") is not False


@transaction
def write_use(owner: Owner, use: bool) -> StoreEffects[None]:
    """Show memory to models, or show it to none. Learning goes on: it has a switch of its own."""
    yield [put(owner.control, USE_KEY, {"use": use})]


def read_approval(owner: Owner) -> StoreEffects[Approval]:
    """Read about what the user wants to be asked before what they said is used; for all agents."""
    item = yield from read(owner.control, APPROVAL_KEY)
    return next((each for each in APPROVALS if item and item.value.get("approval") == each), "off")


@transaction
def write_approval(owner: Owner, approval: Approval) -> StoreEffects[None]:
    """Write about what the user wants to be asked. What is in use stays so, and what waits goes on waiting."""
    yield [put(owner.control, APPROVAL_KEY, {"approval": approval})]
