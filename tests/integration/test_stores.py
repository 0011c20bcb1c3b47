"""Both stores: whole batches, several processes, one caller's bad value harms no other, a database that goes away."""

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from blockbuster import blockbuster_ctx
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

import graphs.persistence.postgres as postgres_of_ours
from graphs.persistence import checkpointer, store
from graphs.persistence.postgres import DatabaseAway, place_of
from graphs.persistence.postgres_store import DurablePostgresStore, open_postgres_store
from graphs.persistence.sqlite_store import DurableSqliteStore, open_store
from graphs.settings import Settings
from memory.door import arun, scan
from memory.facts.store import FactStore
from memory.namespaces import Owner
from tests.postgres import Postgres
from tests.stores import refuses_what_expires

SHELF = ("shelf", "ada")

UNSTORABLE = [
    pytest.param("\ud800", id="lone surrogate"),
    pytest.param({1, 2}, id="set"),
    pytest.param(b"bytes", id="bytes"),
    pytest.param(object(), id="object"),
]


@pytest.fixture
async def on_disk(tmp_path: Path) -> AsyncIterator[DurableSqliteStore]:
    async with open_store(tmp_path / "new" / "store.sqlite") as store:
        yield store


@pytest.fixture
async def served(database: str) -> AsyncIterator[DurablePostgresStore]:
    async with open_postgres_store(database) as store:
        yield store


@pytest.fixture(params=["on_disk", "served"])
def kept(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def value(item: object) -> object:
    return getattr(item, "value", None)


async def fails_alone(kept: Any, bad: object) -> None:
    await kept.aput(SHELF, "old", {"n": 0})
    made: Any = await asyncio.gather(
        kept.aput(("shelf", "eve"), "bad", {"value": bad}),
        kept.aput(("shelf", "bob"), "good", {"n": 1}),
        kept.aget(SHELF, "old"),
        kept.asearch(SHELF),
        return_exceptions=True,
    )
    failed, good, read, found = made
    assert isinstance(failed, Exception)
    assert good is None
    assert value(read) == {"n": 0}
    assert [item.key for item in found] == ["old"]
    assert value(await kept.aget(("shelf", "bob"), "good")) == {"n": 1}
    assert await kept.aget(("shelf", "eve"), "bad") is None


@pytest.mark.parametrize("bad", UNSTORABLE)
async def test_a_value_that_cannot_be_stored_fails_its_own_call_only(kept: Any, bad: object) -> None:
    await fails_alone(kept, bad)


async def test_a_number_beyond_64_bits_which_postgres_keeps_fails_its_own_call_only(
    on_disk: DurableSqliteStore,
) -> None:
    await fails_alone(on_disk, 2**70)


async def test_reads_of_a_batch_see_the_state_before_its_writes(kept: Any) -> None:
    await kept.aput(SHELF, "key", {"n": 1})
    before, found, spaces, _ = await kept.abatch(
        [GetOp(SHELF, "key"), SearchOp(SHELF), ListNamespacesOp(), PutOp(SHELF, "key", {"n": 2})]
    )
    assert value(before) == {"n": 1}
    assert [item.key for item in found] == ["key"]
    assert spaces == [SHELF]
    assert value(await kept.aget(SHELF, "key")) == {"n": 2}


async def test_an_error_of_the_database_rolls_the_batch_back(on_disk: DurableSqliteStore) -> None:
    await on_disk.aput(SHELF, "kept", {"n": 1})
    await on_disk.conn.execute(
        "CREATE TRIGGER full BEFORE INSERT ON store WHEN NEW.key = 'new' BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    )
    full, unfit = PutOp(SHELF, "new", {"n": 2}), PutOp(SHELF, "bad", {"value": b"bytes"})
    for bad, error in ((full, "disk full"), (unfit, "bytes")):
        with pytest.raises(Exception, match=error):
            await on_disk.abatch([PutOp(SHELF, "kept", None), PutOp(SHELF, "another", {"n": 2}), bad])
        assert [item.key for item in await on_disk.asearch(SHELF)] == ["kept"]


@pytest.mark.parametrize(
    "search",
    [
        pytest.param({"filter": {"x'; DROP TABLE store; --": 1}}, id="filter key"),
        pytest.param({"filter": {"name": {"$near": 1}}}, id="filter operator"),
        pytest.param({"limit": "ten"}, id="limit"),
    ],
)
async def test_a_search_that_makes_no_sense_fails_alone(on_disk: DurableSqliteStore, search: dict[str, object]) -> None:
    bad, good = await asyncio.gather(
        on_disk.asearch(SHELF, **search),  # type: ignore[arg-type]  # what an HTTP client may send
        on_disk.aput(SHELF, "key", {"n": 1}),
        return_exceptions=True,
    )

    assert isinstance(bad, Exception)
    assert good is None
    assert [item.value for item in await on_disk.asearch(SHELF)] == [{"n": 1}]


async def test_it_needs_no_loadable_extension(on_disk: DurableSqliteStore) -> None:
    """A search by meaning without vectors returns the items: choosing among them is recall's work."""
    await on_disk.aput(SHELF, "key", {"text": "Lives in Bergen"})

    assert [item.key for item in await on_disk.asearch(SHELF, query="where?", limit=5)] == ["key"]
    async with on_disk.conn.execute("SELECT COUNT(*) FROM sqlite_master WHERE name LIKE '%vector%'") as cursor:
        assert await cursor.fetchone() == (0,)


async def test_what_is_no_number_is_stored_as_null(on_disk: DurableSqliteStore) -> None:
    """SQLite's JSON knows no NaN: whoever stores one must refuse it before, as `memory.text` does."""
    await on_disk.aput(SHELF, "key", {"n": math.nan})

    item = await on_disk.aget(SHELF, "key")
    assert item
    assert item.value == {"n": None}


async def test_nothing_blocks_the_event_loop(tmp_path: Path) -> None:
    with blockbuster_ctx():
        async with open_store(tmp_path / "a" / "b" / "store.sqlite") as store:
            await store.aput(SHELF, "key", {"n": 1})
            assert await store.aget(SHELF, "key")
            assert await store.alist_namespaces(suffix=("ada",)) == [SHELF]
            await store.adelete(SHELF, "key")
            assert await store.asearch(SHELF) == []


async def test_a_failing_batch_changes_nothing(served: DurablePostgresStore, postgres: Postgres, database: str) -> None:
    await served.aput(SHELF, "kept", {"n": 1})
    with postgres.connect(database) as connection:
        connection.execute("ALTER TABLE palimpsest.store ADD CHECK (key <> 'full')")
    with pytest.raises(psycopg.errors.CheckViolation):
        await served.abatch(
            [GetOp(SHELF, "kept"), PutOp(SHELF, "kept", None), PutOp(SHELF, "new", {"n": 2}), PutOp(SHELF, "full", {})]
        )
    assert [item.key for item in await served.asearch(SHELF)] == ["kept"]


@pytest.mark.parametrize("code", ["53100", "40P01", "57014", "25006", "40001"])
async def test_a_database_that_fails_is_told_as_one_that_is_away(
    served: DurablePostgresStore, postgres: Postgres, database: str, code: str
) -> None:
    """A full disk, a deadlock, a limit of time, a standby, a conflict: whoever repeats it may succeed."""
    with postgres.connect(database) as connection:
        connection.execute(
            f"CREATE FUNCTION fails() RETURNS trigger AS $$ BEGIN RAISE SQLSTATE '{code}'; END $$ LANGUAGE plpgsql; "
            "CREATE TRIGGER fails BEFORE INSERT ON palimpsest.store FOR EACH ROW EXECUTE FUNCTION fails()"
        )
    with pytest.raises(DatabaseAway):
        await FactStore(served, "ada").acreate("Likes figs", "preference", 0.5)
    assert await FactStore(served, "ada").alist() == []


async def test_a_task_that_begins_within_a_write_has_no_part_in_it(served: DurablePostgresStore) -> None:
    async with served.writing("ada") as batch:
        await batch([PutOp(SHELF, "key", {"n": 1})])
        assert await asyncio.create_task(served.aget(SHELF, "key")) is None
    assert value(await served.aget(SHELF, "key")) == {"n": 1}


async def test_a_process_that_is_stopped_while_it_writes_holds_its_user_for_a_minute_at_most(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_of_ours, "_LIMIT", "SELECT 1")  # as behind a pooler
    monkeypatch.setattr(postgres_of_ours, "_BEGIN_ALONE", postgres_of_ours._BEGIN_ALONE.replace("60s", "1s"))

    async with open_postgres_store(database) as ours:

        async def write_while_another_process_has_its_turn() -> None:
            async with ours.writing("ada") as batch:
                monkeypatch.undo()
                await batch([PutOp(SHELF, "key", {"n": 1})])
                async with postgres_of_ours.pool_transaction(ours.pool, locks=["palimpsest.ada"]):
                    pass

        with pytest.raises(DatabaseAway):
            await write_while_another_process_has_its_turn()
        assert await ours.aget(SHELF, "key") is None


async def test_batches_go_on_when_their_connections_were_ended(
    served: DurablePostgresStore, postgres: Postgres, database: str
) -> None:
    """As when the database was started anew."""
    await served.aput(SHELF, "key", {"n": 1})
    with postgres.connect(database) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'palimpsest' AND pid <> pg_backend_pid()"
        )
    assert value(await served.aget(SHELF, "key")) == {"n": 1}


async def test_stores_that_open_at_once_make_the_tables_once(database: str) -> None:
    async def work(n: int) -> None:
        async with open_postgres_store(database, 2) as store:
            await store.aput(SHELF, str(n), {"n": n})

    await asyncio.gather(*(work(n) for n in range(6)))
    async with open_postgres_store(database) as store:
        assert len(await store.asearch(SHELF)) == 6


async def test_no_door_of_the_store_takes_an_item_that_is_to_expire(served: DurablePostgresStore) -> None:
    await refuses_what_expires(served)


async def test_the_tables_of_a_server_in_the_same_database_are_left_alone(postgres: Postgres, database: str) -> None:
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE store (prefix text)")
        connection.execute("CREATE TABLE store_migrations (v int)")
    async with open_postgres_store(f"{database}&options=-csearch_path%3Delsewhere", 2) as ours:
        await ours.abatch([PutOp(SHELF, "gone", {"n": 0}), PutOp(SHELF, "key", {"n": 1})])
        await ours.abatch([PutOp(SHELF, "gone", None), GetOp(SHELF, "key")])
        assert [item.key for item in await ours.asearch(SHELF, filter={"n": 1})] == ["key"]
        assert await ours.alist_namespaces(prefix=SHELF) == [SHELF]
        assert value(await ours.aget(SHELF, "key", refresh_ttl=True)) == {"n": 1}
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


async def test_rows_of_one_transaction_have_no_order_and_are_all_read(served: DurablePostgresStore) -> None:
    keys = [f"{number:04}" for number in range(3000)]
    facts = Owner.of("ada").namespace("facts")
    await served.abatch([PutOp(facts, key, {"by": key}) for key in keys])
    assert [item.key for item in await arun(served, scan(facts))] == keys
