"""The store on SQLite: whole batches, several processes on one file, one caller's bad value harms no other."""

import asyncio
import math
import multiprocessing
import os
import signal
import sqlite3
import time
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from langgraph.store.base import GetOp, Item, ListNamespacesOp, PutOp, SearchOp
from langgraph.store.sqlite.aio import AsyncSqliteStore

from graphs.persistence.sqlite_store import DurableSqliteStore, open_store

SHELF = ("shelf", "ada")
PROCESSES = 4
BATCHES = 100

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


async def test_a_cancelled_batch_leaves_no_transaction_open(store: DurableSqliteStore, tmp_path: Path) -> None:
    batch = [PutOp(SHELF, f"key{n}", {"n": n}) for n in range(2000)]
    task = asyncio.create_task(store.abatch(batch))
    while not store.conn.in_transaction:  # noqa: ASYNC110 (a connection tells nobody)
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    async with open_store(tmp_path / "new" / "store.sqlite") as other:
        await other.aput(SHELF, "after", {"n": 1})
        assert {item.key for item in await other.asearch(SHELF, limit=5000)} == {"after"}


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


async def test_other_threads_may_use_it_synchronously(store: DurableSqliteStore) -> None:
    await asyncio.to_thread(store.put, SHELF, "key", {"n": 1})

    item = await asyncio.to_thread(store.get, SHELF, "key")
    assert item
    assert item.value == {"n": 1}
    assert await asyncio.to_thread(store.batch, [GetOp(SHELF, "none")]) == [None]


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


async def test_deleted_text_is_not_left_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    async with open_store(path) as store:
        for n in range(50):
            await store.aput(SHELF, f"key{n}", {"text": f"secret-{n} " * 50})
        for n in range(50):
            await store.adelete(SHELF, f"key{n}")

    assert b"secret-7 " not in path.read_bytes()  # closing the last connection empties the write-ahead log


def _mixed_batches(path: Path, worker: int) -> int:
    """Read, search and write in every batch, and in single calls beside it; return how many calls failed."""

    async def work() -> int:
        namespace = ("shelf", f"worker{worker}")
        async with open_store(path) as store:
            calls: list[object] = []
            for n in range(BATCHES):
                batch = store.abatch(
                    [GetOp(("shared",), "counter"), SearchOp(namespace), PutOp(namespace, str(n), {"n": n})]
                )
                single = store.aput(("shared",), "counter", {"worker": worker, "n": n})
                calls += await asyncio.gather(batch, single, return_exceptions=True)
            return sum(isinstance(call, BaseException) for call in calls)

    return asyncio.run(work())


def test_four_processes_on_one_file_do_not_fail_each_other(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        errors = list(pool.map(_mixed_batches, [path] * PROCESSES, range(PROCESSES)))

    assert errors == [0] * PROCESSES
    with closing(sqlite3.connect(path)) as file:
        counts = file.execute("SELECT prefix, COUNT(*) FROM store GROUP BY prefix ORDER BY prefix").fetchall()
    assert counts == [("shared", 1), *((f"shelf.worker{n}", BATCHES) for n in range(PROCESSES))]


def _pairs(path: Path) -> None:
    """Write pairs of equal items for ever."""

    async def work() -> None:
        async with open_store(path) as store:
            n = 0
            while True:
                await store.abatch([PutOp(SHELF, "left", {"n": n}), PutOp(SHELF, "right", {"n": n})])
                n += 1

    asyncio.run(work())


async def test_kill_9_leaves_whole_batches(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    process = multiprocessing.get_context("spawn").Process(target=_pairs, args=(path,))
    process.start()
    try:
        await _wait_for_pair(path, 20)
    finally:
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()

    async with open_store(path) as store:
        left, right = await store.aget(SHELF, "left"), await store.aget(SHELF, "right")
    assert left
    assert right
    assert left.value == right.value
    assert left.value["n"] >= 20


async def _wait_for_pair(path: Path, n: int) -> None:
    deadline = time.monotonic() + 240
    async with open_store(path) as store:
        while (item := await store.aget(SHELF, "left")) is None or item.value["n"] < n:
            assert time.monotonic() < deadline, "the writing process made no progress"
