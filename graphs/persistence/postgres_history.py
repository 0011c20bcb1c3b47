"""Old checkpoints of a thread on Postgres: they go with what only they use."""

from collections.abc import Iterable, Sequence

from psycopg import AsyncCursor
from psycopg.rows import DictRow

from graphs.persistence.durable_saver import GOING

_GOING = GOING.format(of_runs="thread_id = %s AND metadata ->> 'run_id' = ANY(%s)")
_DELETE_WRITES = "DELETE FROM checkpoint_writes WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = ANY(%s)"
_DELETE = """
    DELETE FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = ANY(%s)
    RETURNING checkpoint -> 'channel_versions' AS versions"""
_VERSIONS = """
    SELECT checkpoint -> 'channel_versions' AS versions FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s"""
_DELETE_BLOB = """
    DELETE FROM checkpoint_blobs WHERE thread_id = %s AND checkpoint_ns = %s AND channel = %s AND version = %s"""


async def remove_runs(cursor: AsyncCursor[DictRow], thread_id: str, runs: Sequence[str]) -> None:
    """Delete the checkpoints of runs in a thread with what only they use; those that another run goes on from stay."""
    await cursor.execute(_GOING, (thread_id, runs))
    going = [(row["checkpoint_ns"], row["checkpoint_id"]) for row in await cursor.fetchall()]
    for namespace in sorted({namespace for namespace, _ in going}):
        place = (thread_id, namespace)
        ids = [checkpoint_id for of, checkpoint_id in going if of == namespace]
        await cursor.execute(_DELETE_WRITES, (*place, ids))
        await cursor.execute(_DELETE, (*place, ids))
        freed = _versions(await cursor.fetchall())
        await cursor.execute(_VERSIONS, place)
        for channel, version in sorted(freed - _versions(await cursor.fetchall())):
            await cursor.execute(_DELETE_BLOB, (*place, channel, version))


def _versions(rows: Iterable[DictRow]) -> set[tuple[str, str]]:
    return {(channel, str(version)) for row in rows for channel, version in (row["versions"] or {}).items()}
