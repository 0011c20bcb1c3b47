"""What a thread holds when a turn of it is written down, and what of its pending messages it no longer does. Pure."""

from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass
from itertools import pairwise

from memory.updates.entry import Entry


@dataclass(frozen=True, slots=True)
class ThreadView:
    """What a thread holds, whichever of its branches it goes on from.

    Attributes:
        ids: The ids of its messages as memory keeps them, and of those that its summary is known to stand for.
        is_complete: Whether the summary stands for no others: it remembers only the newest.
    """

    ids: Container[str]
    is_complete: bool = True


def edited_away(entries: Iterable[Entry], view: ThreadView) -> frozenset[str]:
    """Return the ids of pending messages that the user edited away, on the branch that the thread goes on from.

    That the thread lacks a message is no proof, as somebody may have trimmed it. It is edited away only if neither
    the thread, nor a cut, nor a summary has it or anything that was said after it, and if what was said right before
    it is still there, or was edited away too. What was edited away before stays so until it is there again.

    Where the view is not complete, the summary may stand for what it does not name, but only for what is older than
    all it names: then a message counts as edited away only if it was written down after one that the thread has.

    Args:
        entries: What is pending of the thread, in the order in which it was written down.
        view: What the thread holds now.
    """
    pending = list(entries)
    turns = [entry for entry in pending if entry.kind == "turn"]
    cut = {message.id for entry in pending if entry.kind == "cut" for message in entry.messages}
    said = {message.id for entry in turns for message in entry.messages} - cut
    held = cut | {identity for identity in said if identity in view.ids}
    before = _predecessors(turns)
    kept = _and_all_before(held, before)
    gone = {known for entry in turns for known in entry.edited_away} - kept
    is_newer = view.is_complete
    for message in (message for entry in turns for message in entry.messages):
        is_newer = is_newer or message.id in held
        if is_newer and message.id not in kept and message.id in before and before[message.id] <= held | gone:
            gone.add(message.id)
    return frozenset(gone)


def _predecessors(turns: Iterable[Entry]) -> dict[str, set[str]]:
    """Return what was said right before each new message of the turns: nothing, where a thread begins."""
    before: dict[str, set[str]] = {}
    for messages in (entry.messages for entry in turns):
        before.update((first.id, before.get(first.id, set())) for first in messages[:1] if not first.seen)
        for one, following in pairwise(messages):
            before.setdefault(following.id, set()).add(one.id)
    return before


def _and_all_before(held: Collection[str], before: dict[str, set[str]]) -> set[str]:
    """Return what is held and all that was said before it on its branch."""
    kept, open_ends = set(held), list(held)
    while open_ends:
        new = before.get(open_ends.pop(), set()) - kept
        kept |= new
        open_ends.extend(new)
    return kept
