"""A service whose updates run when a test asks for them."""

from typing import Any

from palimpsest import MemoryService


class Untriggered(MemoryService):
    """Reads nothing of itself that was written down."""

    def trigger(self, *_: Any, **__: Any) -> None:
        """Leave it to the test."""

    def wake(self, *_: Any) -> None:
        """Leave it to the test: a thread beside one that is killed would be counted, and killed, with it."""
