"""The write-ahead log of a SQLite file, which holds deleted text until it is emptied; who deletes does not wait for it.

Emptying it needs a moment in which nobody reads from it. SQLite refuses it on a connection that reads, and holds every
writer up while it waits for other connections. So it runs on a connection of its own, waits briefly, and is tried
again until it is done.
"""

import asyncio
import contextlib
import itertools
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Self

from memory.tolerance import tolerated

logger = logging.getLogger(__name__)

SOON_SECONDS = 1.0
"""How long after a deletion the log is emptied: what is deleted in the meantime is paid for together."""

_BUSY_SECONDS = 0.2
_RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)


class WriteAheadLog:
    """Sees to it, while it is entered, that what was deleted leaves the log of one file.

    After `mark` that happens within seconds, or as soon as nobody reads from the log any more; at the latest when the
    last process closes the file. What a killed process left in the log goes when the file is opened next.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._marks = self._emptied = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if await asyncio.to_thread(_has_log, self._path):
            self.mark()
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._task is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        if self._is_due and not await self._try():
            logger.warning("the log of %s is not emptied yet: another process reads the file", self._path.name)

    def mark(self) -> None:
        """Note that something was deleted, or written over."""
        self._marks += 1
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._empty())

    @property
    def _is_due(self) -> bool:
        return self._marks > self._emptied

    async def _empty(self) -> None:
        while self._is_due:
            await asyncio.sleep(SOON_SECONDS)
            for pause in itertools.chain(_RETRY_SECONDS, itertools.repeat(_RETRY_SECONDS[-1])):
                if await self._try():
                    break
                await asyncio.sleep(pause)

    async def _try(self) -> bool:
        """Empty the log of all that was marked before, and say whether that was possible."""
        marks = self._marks
        with tolerated(logger, "the log of %s could not be emptied", self._path.name):
            if await asyncio.to_thread(_empty, self._path):
                self._emptied = marks
                return True
        return False


async def empty_log(path: Path) -> bool:
    """Empty the log of a file now, and say whether that was possible; where no file is, nothing happens."""
    for pause in (*_RETRY_SECONDS, 0.0):
        if not await asyncio.to_thread(path.exists) or await asyncio.to_thread(_empty, path):
            return True
        await asyncio.sleep(pause)
    return False


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _empty(path: Path) -> bool:
    there = f"{path.absolute().as_uri()}?mode=rw"  # a file that went meanwhile is not made again
    with closing(sqlite3.connect(there, timeout=_BUSY_SECONDS, uri=True)) as connection:
        try:
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            return False
    return not busy
