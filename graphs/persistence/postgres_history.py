"""Old checkpoints of a thread on Postgres: they go with what only they use, and delta channels keep what they need."""

from collections.abc import Iterable

from psycopg import AsyncCursor
from psycopg.rows import DictRow

from graphs.persistence.durable_saver import CheckpointKey, removable

_DELTA_CHILDREN = """
    SELECT checkpoint_id, metadata -> 'counters_since_delta_snapshot' AS counters
    FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s AND parent_checkpoint_id = %s
    AND jsonb_typeof(metadata -> 'counters_since_delta_snapshot') = 'object'"""
# Small values stand in the checkpoint itself, the others beside it under the version of their channel.
_STORED = """
    SELECT parent_checkpoint_id, ARRAY(
        SELECT v.key FROM jsonb_each_text(c.checkpoint -> 'channel_versions') AS v
        WHERE jsonb_typeof(c.checkpoint -> 'channel_values' -> v.key) <> 'null' OR EXISTS (
            SELECT 1 FROM checkpoint_blobs AS b
            WHERE b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns
            AND b.channel = v.key AND b.version = v.value AND b.type <> 'empty')) AS stored
    FROM checkpoints AS c WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s"""
_DELETE_WRITES = "DELETE FROM checkpoint_writes WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = ANY(%s)"
_DELETE = """
    DELETE FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = ANY(%s)
    RETURNING checkpoint -> 'channel_versions' AS versions"""
_VERSIONS = """
    SELECT checkpoint -> 'channel_versions' AS versions FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s"""
_DELETE_BLOB = """
    DELETE FROM checkpoint_blobs WHERE thread_id = %s AND checkpoint_ns = %s AND channel = %s AND version = %s"""


async def remove(cursor: AsyncCursor[DictRow], doomed: set[CheckpointKey]) -> None:
    """Delete checkpoints with what only they use, except those that a surviving delta channel is replayed from."""

    async def children(parent: CheckpointKey) -> list[tuple[str, set[str]]]:
        await cursor.execute(_DELTA_CHILDREN, parent)
        return [(row["checkpoint_id"], set(row["counters"])) for row in await cursor.fetchall()]

    async def stored(key: CheckpointKey) -> tuple[str | None, set[str]] | None:
        await cursor.execute(_STORED, key)
        row = await cursor.fetchone()
        return (row["parent_checkpoint_id"], set(row["stored"])) if row else None

    going = await removable(doomed, children, stored)
    for place in sorted({key[:2] for key in going}):
        ids = sorted(key.checkpoint_id for key in going if key[:2] == place)
        await cursor.execute(_DELETE_WRITES, (*place, ids))
        await cursor.execute(_DELETE, (*place, ids))
        freed = _versions(await cursor.fetchall())
        await cursor.execute(_VERSIONS, place)
        for channel, version in sorted(freed - _versions(await cursor.fetchall())):
            await cursor.execute(_DELETE_BLOB, (*place, channel, version))


def _versions(rows: Iterable[DictRow]) -> set[tuple[str, str]]:
    return {(channel, str(version)) for row in rows for channel, version in (row["versions"] or {}).items()}
