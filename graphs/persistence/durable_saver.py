"""What is the same in our checkpointers, wherever they keep what they hold: deletions of threads and of runs."""

import json
import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.base import id as ids

from memory.context.running_summary import RunningSummary
from memory.text import check_encodable

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


CHECKPOINTED_TYPES = ((RunningSummary.__module__, RunningSummary.__qualname__),)
"""Our classes that come back from a checkpoint as themselves; with these named, no unknown class is ever built."""

_HOUR = 36_000_000_000  # in steps of 100 ns
_KEY = "thread_id, checkpoint_ns, checkpoint_id"
GOING = f"""
    WITH RECURSIVE doomed AS (SELECT {_KEY}, parent_checkpoint_id AS parent FROM checkpoints WHERE {{of_runs}}),
    needed AS (
        SELECT doomed.* FROM checkpoints AS child JOIN doomed ON child.thread_id = doomed.thread_id
            AND child.checkpoint_ns = doomed.checkpoint_ns AND child.parent_checkpoint_id = doomed.checkpoint_id
        WHERE child.checkpoint_id NOT IN (SELECT checkpoint_id FROM doomed) AND {{is_replayed}}
        UNION SELECT doomed.* FROM needed JOIN doomed ON needed.thread_id = doomed.thread_id
            AND needed.checkpoint_ns = doomed.checkpoint_ns AND needed.parent = doomed.checkpoint_id)
    SELECT {_KEY} FROM doomed EXCEPT SELECT {_KEY} FROM needed ORDER BY 1, 2, 3"""
"""Selects the keys of runs' checkpoints, but for those that a checkpoint of another run is replayed from."""


class DurableSaver:
    """What is the same in each saver of ours."""

    def _to_copy(self, source_thread_id: str, target_thread_id: str) -> dict[str, str] | None:
        """Return the ids of a thread, as `source`, and of the one that it is copied to, as `target`.

        Returns:
            The ids; `None` if they are the same, so that there is nothing to do.
        """
        names = {"source": str(source_thread_id), "target": str(target_thread_id)}
        for name, thread_id in names.items():
            check_encodable(f"{name}_thread_id", thread_id)
        return None if names["source"] == names["target"] else names

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Refuse: the stock way empties threads whose newest state is replayed from older checkpoints."""
        raise NotImplementedError(
            "aprune is refused: a thread's newest state is replayed from older checkpoints; delete threads that are old"
        )


def before_next(found: CheckpointTuple | None) -> CheckpointTuple | None:
    """Return a checkpoint that was read, and have the next one of this process come after it.

    The newest checkpoint of a thread is the one with the largest id, which begins with the time. LangGraph's own guard
    knows what this process made alone: a clock may have gone back since the last one, or be behind that of another.
    """
    with suppress(ValueError):  # an id of somebody else's making
        if found and (known := ids.UUID(found.checkpoint["id"])).version == 6:
            if (behind := known.time - ids.uuid6().time) >= 0:
                vars(ids)["_last_v6_timestamp"] = known.time
            if behind > _HOUR:
                logger.warning("this machine's clock is %d h behind: days in memory will be wrong", behind // _HOUR)
    return found


def thread_named(config: RunnableConfig) -> str:
    """Return the thread that a config names; `ValueError` if nothing could hold its id."""
    thread_id = str(config["configurable"]["thread_id"])
    check_encodable("thread_id", thread_id)
    return thread_id


def user_named(config: RunnableConfig) -> str:
    """Return whose run it is, as the server says; empty where nobody logs in."""
    said = {**config["configurable"], **config.get("metadata", {})}
    return str(said.get("langgraph_auth_user_id") or "")


def may_be_first(metadata: CheckpointMetadata) -> bool:
    """Say whether a checkpoint may be the first of its thread."""
    return metadata.get("step", -1) <= 0


EARLY_SECONDS = 600
"""So long after a task's first writes its thread has a checkpoint, or its process was killed before it saved one."""
