"""The LangGraph checkpointer on SQLite, with everything the server may ask of one.

Beside it, what the file knows that the server may not: `langgraph dev` writes its rows of threads every 10 seconds, a
checkpoint at once, so that after `kill -9` a thread may have checkpoints and no row.
"""

import asyncio
import copy
import json
import math
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.base.id import UUID
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graphs.persistence.connection import BUSY_SECONDS, SqliteFile, file_transaction, open_file
from graphs.persistence.durable_saver import (
    CHECKPOINTED_TYPES,
    CREATE,
    EARLY_SECONDS,
    GOING,
    DurableSaver,
    ancestors,
    before_next,
    bury,
    bury_thread,
    is_dead,
    may_be_first,
    thread_named,
    user_named,
)
from memory.text import check_encodable

METADATA = "CASE WHEN json_valid(CAST(metadata AS TEXT)) THEN CAST(metadata AS TEXT) END"
_RUN_ID = f"json_extract({METADATA}, '$.run_id')"
USER_OF_CHECKPOINT = f"IFNULL(json_extract({METADATA}, '$.langgraph_auth_user_id'), '')"
"""Whose checkpoint it is, as the server wrote it into the metadata; empty where nobody logs in."""

_INDEXES = (
    # Metadata lies behind each row's state: finding a run without an index would read the whole file.
    f"CREATE INDEX IF NOT EXISTS checkpoints_by_run ON checkpoints ({_RUN_ID})",
    f"CREATE INDEX IF NOT EXISTS checkpoints_by_user ON checkpoints ({USER_OF_CHECKPOINT}, thread_id)",
    "CREATE INDEX IF NOT EXISTS checkpoints_by_parent ON checkpoints (thread_id, checkpoint_ns, parent_checkpoint_id)",
)

# As in `postgres_saver.py`: whose writes were saved before the first checkpoint of their thread, which a kill prevents.
_EARLY = """
    CREATE TABLE IF NOT EXISTS early_writes (
        thread_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, at REAL NOT NULL) WITHOUT ROWID"""
_NOTE_EARLY = """
    INSERT OR IGNORE INTO early_writes (thread_id, user_id, at) SELECT :thread, :user, :at
    WHERE NOT EXISTS (SELECT 1 FROM checkpoints WHERE thread_id = :thread)"""
_NO_LONGER_EARLY = "DELETE FROM early_writes WHERE thread_id = ?"
_ORPHANS = """
    SELECT thread_id FROM early_writes AS early WHERE at < ?
    AND NOT EXISTS (SELECT 1 FROM checkpoints WHERE thread_id = early.thread_id)"""
_DROP_ORPHANS = tuple(f"DELETE FROM {table} WHERE thread_id IN ({_ORPHANS})" for table in ("writes", "early_writes"))

# A copy belongs to no run: rolling the original's run back must not take rows out of the copy.
_COPY_CHECKPOINTS = f"""
    INSERT OR REPLACE INTO checkpoints
        (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
    SELECT :target, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,
        COALESCE(CAST(json_remove(json_replace({METADATA}, '$.thread_id', :target), '$.run_id') AS BLOB), metadata)
    FROM checkpoints WHERE thread_id = :source"""
_COPY_WRITES = """
    INSERT OR REPLACE INTO writes
        (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)
    SELECT :target, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value
    FROM writes WHERE thread_id = :source"""

_COUNTERS = f"json_extract({METADATA.replace('metadata', 'child.metadata')}, '$.counters_since_delta_snapshot')"
_GOING = GOING.format(of_runs=f"{_RUN_ID} IN (SELECT value FROM json_each(?))", is_replayed=f"{_COUNTERS} IS NOT NULL")
_DELETE = ("checkpoints", "writes")


class DurableSqliteSaver(DurableSaver, AsyncSqliteSaver):
    """An `AsyncSqliteSaver` that can also roll a run back and copy a thread.

    Every write is one transaction: a run cancelled in the middle of one leaves no lock behind for others. What is
    read back is limited to LangGraph's and LangChain's own types and `CHECKPOINTED_TYPES`, with or without
    `LANGGRAPH_STRICT_MSGPACK`; an object of any other class comes back as plain data.
    """

    def __init__(self, file: SqliteFile) -> None:
        super().__init__(file.writer, serde=JsonPlusSerializer(allowed_msgpack_modules=CHECKPOINTED_TYPES))
        self._file = file
        self._reading, self._writing = asyncio.Lock(), asyncio.Lock()

    async def setup(self) -> None:
        """Create tables and indexes that are missing."""
        if not self.is_setup:
            await super().setup()
            for statement in (CREATE, _EARLY, *_INDEXES):
                await self.conn.execute(statement)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that a config names, or the newest of its thread, or `None`."""
        return before_next(await AsyncSqliteSaver.aget_tuple(await self._reader(config), config))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what delta channels are replayed from."""
        reader = await self._reader(config)
        return await AsyncSqliteSaver.aget_delta_channel_history(reader, config=config, channels=channels)

    async def _reader(self, config: RunnableConfig | None) -> Self:
        """Return this saver, as it is now, on the connection that reads; `ValueError` for an id that nothing holds."""
        if "thread_id" in (config or {}).get("configurable", {}):
            thread_named(config or {})
        await self.setup()
        reader = copy.copy(self)
        reader.conn, reader.lock = self._file.reader, self._reading
        return reader

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, object] | None = None,  # noqa: A002 (the name is the base class's)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield the matching checkpoints, newest first.

        They are read before the first is yielded: the stock method holds the saver's lock while it is iterated, so
        that any other use of the saver inside the loop would wait forever.
        """
        listed = AsyncSqliteSaver.alist(await self._reader(config), config, filter=filter, before=before, limit=limit)
        for found in [found async for found in listed]:
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, unless its thread was deleted meanwhile, and return the config that finds it."""
        thread_id, checkpoint_id = thread_named(config), checkpoint["id"]
        async with self._transaction():
            if not await is_dead(self.conn, thread_id, ancestors(config, metadata)):
                if may_be_first(metadata):
                    await self.conn.execute(_NO_LONGER_EARLY, (thread_id,))
                return await super().aput(config, checkpoint, metadata, new_versions)
            # The run goes on: it must not fail because somebody else deletes its thread.
            await bury(self.conn, thread_id, checkpoint_id)
        self._file.log.empty_soon()
        return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint_id}}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, object]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what one task wrote, all of it or nothing; nothing if its thread was deleted meanwhile."""
        thread_id = thread_named(config)
        async with self._transaction():
            if not await is_dead(self.conn, thread_id, ancestors(config)):
                early = {"thread": thread_id, "user": user_named(config), "at": time.time()}
                await self.conn.execute(_NOTE_EARLY, early)
                await super().aput_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread, also what a run saves that is going on in it; an unknown one is no error.

        A thread that is created anew under the id lives.
        """
        check_encodable("thread_id", thread_id)
        async with self._transaction():
            await bury_thread(self.conn, thread_id)
            await self._drop_orphans()
            for table in (*_DELETE, "early_writes"):
                await self.conn.execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread_id,))
        self._file.log.empty_soon()

    async def _look_for_orphans(self) -> None:
        """Delete what tasks wrote in threads that got no checkpoint: nobody can ever go on with it."""
        async with self.conn.execute(_ORPHANS, (time.time() - EARLY_SECONDS,)) as cursor:
            is_due = await cursor.fetchone()
        if is_due:  # else nothing is written: the disk may be read-only
            async with self._transaction():
                await self._drop_orphans()
            self._file.log.empty_soon()

    async def _drop_orphans(self) -> None:
        for statement in _DROP_ORPHANS:
            await self.conn.execute(statement, (time.time() - EARLY_SECONDS,))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints and writes of these runs; what another run is replayed from stays."""
        async with self._transaction():
            async with self.conn.execute(_GOING, (json.dumps([str(run_id) for run_id in run_ids]),)) as cursor:
                keys = list(await cursor.fetchall())
            for table in _DELETE:
                await self.conn.executemany(
                    f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?", keys
                )
            self._file.log.empty_soon()

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another one, under the same checkpoint ids."""
        if names := self._to_copy(source_thread_id, target_thread_id):
            async with self._transaction():
                await self.conn.execute(_COPY_CHECKPOINTS, names)
                await self.conn.execute(_COPY_WRITES, names)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[None]:
        """Give one writer of this connection a transaction of its own."""
        await self.setup()
        async with self._writing, file_transaction(self.conn):
            yield


@asynccontextmanager
async def open_checkpointer(path: Path | str) -> AsyncIterator[DurableSqliteSaver]:
    """Open the checkpoints in a SQLite file, creating the file and its folder; bound to the running event loop.

    A deletion takes nothing out of memory: a program that deletes a thread calls `memory.erase.aerase_thread` too.
    """
    async with open_file(path) as file:
        saver = DurableSqliteSaver(file)
        await saver.setup()
        await saver._look_for_orphans()
        yield saver


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
