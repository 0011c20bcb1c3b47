"""What a thread holds when a turn of it is written down, and what of its pending messages it no longer does. Pure."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from memory.updates.entry import Entry


@dataclass(frozen=True, slots=True)
class ThreadView:
    """What a thread holds, whichever of its branches it goes on from.

    Attributes:
        ids: The ids of its messages as memory keeps them, and of those that its summary is known to stand for.
        is_complete: Whether the summary stands for no others: it remembers only the newest.
    """

    ids: Collection[str]
    is_complete: bool = True


def edited_away(entries: Iterable[Entry], view: ThreadView) -> frozenset[str]:
    """Return the ids of pending messages that the user edited away: neither the thread nor a cut has them.

    A message that a summary took is never among them. Where the view is not complete, the summary may stand for what
    it does not name, but only for what is older than all it names: then a message counts as edited away only if it
    was written down after one that the thread has.

    Args:
        entries: What is pending of the thread, in the order in which it was written down.
        view: What the thread holds now.
    """
    pending = list(entries)
    held = {*view.ids, *(message.id for entry in pending if entry.kind == "cut" for message in entry.messages)}
    gone: set[str] = set()
    is_newer = view.is_complete
    for message in (message for entry in pending if entry.kind == "turn" for message in entry.messages):
        if message.id in held:
            is_newer = True
        elif is_newer:
            gone.add(message.id)
    return frozenset(gone)
