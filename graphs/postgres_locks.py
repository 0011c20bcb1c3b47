"""Names that one process at a time has: advisory locks of the deployment's Postgres."""

import threading
from collections import Counter
from typing import Any, Final

from psycopg import ClientCursor, Connection, Error

_CLASS: Final = 0x50414D  # apart from the locks of threads
_NAME: Final = f"{_CLASS}, hashtext(%s)"
_TAKE: Final = f"SELECT pg_try_advisory_lock({_NAME})"
_GIVE_BACK: Final = f"SELECT pg_advisory_unlock({_NAME})"
BEGIN_ALONE: Final = """
    BEGIN;
    SELECT set_config(name, wanted, true) FROM (VALUES
        ('statement_timeout', '10s'), ('idle_in_transaction_session_timeout', '0'), ('transaction_timeout', '0'),
        ('tcp_keepalives_idle', '30'), ('tcp_keepalives_interval', '10'), ('tcp_keepalives_count', '3')
    ) AS settings (name, wanted) WHERE current_setting(name, true) IS NOT NULL"""
"""Begins a transaction that nothing of the server's may end; a machine that is gone is noticed in a minute.

It is one message: a server that ends transactions which idle, however soon, has no moment for it in between.
"""
_OPTIONS: Final[dict[str, Any]] = {
    "autocommit": True,
    # Statements are sent whole: a prepared one is unknown to the session that a pooler lends next, and one with
    # parameters stays until the next one, with what keeps vacuum away.
    "cursor_factory": ClientCursor,
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "palimpsest locks",
}


class PostgresLocks:
    """The names that this process has: locks of one connection, which is open while it has any.

    The locks belong to the session, and end with it however the process ends. They are taken in a transaction that
    reads and writes nothing: a pooler such as PgBouncer, which lends a session for one transaction, keeps this one
    apart, and no lock is left in a session that goes to somebody else. Such a transaction holds up no vacuum.

    A connection that breaks takes its locks along, and what works under them is not told: then leases on entries do
    what they can.

    Args:
        uri: The database.
    """

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._connection: Connection[Any] | None = None
        self._held: Counter[str] = Counter()
        self._asking = threading.Lock()

    def take(self, name: str) -> bool:
        """Have a name, and say whether this process has it now; one that it has already may be taken again.

        Raises:
            psycopg.Error: If the database does not answer.
        """
        with self._asking:
            try:
                if name not in self._held and not self._locked(name):
                    self._close_if_idle()
                    return False
            except BaseException:  # whether it was taken nobody knows: the end of the session gives it back
                self._close()
                raise
            self._held[name] += 1
            return True

    def _locked(self, name: str) -> bool:
        if self._connection is None:
            self._connection = Connection.connect(self._uri, **_OPTIONS)
            self._connection.execute(BEGIN_ALONE)
        row = self._connection.execute(_TAKE, (name,)).fetchone()
        return bool(row and row[0])

    def give_back(self, name: str) -> None:
        """Give a name back, as often as it was taken; one that went with its connection is free already."""
        with self._asking:
            if self._connection is None or name not in self._held:
                return
            self._held[name] -= 1
            if self._held[name] == 0:
                del self._held[name]
                try:
                    self._connection.execute(_GIVE_BACK, (name,))
                except Error:
                    self._close()
            self._close_if_idle()

    def close(self) -> None:
        """Give all names back; what still works under them has its leases."""
        with self._asking:
            self._close()

    def _close_if_idle(self) -> None:
        if not self._held:
            self._close()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        self._held.clear()
        if connection is not None:
            connection.close()
