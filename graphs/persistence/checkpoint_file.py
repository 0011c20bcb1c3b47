"""What the SQLite file of the checkpoints knows that the server may not: threads whose row is gone.

`langgraph dev` writes its rows of threads every 10 seconds, a checkpoint at once: after `kill -9` a thread may have
checkpoints and no row.
"""

import asyncio
import json
import math
import sqlite3
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from langgraph.checkpoint.base.id import UUID

from graphs.persistence.connection import BUSY_SECONDS
from graphs.persistence.sqlite_saver import METADATA, USER_OF_CHECKPOINT

T = TypeVar("T")

_THEIRS = "IN (SELECT value FROM json_each(?))"
_OF_USERS = f"SELECT DISTINCT thread_id FROM checkpoints WHERE {USER_OF_CHECKPOINT} {_THEIRS}"
_EARLY_OF_USERS = f"SELECT thread_id FROM early_writes WHERE user_id {_THEIRS}"
_OF_ANOTHER = f"SELECT 1 FROM checkpoints WHERE thread_id = ? AND NOT {USER_OF_CHECKPOINT} {_THEIRS} LIMIT 1"
# The key is read alone, without a row: it is what has the moment of a checkpoint in it.
_BEGUN = "SELECT thread_id, MIN(checkpoint_id) FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id"
# By the order of writing: the clock may have gone back since the largest id was made.
_LAST = "SELECT (SELECT checkpoint_id FROM checkpoints WHERE checkpoint_ns = '' ORDER BY rowid DESC LIMIT 1)"
_SAID = f"""
    SELECT {METADATA} FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id"""
# MessagePack keeps strings as they are, so that the name of a key can be looked for without reading what it is in.
_UNWRITTEN = f"""
    SELECT thread_id, {USER_OF_CHECKPOINT} FROM checkpoints AS newest
    WHERE checkpoint_ns = '' AND thread_id > ? AND INSTR(checkpoint, CAST('has_unwritten' AS BLOB)) > 0
        AND checkpoint_id =
            (SELECT MAX(checkpoint_id) FROM checkpoints WHERE thread_id = newest.thread_id AND checkpoint_ns = '')
    ORDER BY thread_id LIMIT ?"""


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """The checkpoints as they are on the disk; where there is no such file, it knows of none."""

    path: Path

    async def threads_of(self, user_ids: Collection[str]) -> list[str]:
        """Return the ids of the threads in which nobody but these users has saved; no user is the empty id."""
        users = json.dumps(list(user_ids))

        def read(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute(f"{_OF_USERS} UNION {_EARLY_OF_USERS}", (users, users))
            found = [str(thread_id) for (thread_id,) in rows]
            return [each for each in found if not connection.execute(_OF_ANOTHER, (each, users)).fetchone()]

        return await asyncio.to_thread(self._read, read)

    async def begun_lately(self, seconds: float) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return the threads that were begun at most so long before the last checkpoint of all.

        Each has the metadata of its checkpoints, the oldest first; threads of which nobody can read it are left out.
        """

        def read(connection: sqlite3.Connection) -> list[tuple[str, list[dict[str, Any]]]]:
            (last,) = connection.execute(_LAST).fetchone()
            found: list[tuple[str, list[dict[str, Any]]]] = []
            for thread_id, begun in connection.execute(_BEGUN).fetchall():
                if _seconds_between(begun, last) <= seconds:
                    said = [text for (text,) in connection.execute(_SAID, (thread_id,))]
                    found += [(str(thread_id), [json.loads(text) for text in said])] if all(said) else []
            return found

        return await asyncio.to_thread(self._read, read)

    async def unwritten(self, limit: int, after: str = "") -> list[tuple[str, str]]:
        """Return the threads, each with its user, whose newest state may name turns that are not written down yet.

        Args:
            limit: So many at most, in the order of their ids.
            after: Only threads whose ids come behind this one.
        """

        def read(connection: sqlite3.Connection) -> list[tuple[str, str]]:
            return [(str(thread), str(user)) for thread, user in connection.execute(_UNWRITTEN, (after, limit))]

        return await asyncio.to_thread(self._read, read)

    def _read(self, read: Callable[[sqlite3.Connection], list[T]]) -> list[T]:
        if not self.path.exists():
            return []
        # A connection of its own that cannot write: the server's may hold a transaction for seconds.
        there = f"{self.path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(there, uri=True, timeout=BUSY_SECONDS)) as connection:
            return read(connection)


def _seconds_between(first: str, last: str) -> float:
    """Return how much later the one checkpoint was made than the other; endless for ids that do not tell."""
    try:
        return (UUID(last).time - UUID(first).time) / 1e7  # in steps of 100 ns
    except ValueError:
        return math.inf
