"""PgBouncer lends a session of Postgres for one transaction: what is prepared, set or locked meets another session."""

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from langgraph.store.base import GetOp, PutOp

from tests.pooler import SESSIONS, running_pooler
from tests.postgres import Postgres
from tests.saver_graphs import echo_graph, say, texts

pytest.importorskip("psycopg")
SECONDS = 120
AT_ONCE = 3 * SESSIONS
LOCKS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database \
    WHERE datname = current_database())"


class Pooled(NamedTuple):
    """An empty database: directly, and through the pooler."""

    postgres: Postgres
    direct: str
    pooled: str

    def says(self, uri: str, query: str) -> Any:
        with self.postgres.connect(uri) as connection:
            return connection.execute(query, prepare=False).fetchone()[0]


@pytest.fixture(scope="module")
def pooler(postgres: Postgres) -> Iterator[str]:
    with running_pooler(postgres) as uri:
        yield uri


@pytest.fixture
def database(postgres: Postgres, pooler: str) -> Pooled:
    direct = postgres.database()
    name = direct.partition("?")[0].rpartition("/")[2]
    return Pooled(postgres, direct, pooler.replace("/postgres?", f"/{name}?"))


async def turns(uri: str, thread: str) -> list[str]:
    """Save and store, over and over; return what the thread holds then."""
    from graphs.persistence.postgres_saver import open_postgres_checkpointer
    from graphs.persistence.postgres_store import open_postgres_store

    async with open_postgres_checkpointer(uri, 2) as saver, open_postgres_store(uri, 2) as store:
        graph = echo_graph(saver)
        for n in range(5):
            await say(graph, thread, str(n), str(uuid4()))
            await store.abatch([PutOp(("kept", thread), str(n), {"n": n}), GetOp(("kept", thread), "0")])
        assert sorted(item.value["n"] for item in await store.asearch(("kept", thread))) == list(range(5))
        return await texts(graph, thread)


async def test_processes_that_start_and_work_at_once_share_the_sessions(database: Pooled) -> None:
    async with asyncio.timeout(SECONDS):
        found = await asyncio.gather(*(turns(database.pooled, str(n)) for n in range(AT_ONCE)))
    assert found == [[text for n in range(5) for text in (str(n), f"re: {n}")]] * AT_ONCE
    # A lock that stayed in a session would keep every later process from starting.
    assert database.says(database.direct, LOCKS) == 0


async def test_no_limit_of_ours_is_left_in_a_session_that_another_program_gets(database: Pooled) -> None:
    async with asyncio.timeout(SECONDS):
        await turns(database.pooled, "T")
    limits = {database.says(database.pooled, "SELECT current_setting('statement_timeout')") for _ in range(SESSIONS)}
    assert limits == {"0"}
