"""The store on SQLite: whole batches, several processes on one file, one caller's bad value harms no other."""

import asyncio
import math
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from langgraph.store.base import GetOp, Item, ListNamespacesOp, PutOp, SearchOp
from langgraph.store.sqlite.aio import AsyncSqliteStore

from graphs.persistence.sqlite_store import DurableSqliteStore, open_store

SHELF = ("shelf", "ada")

UNSTORABLE = [
    pytest.param("\ud800", id="lone surrogate"),
    pytest.param(2**70, id="beyond 64 bits"),
    pytest.param({1, 2}, id="set"),
    pytest.param(b"bytes", id="bytes"),
    pytest.param(object(), id="object"),
]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[DurableSqliteStore]:
    async with open_store(tmp_path / "new" / "store.sqlite") as store:
        yield store


@pytest.mark.parametrize("value", UNSTORABLE)
async def test_a_value_that_cannot_be_stored_fails_its_own_call_only(store: DurableSqliteStore, value: object) -> None:
    await store.aput(SHELF, "old", {"n": 0})

    bad, good, read, found = await asyncio.gather(
        store.aput(("shelf", "eve"), "bad", {"value": value}),
        store.aput(("shelf", "bob"), "good", {"n": 1}),
        store.aget(SHELF, "old"),
        store.asearch(SHELF),
        return_exceptions=True,
    )

    assert isinstance(bad, TypeError)
    assert good is None
    assert isinstance(read, Item)
    assert isinstance(found, list)
    assert [item.key for item in found] == ["old"]
    stored = await store.aget(("shelf", "bob"), "good")
    assert stored
    assert stored.value == {"n": 1}
    assert await store.aget(("shelf", "eve"), "bad") is None


@pytest.mark.parametrize(
    "search",
    [
        pytest.param({"filter": {"x'; DROP TABLE store; --": 1}}, id="filter key"),
        pytest.param({"filter": {"name": {"$near": 1}}}, id="filter operator"),
        pytest.param({"limit": "ten"}, id="limit"),
    ],
)
async def test_a_search_that_makes_no_sense_fails_alone(store: DurableSqliteStore, search: dict[str, object]) -> None:
    bad, good = await asyncio.gather(
        store.asearch(SHELF, **search),  # type: ignore[arg-type]  # what an HTTP client may send
        store.aput(SHELF, "key", {"n": 1}),
        return_exceptions=True,
    )

    assert isinstance(bad, Exception)
    assert good is None
    assert [item.value for item in await store.asearch(SHELF)] == [{"n": 1}]


async def test_a_failing_batch_changes_nothing(store: DurableSqliteStore) -> None:
    await store.aput(SHELF, "kept", {"n": 1})

    with pytest.raises(TypeError):
        await store.abatch(
            [
                PutOp(SHELF, "kept", None),
                PutOp(SHELF, "new", {"n": 2}),
                PutOp(SHELF, "bad", {"value": b"bytes"}),
            ]
        )

    assert [(item.key, item.value) for item in await store.asearch(SHELF)] == [("kept", {"n": 1})]


async def test_an_error_of_the_database_rolls_the_batch_back(store: DurableSqliteStore) -> None:
    await store.aput(SHELF, "kept", {"n": 1})
    await store.conn.execute(
        "CREATE TRIGGER full BEFORE INSERT ON store WHEN NEW.key = 'new' BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    )

    with pytest.raises(sqlite3.DatabaseError, match="disk full"):
        await store.abatch([PutOp(SHELF, "kept", None), PutOp(SHELF, "new", {"n": 2})])

    assert [item.key for item in await store.asearch(SHELF)] == ["kept"]


async def test_the_stock_store_commits_half_of_a_failing_batch(tmp_path: Path) -> None:
    """The reason for `DurableSqliteStore`: when this fails, stock has learnt it and ours can go."""
    async with AsyncSqliteStore.from_conn_string(str(tmp_path / "stock.sqlite")) as stock:
        await stock.setup()
        await stock.aput(SHELF, "kept", {"n": 1})
        await stock.conn.execute(
            "CREATE TRIGGER full BEFORE INSERT ON store WHEN NEW.key = 'new' BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
        with pytest.raises(sqlite3.DatabaseError):
            await stock.abatch([PutOp(SHELF, "kept", None), PutOp(SHELF, "new", {"n": 2})])

        assert await stock.asearch(SHELF) == []


async def test_reads_of_a_batch_see_the_state_before_its_writes(store: DurableSqliteStore) -> None:
    await store.aput(SHELF, "key", {"n": 1})

    before, found, spaces, _ = await store.abatch(
        [GetOp(SHELF, "key"), SearchOp(SHELF), ListNamespacesOp(), PutOp(SHELF, "key", {"n": 2})]
    )

    assert isinstance(before, Item)
    assert before.value == {"n": 1}
    assert isinstance(found, list)
    assert spaces == [SHELF]
    after = await store.aget(SHELF, "key")
    assert after
    assert after.value == {"n": 2}


async def test_nothing_blocks_the_event_loop(tmp_path: Path) -> None:
    with blockbuster_ctx():
        async with open_store(tmp_path / "a" / "b" / "store.sqlite") as store:
            await store.aput(SHELF, "key", {"n": 1})
            assert await store.aget(SHELF, "key")
            assert await store.alist_namespaces(suffix=("ada",)) == [SHELF]
            await store.adelete(SHELF, "key")
            assert await store.asearch(SHELF) == []


async def test_it_needs_no_loadable_extension(store: DurableSqliteStore) -> None:
    """A search by meaning without vectors returns the items: choosing among them is recall's work."""
    await store.aput(SHELF, "key", {"text": "Lives in Bergen"})

    assert [item.key for item in await store.asearch(SHELF, query="where?", limit=5)] == ["key"]
    async with store.conn.execute("SELECT COUNT(*) FROM sqlite_master WHERE name LIKE '%vector%'") as cursor:
        assert await cursor.fetchone() == (0,)


async def test_what_is_no_number_is_stored_as_null(store: DurableSqliteStore) -> None:
    """SQLite's JSON knows no NaN: whoever stores one must refuse it before, as `memory.text` does."""
    await store.aput(SHELF, "key", {"n": math.nan})

    item = await store.aget(SHELF, "key")
    assert item
    assert item.value == {"n": None}
