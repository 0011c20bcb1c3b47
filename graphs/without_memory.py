"""Why a turn goes on without memory, in a word for receipts and in a sentence for the log."""

import logging
from typing import Literal

logger = logging.getLogger(__name__)

WithoutMemory = Literal["no_identity", "no_store", "switched_off", "incognito", "unreadable"]

SENTENCES: dict[WithoutMemory, str] = {
    "no_identity": "the server names no user: nobody logs in, and PALIMPSEST_SINGLE_USER is not true",
    "no_store": "there is no store: compile the graph with one, or name one in the server's configuration",
    "switched_off": "PALIMPSEST_MEMORY is false: nothing is learned",
    "incognito": "the assistant, the thread or the run is incognito",
    "unreadable": "the store does not answer; the log says how it failed",
}


def why_without(
    *, has_owner: bool, has_store: bool, enabled: bool, mode: str | None, is_read: bool
) -> WithoutMemory | None:
    """Return why a turn has no memory or learns nothing for good; `None` where memory works as it was chosen to.

    Args:
        has_owner: Whether the run has a user.
        has_store: Whether it has a store.
        enabled: Whether the deployment learns.
        mode: What memory may do in the turn; `None` if that could not be read.
        is_read: Whether memory was read, or did not have to be.
    """
    if not has_store:
        return "no_store"
    if not has_owner:
        return "no_identity"
    if mode == "incognito":
        return "incognito"
    if mode is None or not is_read:
        return "unreadable"
    return None if enabled else "switched_off"


class Warnings:
    """Says each reason once, however many turns have it."""

    def __init__(self) -> None:
        self._said: set[WithoutMemory] = set()

    def say(self, reason: WithoutMemory) -> None:
        """Log the reason the first time."""
        if reason not in self._said:
            self._said.add(reason)
            logger.warning("turns go on without memory (%s): %s", reason, SENTENCES[reason])
