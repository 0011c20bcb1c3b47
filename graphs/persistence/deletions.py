"""Threads that are being deleted: who deletes one does not wait, whoever uses it afterwards does."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata

from memory.effects import tolerated

logger = logging.getLogger(__name__)

KEPT_SECONDS = 7 * 86_400
"""Longer than any run that was going on when its thread was deleted."""

CREATE = """
    CREATE TABLE IF NOT EXISTS dead_checkpoints (
        thread_id TEXT NOT NULL, checkpoint_id TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (thread_id, checkpoint_id)) WITHOUT ROWID"""
_BURY = "INSERT OR REPLACE INTO dead_checkpoints (thread_id, checkpoint_id, at) VALUES (?, ?, ?)"
_BURY_THREAD = """
    INSERT OR REPLACE INTO dead_checkpoints (thread_id, checkpoint_id, at)
    SELECT DISTINCT thread_id, checkpoint_id, ? FROM checkpoints WHERE thread_id = ?"""
_IS_DEAD = """
    SELECT 1 FROM dead_checkpoints
    WHERE thread_id = ? AND checkpoint_id IN (SELECT value FROM json_each(?)) LIMIT 1"""
_FORGET = "DELETE FROM dead_checkpoints WHERE at < ?"


def ancestors(config: RunnableConfig, metadata: CheckpointMetadata | None = None) -> set[str]:
    """Return the checkpoints that a new one goes on from: the one before it, and those of the graphs around it."""
    named: list[Any] = [config["configurable"].get("checkpoint_id"), *((metadata or {}).get("parents") or {}).values()]
    return {str(identity) for identity in named if identity}


async def bury_thread(connection: aiosqlite.Connection, thread_id: str) -> None:
    """Note all checkpoints of a thread that is about to be deleted, and forget those of long ago."""
    now = time.time()
    await connection.execute(_FORGET, (now - KEPT_SECONDS,))
    await connection.execute(_BURY_THREAD, (now, thread_id))


async def bury(connection: aiosqlite.Connection, thread_id: str, checkpoint_id: str) -> None:
    """Note one checkpoint that descends from a dead one; what its tasks wrote before it goes."""
    await connection.execute(_BURY, (thread_id, checkpoint_id, time.time()))
    await connection.execute("DELETE FROM writes WHERE thread_id = ? AND checkpoint_id = ?", (thread_id, checkpoint_id))


async def is_dead(connection: aiosqlite.Connection, thread_id: str, checkpoint_ids: Iterable[str]) -> bool:
    """Say whether any of these checkpoints went with its thread."""
    async with connection.execute(_IS_DEAD, (thread_id, json.dumps(sorted(checkpoint_ids)))) as cursor:
        return await cursor.fetchone() is not None


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

        async def carry_out() -> None:
            # In the order in which they were asked for: what was made anew in between has to go too.
            if before is not None:
                await asyncio.wait({before})
            await self._delete(thread_id)

        def note(done: asyncio.Task[None]) -> None:
            if _failed(done):
                logger.error("thread %s is not deleted yet; whoever uses it next tries again", thread_id)
            elif self._tasks.get(thread_id) is done:
                del self._tasks[thread_id]

        self._tasks[thread_id] = task = asyncio.get_running_loop().create_task(carry_out())
        task.add_done_callback(note)

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


def _failed(task: asyncio.Task[None]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
