"""The LangGraph checkpointer on SQLite, with everything the server may ask of one.

Beside it, what the file knows that the server may not: `langgraph dev` writes its rows of threads every 10 seconds, a
checkpoint at once, so that after `kill -9` a thread may have checkpoints and no row.
"""

import asyncio
import copy
import json
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import DeltaChannelHistory
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graphs.persistence.connection import BUSY_SECONDS, SqliteFile, file_transaction, open_file
from graphs.persistence.durable_saver import (
    CHECKPOINTED_TYPES,
    CREATE,
    Checkpoints,
    Dialect,
    DurableSaver,
    Execute,
)
from graphs.process.identity import SAVED_BY

_METADATA = "CASE WHEN json_valid(CAST({of} AS TEXT)) THEN CAST({of} AS TEXT) END"
_JSON = _METADATA.format(of="metadata")
_SAYING = f"json_extract({_METADATA}, '$.{{name}}')"
_USER = f"COALESCE({_SAYING.format(of='metadata', name=SAVED_BY)}, '')"
_SQL = Dialect(
    writes="writes",
    tables=("checkpoints", "writes"),
    # A copy belongs to no run: rolling the original's run back must not take rows out of the copy.
    copies=(
        f"""
        INSERT OR REPLACE INTO checkpoints
            (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
        SELECT :target, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,
            COALESCE(CAST(json_remove(json_replace({_JSON}, '$.thread_id', :target), '$.run_id') AS BLOB), metadata)
        FROM checkpoints WHERE thread_id = :source""",
        """
        INSERT OR REPLACE INTO writes
            (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)
        SELECT :target, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value
        FROM writes WHERE thread_id = :source""",
    ),
    # MessagePack keeps strings as they are, so that the name of a key can be looked for without reading what it is in.
    unwritten=f"""
        SELECT thread_id, {_USER} FROM checkpoints AS newest
        WHERE checkpoint_ns = '' AND thread_id > :after AND INSTR(checkpoint, CAST('has_unwritten' AS BLOB)) > 0
            AND checkpoint_id =
                (SELECT MAX(checkpoint_id) FROM checkpoints WHERE thread_id = newest.thread_id AND checkpoint_ns = '')
        ORDER BY thread_id LIMIT :limit""",
    saying=_SAYING,
    among="IN (SELECT value FROM json_each(:{}))",
    listed=json.dumps,
)
_INDEXES = (
    # Metadata lies behind each row's state: finding a run without an index would read the whole file.
    f"CREATE INDEX IF NOT EXISTS checkpoints_by_run ON checkpoints ({_SQL.said('run_id')})",
    f"CREATE INDEX IF NOT EXISTS checkpoints_by_user ON checkpoints ({_USER}, thread_id)",
    "CREATE INDEX IF NOT EXISTS checkpoints_by_parent ON checkpoints (thread_id, checkpoint_ns, parent_checkpoint_id)",
)


class DurableSqliteSaver(DurableSaver, AsyncSqliteSaver):
    """An `AsyncSqliteSaver` that can also roll a run back and copy a thread; what it reads waits for no writer."""

    sql = _SQL

    def __init__(self, file: SqliteFile) -> None:
        super().__init__(file.writer, serde=JsonPlusSerializer(allowed_msgpack_modules=CHECKPOINTED_TYPES))
        self._file, self._beginning, self._saving = file, {}, set()
        self._reading, self._writing = asyncio.Lock(), asyncio.Lock()

    async def setup(self) -> None:
        """Create tables and indexes that are missing."""
        if not self.is_setup:
            await super().setup()
            for statement in (CREATE, *_INDEXES):
                await self.conn.execute(statement)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what delta channels are replayed from."""
        reader = await self._reader()
        return await AsyncSqliteSaver.aget_delta_channel_history(reader, config=config, channels=channels)

    async def _reader(self) -> Self:
        reader = copy.copy(self)
        reader.conn, reader.lock = self._file.reader, self._reading
        return reader

    @asynccontextmanager
    async def _transaction(
        self,
        *,
        shares: Sequence[str] = (),  # noqa: ARG002 - one file, one writer
        owns: Sequence[str] = (),  # noqa: ARG002
    ) -> AsyncIterator[tuple[Self, Execute]]:
        has_deleted = False

        async def execute(statement: str, **values: object) -> list[Any]:
            nonlocal has_deleted
            has_deleted = has_deleted or statement.startswith("DELETE")
            async with self.conn.execute(statement, values) as cursor:
                return list(await cursor.fetchall())

        async with self._writing, file_transaction(self.conn):
            yield self, execute
        if has_deleted:
            self._file.has_deleted.set()


@asynccontextmanager
async def open_checkpointer(path: Path | str) -> AsyncIterator[DurableSqliteSaver]:
    """Open the checkpoints in a SQLite file, creating the file and its folder; bound to the running event loop.

    A deletion takes nothing out of memory: a program that deletes a thread calls `memory.aerase_thread` too.
    """
    async with open_file(path) as file:
        saver = DurableSqliteSaver(file)
        await saver.setup()
        yield saver


def checkpoints_in(path: Path) -> Checkpoints:
    """Return the checkpoints in a file; where there is no such file, there are none."""

    def read(query: str, values: dict[str, object]) -> list[Any]:
        if not path.exists():
            return []
        # A connection of its own that cannot write: the server's may hold a transaction for seconds.
        there = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(there, uri=True, timeout=BUSY_SECONDS)) as connection:
            return connection.execute(query, values).fetchall()

    return Checkpoints(_SQL, lambda query, values: asyncio.to_thread(read, query, values))
