"""Threads that are being deleted: who deletes one does not wait, whoever uses it afterwards does.

A server may take a place in a list, delete the checkpoints, and then remove what stands at that place (see
`docs/upstream.md`). Between the two nothing else may run, so a deletion begins without suspending its caller.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from memory.tolerance import tolerated

logger = logging.getLogger(__name__)


class Deletions:
    """The deletions of one saver, in the order in which they were asked for.

    One that failed is tried again by whoever uses the thread next: nobody reads what was deleted.

    Args:
        delete: Deletes a thread.
    """

    def __init__(self, delete: Callable[[str], Awaitable[None]]) -> None:
        self._delete = delete
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, thread_id: str) -> None:
        """Delete a thread from now on, for whoever asks for it later."""
        before = self._tasks.get(thread_id)
        task = asyncio.get_running_loop().create_task(self._carry_out(thread_id, before))
        self._tasks[thread_id] = task
        task.add_done_callback(lambda done: self._note(thread_id, done))

    async def carried_out(self, *thread_ids: str) -> None:
        """Return when the deletions of these threads, or without any of all threads, are carried out.

        Raises:
            sqlite3.Error: If one failed twice.
        """
        for thread_id in thread_ids or tuple(self._tasks):
            if (task := self._tasks.get(thread_id)) is not None:
                if _failed(task):
                    self.begin(thread_id)
                await asyncio.shield(self._tasks[thread_id])

    async def aclose(self) -> None:
        """Carry out what is left; what fails once more is lost, and the log says so."""
        for thread_id in tuple(self._tasks):
            with tolerated(logger, "thread %s was deleted but is still on disk", thread_id, level=logging.ERROR):
                await self.carried_out(thread_id)

    async def _carry_out(self, thread_id: str, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        await self._delete(thread_id)

    def _note(self, thread_id: str, done: asyncio.Task[None]) -> None:
        if _failed(done):
            logger.error("thread %s is not deleted yet; whoever uses it next tries again", thread_id)
        elif self._tasks.get(thread_id) is done:
            del self._tasks[thread_id]


def _failed(task: asyncio.Task[None]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
