"""Old checkpoints of a thread on Postgres: they go with what only they use, and delta channels keep what they need."""

from collections.abc import Iterable
from typing import NamedTuple

from psycopg import AsyncCursor
from psycopg.rows import DictRow

_DELTA_CHILDREN = """
    SELECT checkpoint_id, parent_checkpoint_id, metadata -> 'counters_since_delta_snapshot' AS counters
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


class Key(NamedTuple):
    """One checkpoint's primary key."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str


async def remove(cursor: AsyncCursor[DictRow], doomed: set[Key]) -> None:
    """Delete checkpoints with what only they use, except those that a surviving delta channel is replayed from."""
    spared = [key for survivor in doomed for key in await _replayed_through(cursor, survivor, doomed)]
    going = doomed.difference(spared)
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


async def _replayed_through(cursor: AsyncCursor[DictRow], parent: Key, doomed: set[Key]) -> list[Key]:
    """Return the ancestors, from `parent` up, that a child outside `doomed` needs for its delta channels."""
    await cursor.execute(_DELTA_CHILDREN, parent)
    return [
        ancestor
        for child in await cursor.fetchall()
        if parent._replace(checkpoint_id=child["checkpoint_id"]) not in doomed
        for ancestor in await _chain(cursor, parent, set(child["counters"]))
    ]


async def _chain(cursor: AsyncCursor[DictRow], start: Key, channels: set[str]) -> list[Key]:
    """Return the checkpoints from `start` up to the one where the last of the channels has a stored value."""
    chain: list[Key] = []
    following: str | None = start.checkpoint_id
    while channels and following:
        key = start._replace(checkpoint_id=following)
        await cursor.execute(_STORED, key)
        row = await cursor.fetchone()
        if row is None:
            break
        chain.append(key)
        channels = channels.difference(row["stored"])
        following = row["parent_checkpoint_id"]
    return chain
