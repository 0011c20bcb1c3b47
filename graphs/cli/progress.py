"""How much of what a command does is done."""

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeElapsedColumn, TransferSpeedColumn

_EVERY_SECONDS = 15.0


def counting(what: str, total: int, note: Callable[[str], None]) -> Callable[[int], None]:
    """Return what is told how many messages are done, and says so now and then.

    Args:
        what: What is being done.
        total: How many there are.
        note: Prints a line.
    """
    last = time.monotonic()

    def show(done: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY_SECONDS:
            last = time.monotonic()
            note(f"{what}: {max(0, done)} of {total} messages")

    return show


def counting_bytes() -> Progress:
    """Return what shows how many bytes are done, at what rate, on standard error; disabled where it is no terminal."""
    console = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
