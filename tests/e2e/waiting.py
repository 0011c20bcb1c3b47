"""Waiting for what a server does in its own time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 120.0
"""Seconds. What comes takes no longer for it, and a slow machine beside other work was seen to take a minute."""


def eventually(look: Callable[[], T], timeout: float = PATIENCE) -> T:
    """Return the first true thing that `look` returns; the test fails if there is none in time."""
    deadline = time.monotonic() + timeout
    while not (found := look()):
        assert time.monotonic() < deadline, f"still {found!r} after {timeout} s"
        time.sleep(0.05)
    return found
