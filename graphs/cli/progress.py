"""What a command does at this moment, how long it has been at it, and how long the rest may take."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from statistics import median

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Shown
from rich.text import Text

_EVERY_SECONDS = 1.0
_EVERY_SECONDS_IN_A_FILE = 15.0

# With the local model on two idle cores: a turn, the update behind it (half a minute of quiet included), and what a
# summary takes of a longer conversation, for each of its turns.
TURN_SECONDS = 10.0
UPDATE_SECONDS = 90.0
UNSUMMARIZED_TURNS = 8
SUMMARY_SECONDS = 25.0


def estimate(turns: int, questions: int) -> float:
    """Return the seconds that a replay takes with the local model on two idle cores, roughly."""
    summaries = max(0, turns - UNSUMMARIZED_TURNS) * SUMMARY_SECONDS
    return (turns + questions) * TURN_SECONDS + summaries + UPDATE_SECONDS


def remaining(taken: Sequence[float], left: int, then: float) -> float:
    """Return the seconds that so many further turns and what follows them take, by the turns so far."""
    return median(taken) * left + then


def in_words(seconds: float) -> str:
    """Return a duration as people say it: `in_words(140) == "about 2 minutes"`."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"about {max(5, round(seconds / 5) * 5)} seconds"
    return f"about {minutes} minute{'s' if minutes > 1 else ''}"


class Progress:
    """One thing that is being done: in a terminal a line that counts the seconds, elsewhere a line now and then."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._begun = time.monotonic()
        self._shown = False
        self._task: asyncio.Task[None] | None = None

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self._begun

    def start(self) -> None:
        """Begin to show it."""
        self._task = asyncio.create_task(self._show())

    def stop(self) -> None:
        """Show it no longer; what is printed next begins on a clean line."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._shown and sys.stdout.isatty():
            click.echo("\r\033[K", nl=False)
        self._shown = False

    async def _show(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_SECONDS if sys.stdout.isatty() else _EVERY_SECONDS_IN_A_FILE)
            line = f"  ...       {self.what}, {self.seconds:.0f} s"
            click.echo(f"\r\033[K{line}" if sys.stdout.isatty() else line, nl=not sys.stdout.isatty())
            self._shown = True


@asynccontextmanager
async def progress(what: str) -> AsyncIterator[Progress]:
    """Show what is being done while the block runs, or until it calls `stop`."""
    shown = Progress(what)
    shown.start()
    try:
        yield shown
    finally:
        shown.stop()


class _Rate(ProgressColumn):
    """How many a minute."""

    def render(self, task: Task) -> Text:
        """Return it as text."""
        return Text(f"{task.speed * 60:.0f}/min" if task.speed else "")


@contextmanager
def counting(
    what: str, total: int, spent: Callable[[int], str], note: Callable[[str], None]
) -> Iterator[Callable[[int], None]]:
    """Show how many messages are done, at what rate, how long the rest takes: a bar, or a line now and then elsewhere.

    Args:
        what: What is being done.
        total: How many there are.
        spent: Says what so many cost; empty for nothing.
        note: Prints a line where there is no terminal.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    more = TextColumn("{task.fields[spent]}")
    with Shown(*columns, more, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total, spent="")
        last = bar.get_time()

        def show(done: int) -> None:
            nonlocal last
            cost = spent(done)
            bar.update(task, completed=max(0, done), spent=cost)
            if not console.is_terminal and bar.get_time() - last >= _EVERY_SECONDS_IN_A_FILE:
                last = bar.get_time()
                left = bar.tasks[0].time_remaining
                parts = [f"{done} of {total} messages", "" if left is None else f"{in_words(left)} left", cost]
                note(f"{what}: {', '.join(filter(None, parts))}")

        yield show
