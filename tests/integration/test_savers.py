"""Both checkpointers: rollback, copy and delete, with delta channels, beside other processes; nothing left behind."""

import asyncio
import multiprocessing
import sqlite3
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.types import Command

from graphs.persistence import postgres as postgres_of_ours
from graphs.persistence.postgres import DatabaseAway
from graphs.persistence.postgres_saver import checkpoints_at, open_postgres_checkpointer
from graphs.persistence.sqlite_saver import DurableSqliteSaver, checkpoints_in, open_checkpointer
from memory.context.running_summary import RunningSummary
from tests.postgres import Postgres
from tests.saver_graphs import Delta, Stranger, delta_graph, echo_graph, on, said_later_by_slow_clocks, say, texts

PROCESSES = 3
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


@pytest.fixture
async def on_disk(tmp_path: Path) -> AsyncIterator[DurableSqliteSaver]:
    async with open_checkpointer(tmp_path / "new" / "checkpoints.sqlite") as saver:
        yield saver


@pytest.fixture(params=["sqlite", "postgres"])
async def saver(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    if request.param == "sqlite":
        async with open_checkpointer(tmp_path / "checkpoints.sqlite") as saver:
            yield saver
        return
    database = request.getfixturevalue("database")

    async with open_postgres_checkpointer(database) as saver:
        yield saver


async def test_a_copy_names_its_own_thread(saver: Any) -> None:
    """The server writes a run's configuration, its thread's id among it, into every checkpoint's metadata."""
    metadata = {"source": "loop", "thread_id": "original", "run_id": "run-1", "kept": "as it was"}
    await saver.aput(on("original"), empty_checkpoint(), cast(CheckpointMetadata, metadata), {})
    await saver.acopy_thread("original", "copy")
    copied = await saver.aget_tuple(on("copy"))
    assert copied.checkpoint == (await saver.aget_tuple(on("original"))).checkpoint
    assert dict(copied.metadata) == {"source": "loop", "thread_id": "copy", "kept": "as it was"}


async def test_who_goes_on_sees_what_a_stopped_run_still_saves(saver: Any) -> None:
    """LangGraph saves a checkpoint once what its tasks wrote, and the checkpoint before it, are saved."""
    first, second = empty_checkpoint(), empty_checkpoint()
    beside = on("T")
    beside["configurable"]["checkpoint_id"] = first["id"]
    written = asyncio.create_task(saver.aput_writes(beside, [("messages", "said")], "task"))
    before = asyncio.create_task(saver.aput(on("T"), first, {"source": "loop"}, {}))

    async def save_next() -> None:
        await asyncio.gather(written)
        await before
        await saver.aput(beside, second, {"source": "loop"}, {})

    saving = asyncio.create_task(save_next())
    await asyncio.sleep(0)
    found = await saver.aget_tuple(on("T"))
    await saving
    assert found is not None
    assert found.checkpoint["id"] == second["id"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_a_command_may_begin_a_thread(saver: Any, durability: Any) -> None:
    """LangGraph saves the first checkpoint once what the command wrote is saved."""
    kept = list[str]()
    for each in (InMemorySaver(), saver):
        graph = delta_graph(each)
        await graph.ainvoke(Command(update={"log": ["one"]}, goto="answer"), on("thread"), durability=durability)
        kept += [str((await graph.aget_state(on("thread"))).values["log"])]
    assert kept[0] == kept[1]
    assert "one" in kept[0]


async def test_deleting_an_old_run_never_loses_what_a_delta_channel_is_replayed_from(saver: Any) -> None:
    graph = delta_graph(saver)
    for n in range(4):
        await graph.ainvoke({"log": [str(n)]}, on("thread", f"run-{n}"))
    for deleted, left in (("run-2", 4), ("run-3", 3)):
        await saver.adelete_for_runs([deleted])
        whole = [text for n in range(left) for text in (str(n), f"re: {n}")]
        assert (await graph.aget_state(on("thread"))).values["log"] == whole


async def test_a_run_that_was_deleted_takes_nothing_of_the_thread_with_what_it_still_saves(saver: Any) -> None:
    """A server deletes what a rolled back run saved before that run has ended."""

    async def deleting(state: Delta) -> Delta:
        await saver.adelete_for_runs(["rolled back"])
        return {"log": ["late"]}

    graph = delta_graph(saver)
    stopped = StateGraph(Delta).add_node(deleting).set_entry_point("deleting").compile(checkpointer=saver)
    await graph.ainvoke({"log": ["one"]}, on("thread", "kept"))
    await stopped.ainvoke({"log": ["two"]}, on("thread", "rolled back"), durability="sync")
    await graph.ainvoke({"log": ["three"]}, on("thread", "next"))
    assert (await graph.aget_state(on("thread"))).values["log"] == ["one", "re: one", "three", "re: three"]


async def test_G2_a_running_summary_comes_back_as_itself_and_an_unknown_class_does_not(saver: Any) -> None:
    summary = RunningSummary("Ada moved to Bergen.", {"m1", "m2"}, "m2").extended(
        "More.", ["m3"], last="m3", kept={"m0": 0}
    )
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"context": {"running_summary": summary}, "stranger": Stranger("eve")}
    checkpoint["channel_versions"] = {"context": "1", "stranger": "1"}
    saved = await saver.aput(on("thread"), checkpoint, {}, {"context": "1", "stranger": "1"})
    await saver.aput_writes(saved, [("context", summary)], "task")

    found = await saver.aget_tuple(on("thread"))

    assert found.checkpoint["channel_values"]["context"] == {"running_summary": summary}
    assert found.pending_writes == [("task", "context", summary)]
    assert not isinstance(found.checkpoint["channel_values"]["stranger"], Stranger)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_the_last_turn_is_the_newest_though_the_clock_went_back(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A board before its network time, a dual boot, a resumed machine, a second server whose clock is behind."""
    opened: Any = open_checkpointer
    place: Any = tmp_path / "checkpoints.sqlite"
    if kind == "postgres":
        opened, place = open_postgres_checkpointer, request.getfixturevalue("database")
    assert said_later_by_slow_clocks(opened, place) == [
        ["one", "re: one"],
        ["one", "re: one", "two", "re: two"],
        ["three", "re: three"],
    ]


@pytest.mark.parametrize("strategy", ["keep_latest", "delete", "delete_all"])
async def test_pruning_is_refused_and_takes_nothing(on_disk: DurableSqliteSaver, strategy: str) -> None:
    graph = echo_graph(on_disk)
    await say(graph, "thread", "hello")
    with pytest.raises(NotImplementedError):
        await on_disk.aprune(["thread"], strategy=strategy)
    assert await texts(graph, "thread") == ["hello", "re: hello"]


async def test_what_cannot_be_deleted_is_said_and_stays_whole(on_disk: DurableSqliteSaver) -> None:
    await on_disk.aput(on("thread"), empty_checkpoint(), {}, {})
    await on_disk.conn.execute(
        "CREATE TRIGGER full BEFORE DELETE ON checkpoints BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    )
    with pytest.raises(sqlite3.DatabaseError, match="disk full"):
        await on_disk.adelete_thread("thread")
    assert await on_disk.aget_tuple(on("thread"))


async def test_a_cancelled_write_leaves_no_lock_behind(on_disk: DurableSqliteSaver, tmp_path: Path) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1"}}
    task = asyncio.create_task(on_disk.aput_writes(config, [(f"channel{n}", n) for n in range(2000)], "task"))
    while not on_disk.conn.in_transaction:  # noqa: ASYNC110 (a connection tells nobody)
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with closing(sqlite3.connect(tmp_path / "new" / "checkpoints.sqlite", timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")  # fails at once if the lock is held
        assert other.execute("SELECT COUNT(*) FROM writes").fetchone() == (0,)


async def test_the_saver_may_be_used_while_its_list_is_read(on_disk: DurableSqliteSaver) -> None:
    await say(echo_graph(on_disk), "thread", "hello")
    async with asyncio.timeout(120):
        found = [await on_disk.aget_tuple(checkpoint.config) async for checkpoint in on_disk.alist(on("thread"))]
    assert len(found) == 3
    assert None not in found


async def test_nothing_blocks_the_event_loop(tmp_path: Path) -> None:
    with blockbuster_ctx():
        async with open_checkpointer(tmp_path / "a" / "b" / "checkpoints.sqlite") as saver:
            await say(echo_graph(saver), "thread", "hello", "run-1")
            await saver.acopy_thread("thread", "copy")
            await saver.adelete_for_runs(["run-1"])
            await saver.adelete_thread("copy")


async def test_a_run_in_another_process_saves_nothing_in_a_thread_that_was_deleted(
    postgres: Postgres, database: str
) -> None:

    def rows() -> dict[str, int]:
        with postgres.connect(database) as connection:
            count = "SELECT COUNT(*) FROM {} WHERE thread_id = 'thread'"
            return {table: connection.execute(count.format(table)).fetchone()[0] for table in TABLES}

    async with open_postgres_checkpointer(database) as here, open_postgres_checkpointer(database) as elsewhere:
        going_on = await elsewhere.aput(on("thread"), empty_checkpoint(), {}, {})
        await here.adelete_thread("thread")
        assert await here.aget_tuple(on("thread")) is None

        await elsewhere.aput_writes(going_on, [("said", "xyzzy")], "task")
        later = await elsewhere.aput(
            {"configurable": {**on("thread")["configurable"], **going_on["configurable"]}}, empty_checkpoint(), {}, {}
        )
        await elsewhere.aput_writes(later, [("said", "xyzzy")], "task")
        assert rows() == dict.fromkeys(TABLES, 0)

        await elsewhere.aput(on("thread"), empty_checkpoint(), {}, {})  # made anew under the id
        assert rows()["checkpoints"] == 1


async def test_a_process_that_is_stopped_while_it_saves_holds_its_thread_for_a_minute_at_most(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_of_ours, "_LIMIT", postgres_of_ours._LIMIT.replace("60s", "1s"))

    async with open_postgres_checkpointer(database) as ours:

        async def save() -> None:
            async with ours._transaction(owns=["thread"]) as (_, execute), asyncio.timeout(20):
                await execute("SELECT 1")
                monkeypatch.undo()
                await ours.adelete_thread("thread")

        with pytest.raises(DatabaseAway):
            await save()


async def test_a_state_that_a_client_wrote_leaves_a_thread_its_users(tmp_path: Path) -> None:
    """An erase of everything finds threads without a row by it."""
    async with open_checkpointer(tmp_path / "checkpoints.sqlite") as saver:
        graph = echo_graph(saver)
        await graph.ainvoke({"messages": [HumanMessage("hello")]}, on("adas", user="ada"))
        await graph.aupdate_state(on("adas", user=""), {"messages": [HumanMessage("more")]})
    assert await checkpoints_in(tmp_path / "checkpoints.sqlite").threads_of(["ada"]) == ["adas"]


async def test_the_tables_tell_whose_threads_there_are(database: str) -> None:
    tables = checkpoints_at(database)
    assert await tables.threads_of([""]) == []
    async with open_postgres_checkpointer(database) as saver:
        graph = echo_graph(saver)
        for thread, user in (("adas", "ada"), ("nobodys", ""), ("shared", "ada"), ("shared", "eve")):
            await graph.ainvoke({"messages": [HumanMessage("hello")]}, on(thread, user=user))
        left = {"memory": {"has_unwritten": True}}
        checkpoint = {**empty_checkpoint(), "channel_values": left, "channel_versions": {"memory": "1"}}
        await saver.aput(on("left", user="eve"), checkpoint, {}, {"memory": "1"})  # type: ignore[arg-type]

    assert await tables.threads_of(["ada"]) == ["adas"]
    assert sorted(await tables.threads_of(["", "ada"])) == ["adas", "nobodys"]
    assert await tables.unwritten(10) == await tables.unwritten(1, after="k") == [("left", "eve")]
    assert await tables.unwritten(10, after="left") == []


async def test_a_database_that_is_away_is_named_without_its_password() -> None:

    uri = "postgresql://ada:hunter2@127.0.0.1:1/palimpsest"
    with pytest.raises(DatabaseAway, match=r"the database palimpsest on 127\.0\.0\.1:1 cannot be used") as away:
        async with open_postgres_checkpointer(uri):
            pass
    assert "start it, or correct DATABASE_URI" in str(away.value)
    assert "hunter2" not in str(away.value)


def _work(database: str, worker: int) -> list[str]:
    """Write, roll back and delete in threads that other processes use too; return what went wrong."""

    async def work() -> list[str]:
        async with open_postgres_checkpointer(database) as saver:
            graph = echo_graph(saver)
            for n in range(10):
                run = str(uuid4())
                await say(graph, f"own-{worker}", str(n), run)
                await say(graph, f"shared-{n % 3}", str(n), run)
                await saver.adelete_for_runs([run] if n % 5 == 4 else [])
                if n % 4 == worker:
                    await saver.adelete_thread(f"shared-{n % 3}")
            return await texts(graph, f"own-{worker}")

    return asyncio.run(work())


def test_processes_that_start_at_once_do_not_fail_each_other(database: str) -> None:
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        said = list(pool.map(_work, [database] * PROCESSES, range(PROCESSES)))
    kept = [n for n in range(10) if n % 5 != 4]
    assert said == [[text for n in kept for text in (str(n), f"re: {n}")]] * PROCESSES
