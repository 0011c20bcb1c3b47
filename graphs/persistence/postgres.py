"""One Postgres as saver and store need it: a pool of connections, tables made once, clear errors where it is away."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from psycopg import AsyncConnection, AsyncCursor, Error, OperationalError
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool

logger = logging.getLogger(__name__)

Connection = AsyncConnection[DictRow]
Pool = AsyncConnectionPool[Connection]

CONNECT_SECONDS: Final = 10
"""How long a server may take to accept a connection."""
_POOL_SECONDS: Final = 10.0  # how long work waits for a connection that is free
_STATEMENT_SECONDS: Final = 30  # theirs are a few milliseconds long; one that hangs must not keep its connection
_IDLE_SECONDS: Final = 300.0
_CLOSE_SECONDS: Final = 5.0
_TURN_SECONDS: Final = 0.1

_MIGRATION_LOCK: Final = 0x50414C_494D5053  # "PALIMPS": nobody else's lock
_TRY: Final = "SELECT pg_try_advisory_lock(%s) AS taken"
_RELEASE: Final = "SELECT pg_advisory_unlock(%s)"
# A limit that the operator has set, for the role or in the URI, stays.
_LIMIT: Final = "SELECT set_config('statement_timeout', %s, false) WHERE current_setting('statement_timeout') = '0'"


class DatabaseAway(ConnectionError):
    """The configured database cannot be used; the message says which one, and what to do, and holds no password."""


@asynccontextmanager
async def open_pool(uri: str, connections: int) -> AsyncIterator[Pool]:
    """Open a pool of connections to a database, for the running event loop.

    A connection is tried before it is handed out: after a restart of the database, none that died is used.

    Args:
        uri: `postgresql://user:password@host:port/name`.
        connections: So many connections at most.

    Raises:
        DatabaseAway: If it does not answer within `CONNECT_SECONDS`, or refuses.
    """
    pool: Pool = AsyncConnectionPool(
        uri,
        kwargs=_OPTIONS,
        min_size=1,
        max_size=connections,
        max_idle=_IDLE_SECONDS,
        timeout=_POOL_SECONDS,
        configure=_configure,
        check=AsyncConnectionPool.check_connection,
        name="palimpsest",
        open=False,
    )
    try:
        await pool.open()
        yield pool
    finally:
        await pool.close(_CLOSE_SECONDS)


@asynccontextmanager
async def transaction(pool: Pool, *, pipelined: bool) -> AsyncIterator[tuple[Connection, AsyncCursor[DictRow]]]:
    """Begin a transaction on a connection of its own; yield both that and a cursor as LangGraph's queries want it.

    Args:
        pool: Where the connection comes from.
        pipelined: Whether statements are sent without waiting for those before; the client's library must know how.
    """
    async with pool.connection() as connection, AsyncExitStack() as stack:
        if pipelined:
            await stack.enter_async_context(connection.pipeline())
        await stack.enter_async_context(connection.transaction())
        yield connection, await stack.enter_async_context(connection.cursor(binary=True, row_factory=dict_row))


async def migrated(uri: str, migrate: Callable[[Connection], Awaitable[None]]) -> None:
    """Make or bring up to date what tables are needed; of processes that start at once, one after another.

    Args:
        uri: The database.
        migrate: Does it, on a connection without a limit of time; what is there already is left alone.

    Raises:
        DatabaseAway: If the database does not answer, or does not let its tables be made.
    """
    try:
        async with await AsyncConnection.connect(uri, **_OPTIONS) as connection:
            await connection.execute("SET statement_timeout = 0")
            await _take_turn(connection)
            try:
                await migrate(connection)
            finally:
                await connection.execute(_RELEASE, (_MIGRATION_LOCK,))
    except Error as error:
        raise DatabaseAway(_said(uri, error)) from error


async def _take_turn(connection: Connection) -> None:
    # Tried again and again: a statement that waits for the lock is one that `CREATE INDEX CONCURRENTLY` of the process
    # that has it would wait for.
    taken = False
    while not taken:
        row = await (await connection.execute(_TRY, (_MIGRATION_LOCK,))).fetchone()
        taken = bool(row and row["taken"])
        await asyncio.sleep(0 if taken else _TURN_SECONDS)


async def _configure(connection: Connection) -> None:
    await connection.execute(_LIMIT, (f"{_STATEMENT_SECONDS}s",))


_OPTIONS: Final[dict[str, Any]] = {
    "autocommit": True,
    "prepare_threshold": 0,
    "row_factory": dict_row,
    "connect_timeout": CONNECT_SECONDS,
    "application_name": "palimpsest",
}


def place_of(uri: str) -> str:
    """Return which database a URI names, as a person would say it, without user and password."""
    said = conninfo_to_dict(uri)
    host, port = said.get("host") or "this machine", said.get("port")
    return f"{said.get('dbname') or said.get('user') or 'postgres'} on {host}{f':{port}' if port else ''}"


def _said(uri: str, error: Error) -> str:
    reason = " ".join(str(error).split())
    advice = (
        "start it, or correct DATABASE_URI"
        if isinstance(error, OperationalError)
        else "see that its user may make tables"
    )
    return f"the database {place_of(uri)} cannot be used: {reason}; {advice}"
