"""One Postgres as saver and store need it: a pool of connections, tables made once, clear errors where it is away."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from psycopg import AsyncClientCursor, AsyncConnection, AsyncCursor, Error, InternalError, OperationalError
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import LockNotAvailable
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Literal
from psycopg_pool import AsyncConnectionPool

from memory.door import MemoryBusy

Connection = AsyncConnection[DictRow]
Pool = AsyncConnectionPool[Connection]

CONNECT_SECONDS: Final = 10
"""How long a server may take to accept a connection."""
_POOL_SECONDS: Final = 10.0  # how long work waits for a connection that is free
_IDLE_SECONDS: Final = 300.0
# By default a pool tries for 5 minutes, at intervals that double: a database that is back would be missed for up to 2.
# A pool gives up connecting after so many seconds; the next call starts anew, without a pause.
_RECONNECT_SECONDS: Final = 5.0
_CLOSE_SECONDS: Final = 5.0
_TURN_SECONDS: Final = 0.1

_MIGRATION_LOCK: Final = 0x50414C_494D5053  # "PALIMPS": nobody else's lock
_TRY: Final = f"SELECT pg_try_advisory_xact_lock({_MIGRATION_LOCK}) AS taken"
# Statements take milliseconds: one that hangs must not keep its connection, nor a process that is halted, or a machine
# that is gone, the locks of what it saved. A limit that the operator has set, for the role or in the URI, stays.
_LIMIT: Final = """
    SELECT set_config(name, wanted, false) FROM (VALUES ('statement_timeout', '30s'),
        ('idle_in_transaction_session_timeout', '30s'), ('transaction_timeout', '60s')) AS settings (name, wanted)
        WHERE current_setting(name, true) = '0'"""


# All in one message. The snapshot of the first statement must be younger than the lock: in a database whose default is
# "repeatable read", a statement that waits for the lock has its snapshot already. And a server with a short limit for
# idle transactions finds none idle between two messages.
_BEGIN: Final = """
    BEGIN ISOLATION LEVEL READ COMMITTED;
    SELECT set_config(name, wanted, true) FROM (VALUES {}) AS settings (name, wanted)
        WHERE current_setting(name, true) IS NOT NULL"""
# `psycopg` ends a pipeline with a message behind which Postgres counts no idle time: where a process is stopped in a
# transaction, since Postgres 17 the last of these ends it.
_BEGIN_ALONE: Final = _BEGIN.format("""
    ('lock_timeout', '15s'), ('statement_timeout', '30s'), ('idle_in_transaction_session_timeout', '30s'),
    ('transaction_timeout', '60s')""")
# Nothing of the server's may end it, and a machine that is gone is noticed in a minute.
_BEGIN_MIGRATION: Final = _BEGIN.format("""
    ('statement_timeout', '10s'), ('idle_in_transaction_session_timeout', '0'), ('transaction_timeout', '0'),
    ('tcp_keepalives_idle', '30'), ('tcp_keepalives_interval', '10'), ('tcp_keepalives_count', '3')""")
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended({}, 0))"


class DatabaseAway(ConnectionError):
    """The configured database cannot be used; the message says which one, and what to do, and holds no password."""


@asynccontextmanager
async def open_pool(uri: str, connections: int, **options: Any) -> AsyncIterator[Pool]:
    """Open a pool of connections to a database, for the running event loop.

    A connection is tried before it is handed out: after a restart of the database, none that died is used. Behind a
    pooler such as PgBouncer statements are not prepared, and have no limit of time but the role's.

    Args:
        uri: `postgresql://user:password@host:port/name`.
        connections: So many connections at most.
        options: What else a connection is made with.

    Raises:
        DatabaseAway: If it does not answer within `CONNECT_SECONDS`, or refuses.
    """
    pool: Pool = AsyncConnectionPool(
        uri,
        kwargs={**_OPTIONS, **options},
        min_size=1,
        max_size=connections,
        max_idle=_IDLE_SECONDS,
        timeout=_POOL_SECONDS,
        reconnect_timeout=_RECONNECT_SECONDS,
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
async def pool_transaction(
    pool: Pool, *, pipelined: bool = False, locks: Sequence[str] = ()
) -> AsyncIterator[tuple[Connection, AsyncCursor[DictRow]]]:
    """Begin a transaction on a connection of its own; yield both that and a cursor as LangGraph's queries want it.

    Args:
        pool: Where the connection comes from.
        pipelined: Whether statements are sent without waiting for those before; the client's library must know how.
        locks: Names that one transaction has at a time, from its beginning to its end; they are taken in this order.

    Raises:
        MemoryBusy: If others have the name for 15 seconds.
        DatabaseAway: If the database does not answer, or stops answering; whether it has committed nobody knows then.
            Or if it fails: by a deadlock, a limit of time, a full disk.
    """
    try:
        async with pool.connection() as connection, AsyncExitStack() as stack:
            if pipelined:
                await stack.enter_async_context(connection.pipeline())
            await stack.enter_async_context(_locked(connection, locks) if locks else connection.transaction())
            yield connection, await stack.enter_async_context(connection.cursor(binary=True, row_factory=dict_row))
    except LockNotAvailable as error:
        raise MemoryBusy from error
    except (OperationalError, InternalError) as error:
        raise DatabaseAway(f"the database {place_of(str(pool.conninfo))} is away: {_on_one_line(error)}") from error


@asynccontextmanager
async def _locked(connection: Connection, names: Sequence[str]) -> AsyncIterator[None]:
    begin = [SQL(_BEGIN_ALONE), *(SQL(_LOCK).format(Literal(name)) for name in names)]
    try:
        await AsyncClientCursor(connection).execute(SQL("; ").join(begin))
        yield
        await connection.execute("COMMIT")
    except BaseException:
        if not connection.closed:
            await connection.execute("ROLLBACK")
        raise


async def migrated(uri: str, migrate: Callable[[Connection], Awaitable[None]]) -> None:
    """Make or bring up to date what tables are needed; of processes that start at once, one after another.

    Args:
        uri: The database.
        migrate: Does it, on a connection without a limit of time; what is there already is left alone.

    Raises:
        DatabaseAway: If the database does not answer, or does not let its tables be made.
    """
    try:
        async with (
            await AsyncConnection.connect(uri, **_OPTIONS, cursor_factory=AsyncClientCursor) as turn,
            await AsyncConnection.connect(uri, **_OPTIONS) as connection,
        ):
            if not await _is_pooled(connection):
                await connection.execute("SET statement_timeout = 0")
            # The lock is polled, not waited for: `CREATE INDEX CONCURRENTLY` of the process that has it would wait for
            # a waiting statement. No transaction stays open between two tries: a pooler would keep a session for it.
            # The transaction that has the lock ends with its connection.
            while True:
                await turn.execute(_BEGIN_MIGRATION)
                row = await (await turn.execute(_TRY)).fetchone()
                if row and row["taken"]:
                    break
                await turn.execute("ROLLBACK")
                await asyncio.sleep(_TURN_SECONDS)
            await migrate(connection)
    except Error as error:
        is_away = isinstance(error, OperationalError)
        advice = "start it, or correct DATABASE_URI" if is_away else "see that its user may make tables"
        said = f"the database {place_of(uri)} cannot be used: {_on_one_line(error)}; {advice}"
        raise DatabaseAway(said) from error


async def _configure(connection: Connection) -> None:
    if not await _is_pooled(connection):
        await connection.execute(_LIMIT)


async def _is_pooled(connection: Connection) -> bool:
    """Say whether a pooler stands before the database; then what is prepared or set may meet another session."""
    row = await (await connection.execute("SELECT pg_backend_pid() AS pid", prepare=False)).fetchone()
    # A pooler makes up the number that it tells whoever connects: it stands for no session.
    is_pooled = row is None or row["pid"] != connection.info.backend_pid
    if is_pooled:
        connection.prepare_threshold = None
    return is_pooled


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


def _on_one_line(error: Error) -> str:
    return " ".join(str(error).split())
