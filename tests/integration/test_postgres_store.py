"""The store on Postgres: whole batches, one caller's bad value harms no other, and a database that goes away."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from langgraph.store.base import GetOp, PutOp

from graphs.persistence import checkpointer, store
from graphs.persistence.postgres import place_of
from graphs.persistence.postgres_store import DurablePostgresStore, open_postgres_store
from graphs.settings import Settings
from tests.postgres import Postgres
from tests.stores import refuses_what_expires

SHELF = ("shelf", "ada")


@pytest.fixture
async def opened(database: str) -> AsyncIterator[DurablePostgresStore]:
    async with open_postgres_store(database) as store:
        yield store


async def test_a_value_that_cannot_be_stored_fails_its_own_call_only(opened: DurablePostgresStore) -> None:
    await opened.aput(SHELF, "old", {"n": 0})
    bad, good, read = await asyncio.gather(
        opened.aput(("shelf", "eve"), "bad", {"value": b"bytes"}),
        opened.aput(("shelf", "bob"), "good", {"n": 1}),
        opened.aget(SHELF, "old"),
        return_exceptions=True,
    )
    assert isinstance(bad, Exception)
    assert good is None
    assert read is not None
    assert await opened.aget(("shelf", "eve"), "bad") is None
    assert await opened.aget(("shelf", "bob"), "good") is not None


async def test_a_failing_batch_changes_nothing(opened: DurablePostgresStore, postgres: Postgres, database: str) -> None:
    await opened.aput(SHELF, "kept", {"n": 1})
    with postgres.connect(database) as connection:
        connection.execute("ALTER TABLE palimpsest.store ADD CHECK (key <> 'full')")
    with pytest.raises(psycopg.errors.CheckViolation):
        await opened.abatch(
            [GetOp(SHELF, "kept"), PutOp(SHELF, "kept", None), PutOp(SHELF, "new", {"n": 2}), PutOp(SHELF, "full", {})]
        )
    assert [item.key for item in await opened.asearch(SHELF)] == ["kept"]


async def test_reads_of_a_batch_see_the_state_before_its_writes(opened: DurablePostgresStore) -> None:
    await opened.aput(SHELF, "key", {"n": 1})
    read, _ = await opened.abatch([GetOp(SHELF, "key"), PutOp(SHELF, "key", {"n": 2})])
    assert getattr(read, "value", None) == {"n": 1}
    assert getattr(await opened.aget(SHELF, "key"), "value", None) == {"n": 2}


async def test_batches_go_on_when_their_connections_were_ended(
    opened: DurablePostgresStore, postgres: Postgres, database: str
) -> None:
    """As when the database was started anew."""
    await opened.aput(SHELF, "key", {"n": 1})
    with postgres.connect(database) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'palimpsest' AND pid <> pg_backend_pid()"
        )
    assert getattr(await opened.aget(SHELF, "key"), "value", None) == {"n": 1}


async def test_stores_that_open_at_once_make_the_tables_once(database: str) -> None:
    async def work(n: int) -> None:
        async with open_postgres_store(database, 2) as store:
            await store.aput(SHELF, str(n), {"n": n})

    await asyncio.gather(*(work(n) for n in range(6)))
    async with open_postgres_store(database) as store:
        assert len(await store.asearch(SHELF)) == 6


async def test_no_door_of_the_store_takes_an_item_that_is_to_expire(opened: DurablePostgresStore) -> None:
    await refuses_what_expires(opened)


async def test_the_tables_of_a_server_in_the_same_database_are_left_alone(postgres: Postgres, database: str) -> None:
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE store (prefix text)")
        connection.execute("CREATE TABLE store_migrations (v int)")
    async with open_postgres_store(f"{database}&options=-csearch_path%3Delsewhere", 2) as ours:
        await ours.abatch([PutOp(SHELF, "gone", {"n": 0}), PutOp(SHELF, "key", {"n": 1})])
        await ours.abatch([PutOp(SHELF, "gone", None), GetOp(SHELF, "key")])
        assert [item.key for item in await ours.asearch(SHELF, filter={"n": 1})] == ["key"]
        assert await ours.alist_namespaces(prefix=SHELF) == [SHELF]
        assert getattr(await ours.aget(SHELF, "key", refresh_ttl=True), "value", None) == {"n": 1}
    tables = postgres.tables(database)
    assert tables["store"] == tables["store_migrations"] == b""
    assert b"ada" in tables["palimpsest.store"]


async def test_who_may_make_no_schema_uses_the_one_that_somebody_made(postgres: Postgres, database: str) -> None:
    with postgres.connect(database) as connection:
        connection.execute("CREATE ROLE narrow LOGIN")
        connection.execute("CREATE SCHEMA palimpsest AUTHORIZATION narrow")
    async with open_postgres_store(database.replace("postgres@", "narrow@"), 2) as ours:
        await ours.aput(SHELF, "key", {"n": 1})
    assert b"ada" in postgres.tables(database)["palimpsest.store"]


@pytest.mark.parametrize("keeps_its_own", [False, True])
async def test_the_configured_database_is_what_the_server_is_given(
    database: str, monkeypatch: pytest.MonkeyPatch, keeps_its_own: bool
) -> None:
    settings = Settings(database_uri=database, keeps_its_own=keeps_its_own)
    monkeypatch.setattr("graphs.process.deployment.service_of_process", lambda: _Service(settings))
    async with store() as memory:
        assert type(memory).__name__ == "DurablePostgresStore"
    if not keeps_its_own:
        async with checkpointer() as saver:
            assert type(saver).__name__ == "DurablePostgresSaver"


def test_a_database_is_named_without_user_and_password() -> None:
    assert place_of("postgresql://ada:hunter2@db.example:5433/palimpsest") == "palimpsest on db.example:5433"
    assert place_of("postgresql:///") == "postgres on this machine"


class _Service:
    """What persistence asks of a service."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def bind(self, _: object) -> None:
        """Remember nothing."""
