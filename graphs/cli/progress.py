"""How much of what a command does is done, and how long the rest may take."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

_EVERY_SECONDS = 15.0


def in_words(seconds: float) -> str:
    """Return a duration as people say it: `in_words(140) == "about 2 minutes"`."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"about {max(5, round(seconds / 5) * 5)} seconds"
    return f"about {minutes} minute{'s' if minutes > 1 else ''}"


class _Rate(ProgressColumn):
    """How many a minute."""

    def render(self, task: Task) -> Text:
        """Return it as text."""
        return Text(f"{task.speed * 60:.0f}/min" if task.speed else "")


@contextmanager
def counting(what: str, total: int, note: Callable[[str], None]) -> Iterator[Callable[[int], None]]:
    """Show how many messages are done, at what rate, how long the rest takes: a bar, or a line now and then elsewhere.

    Args:
        what: What is being done.
        total: How many there are.
        note: Prints a line where there is no terminal.
    """
    console = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        last = bar.get_time()

        def show(done: int) -> None:
            nonlocal last
            bar.update(task, completed=max(0, done))
            if not console.is_terminal and bar.get_time() - last >= _EVERY_SECONDS:
                last = bar.get_time()
                left = bar.tasks[0].time_remaining
                note(f"{what}: {done} of {total} messages" + ("" if left is None else f", {in_words(left)} left"))

        yield show


def counting_bytes() -> Progress:
    """Return what shows how many bytes are done, at what rate, on standard error; disabled where it is no terminal."""
    console = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
