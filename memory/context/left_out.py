"""Messages that left the view of a conversation before a summary stands for them: which, as a state remembers it.

The oldest leave first, so the newest of them tells which: all before it too, but for those that were kept, such as the
question of the turn in progress. What a state remembers of them does not grow with their number.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from memory.context.running_summary import REMEMBERED_IDS
from memory.forms import read_as

LEFT_OUT = "left_out"
"""Where a state's `context` says which messages the view leaves out though no summary stands for them."""

HANDED_OVER = "handed_over"
"""Where a state's `context` says which messages the hook was given before a summary stands for them."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The oldest messages of a conversation, without some that were kept.

    Attributes:
        messages: How many they are.
        ids: Ids of the newest 32 of them, oldest first. One is enough to find their place, should others be removed.
        kept: Ids of messages before the newest of them that are none of them.
    """

    messages: int = 0
    ids: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @classmethod
    def of(cls, live: Sequence[BaseMessage], left_out: Collection[str | None]) -> "LeftOut":
        """Return the value for those of a conversation's messages that have these ids."""
        places = [at for at, message in enumerate(live) if message.id in left_out] if left_out else []
        if not places:
            return NOTHING_LEFT_OUT
        newest = tuple(str(live[at].id) for at in places[-REMEMBERED_IDS:])
        kept = tuple(str(message.id) for message in live[: places[-1]] if message.id not in left_out)
        return cls(len(places), newest, kept)

    @classmethod
    def from_state(cls, value: object) -> "LeftOut":
        """Return what a state keeps; nothing where a client put something else there."""
        try:
            return read_as(cls, value) if value else NOTHING_LEFT_OUT
        except ValueError:
            return NOTHING_LEFT_OUT

    def among(self, live: Sequence[BaseMessage]) -> set[str | None]:
        """Return the ids of those of a conversation's messages that this stands for."""
        if not self.ids:
            return set()
        newest = max((at for at, message in enumerate(live) if message.id in self.ids), default=-1)
        return {message.id for message in live[: newest + 1]}.difference(self.kept)


NOTHING_LEFT_OUT = LeftOut()
