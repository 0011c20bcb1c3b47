"""Which checkpoints went with a deleted thread, so that a run still going on from one of them adds nothing to it.

A run names the checkpoint it goes on from with all that it saves. So what descends from a deleted one is told apart
from a thread that was created anew under the same id, whatever the clock says; the latter descends from nothing.
"""

import json
import time
from collections.abc import Iterable
from typing import Any

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata

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
