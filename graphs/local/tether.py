"""A process that ends with the one that started it, also when that one is killed: it watches a pipe from it."""

import os
import signal
import threading
from typing import IO


def tether(pipe: IO[bytes], *, graceful: bool) -> None:
    """End this process once the other end of the pipe is closed.

    The other end is held by the parent alone, and the system closes it whichever way the parent ends.

    Args:
        pipe: This process's standard input, as a pipe from its parent.
        graceful: Ask this process to stop (SIGTERM) instead of ending it at once.
    """
    threading.Thread(target=_watch, args=(pipe, graceful), name="tether", daemon=True).start()


def _watch(pipe: IO[bytes], graceful: bool) -> None:
    while pipe.read(1):
        pass
    if graceful:
        signal.raise_signal(signal.SIGTERM)
    else:
        os._exit(0)
