"""A turn that is written down after it ended, as the store did not answer then: whether it still may be. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from langgraph.store.base import Item

from memory.control import Control
from memory.text import digest
from memory.threads import ErasedThread

# Clocks of two processes differ: what was changed so short a time before the turn may have been changed after it.
_MARGIN_SECONDS = 300.0
_NOTED = "late"
_KEPT = 500


@dataclass(frozen=True, slots=True)
class Late:
    """What is known of the time at which such a turn was said.

    Attributes:
        asked: Id of the user message that it answers.
        at: When it ended, in seconds since the epoch.
        is_read: Whether memory could be read when it began. If not, nobody knows whether the user had learning paused
            then, and its epochs are older than the turn, or none.
    """

    asked: str
    at: float
    is_read: bool

    def is_noted(self, note: Item | None) -> bool:
        """Say whether the note of its thread and owner names it: it was written down late before."""
        return self._digest in _noted(note.value if note else {})

    def noted(self, note: Item | None) -> dict[str, object]:
        """Return the note with this turn in it; the newest 500 are kept."""
        value = dict(note.value) if note else {}
        return {**value, _NOTED: [*_noted(value), self._digest][-_KEPT:]}

    @property
    def _digest(self) -> str:
        # The time, too: a question that was edited under its id is asked again.
        return digest(self.asked, repr(self.at))

    def may_be_learned(self, epoch: str, control: Control, thread: ErasedThread) -> bool:
        """Say whether nothing forbids it that the epochs do not tell: in doubt, it is not learned.

        Args:
            epoch: The user's epoch when it began; empty if nobody read it.
            control: The user's now.
            thread: The last erase of the thread.
        """
        times = [thread.at, *(() if epoch else (control.epoch_at,)), *(() if self.is_read else (control.learning_at,))]
        return control.learning and all(not at or at < self.at - _MARGIN_SECONDS for at in times)


def _noted(value: Mapping[str, object]) -> list[str]:
    noted = value.get(_NOTED)  # somebody may have edited it by hand
    return [one for one in noted if isinstance(one, str)] if isinstance(noted, list) else []
