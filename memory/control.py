"""A user's epoch and switches: the one item that fences everything written before an erase.

The epoch is a random token compared for equality (a counter would let two erases meet). Everything stored for a
user carries the epoch it was written under; readers ignore other epochs, and a writer reads it again afterwards
and takes its own rows back if it changed.
"""

from memory.namespaces import Owner
from memory.storage import Steps, put, read

INITIAL_EPOCH = "initial"
_KEY = "control"


def read_epoch(owner: Owner) -> Steps[str]:
    """Read the user's current epoch; a user who never erased anything has the initial one."""
    item = yield from read(owner.control, _KEY)
    epoch = item.value.get("epoch") if item else None
    return epoch if isinstance(epoch, str) and epoch else INITIAL_EPOCH


def write_epoch(owner: Owner, epoch: str) -> Steps[None]:
    """Fence everything written so far: readers ignore it from now on."""
    item = yield from read(owner.control, _KEY)
    yield [put(owner.control, _KEY, {**(item.value if item else {}), "epoch": epoch})]


def belongs(value: dict[str, object], epoch: str) -> bool:
    """Say whether a stored value counts: its epoch is the current one, or a hand added it without any."""
    return value.get("epoch", epoch) == epoch
