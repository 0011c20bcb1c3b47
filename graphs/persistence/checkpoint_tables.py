"""What a Postgres of the checkpoints knows that the server may not; `checkpoint_file.py` says the same of a file."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from graphs.persistence.postgres import CONNECT_SECONDS
from graphs.persistence.postgres_saver import USER_OF_CHECKPOINT

_IS_THERE: Final = "SELECT to_regclass('checkpoint_writes') IS NOT NULL"  # which is made after the other two
_HAS_EARLY: Final = "SELECT to_regclass('palimpsest_early_writes') IS NOT NULL"  # a server's own tables are without
_OF_USERS: Final = f"SELECT thread_id FROM checkpoints WHERE {USER_OF_CHECKPOINT} = ANY(%(users)s)"
_EARLY_OF_USERS: Final = "SELECT thread_id FROM palimpsest_early_writes WHERE user_id = ANY(%(users)s)"
_OF_NO_OTHER: Final = f"""
    SELECT DISTINCT thread_id FROM ({{theirs}}) AS theirs WHERE NOT EXISTS (
        SELECT 1 FROM checkpoints AS other WHERE other.thread_id = theirs.thread_id
        AND NOT {USER_OF_CHECKPOINT.replace("metadata", "other.metadata")} = ANY(%(users)s))"""
# MessagePack keeps strings as they are, so that the name of a key can be looked for without reading what it is in.
_UNWRITTEN: Final = f"""
    SELECT newest.thread_id, {USER_OF_CHECKPOINT.replace("metadata", "newest.metadata")} FROM (
        SELECT DISTINCT ON (thread_id) thread_id, checkpoint, metadata FROM checkpoints
        WHERE checkpoint_ns = '' AND thread_id > %s ORDER BY thread_id, checkpoint_id DESC) AS newest
    WHERE EXISTS (
        SELECT 1 FROM checkpoint_blobs AS b
        WHERE b.thread_id = newest.thread_id AND b.checkpoint_ns = ''
        AND b.version = newest.checkpoint -> 'channel_versions' ->> b.channel
        AND position(convert_to('has_unwritten', 'UTF8') IN b.blob) > 0)
    ORDER BY newest.thread_id LIMIT %s"""


@dataclass(frozen=True, slots=True)
class CheckpointTables:
    """The checkpoints as they are in a database; where there are no tables yet, it knows of none.

    Attributes:
        uri: The database.
    """

    uri: str

    async def threads_of(self, user_ids: Collection[str]) -> list[str]:
        """Return the ids of the threads in which nobody but these users has saved; no user is the empty id."""
        has_early = await self._read(_HAS_EARLY)
        theirs = f"{_OF_USERS} UNION {_EARLY_OF_USERS}" if has_early and has_early[0][0] else _OF_USERS
        found = await self._read(_OF_NO_OTHER.format(theirs=theirs), {"users": list(user_ids)})
        return [str(thread_id) for (thread_id,) in found]

    async def unwritten(self, limit: int, after: str = "") -> list[tuple[str, str]]:
        """Return the threads, each with its user, whose newest state may name turns that are not written down yet.

        Args:
            limit: So many at most, in the order of their ids.
            after: Only threads whose ids come behind this one.
        """
        return [(str(thread), str(user)) for thread, user in await self._read(_UNWRITTEN, (after, limit))]

    async def _read(self, query: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        # A connection of its own: those of the pool are for turns.
        async with await AsyncConnection.connect(
            self.uri, autocommit=True, row_factory=tuple_row, connect_timeout=CONNECT_SECONDS
        ) as connection:
            there = await (await connection.execute(_IS_THERE)).fetchone()
            return await (await connection.execute(query, parameters)).fetchall() if there and there[0] else []
