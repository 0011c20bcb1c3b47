"""Waiting for what a server does in its own time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 120.0
"""Seconds. What comes takes no longer for it, and a slow machine beside other work was seen to take a minute."""


def eventually(look: Callable[[], T], timeout: float = PATIENCE) -> T:
    """Return the first true thing that `look` returns; the test fails if there is none in time."""
    begun = time.monotonic()
    while not (found := look()):
        waited = time.monotonic() - begun
        assert waited < timeout, f"still {found!r} after {timeout} s"
        # Who asks all the time takes from a busy machine what the server needs.
        time.sleep(min(max(0.05, waited / 10), 1.0))
    return found
