"""The checkpointer on Postgres: rollback, copy and delete, with delta channels, beside other processes."""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from typing import cast
from uuid import uuid4

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import CheckpointMetadata, empty_checkpoint

from graphs.persistence.postgres import DatabaseAway
from graphs.persistence.postgres_saver import DurablePostgresSaver, checkpoints_at, open_postgres_checkpointer
from memory.context.running_summary import RunningSummary
from tests.postgres import Postgres
from tests.saver_graphs import Stranger, delta_graph, echo_graph, on, said_later_by_slow_clocks, say, texts

PROCESSES = 3
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


@pytest.fixture
async def saver(database: str) -> AsyncIterator[DurablePostgresSaver]:
    async with open_postgres_checkpointer(database) as saver:
        yield saver


def rows(postgres: Postgres, database: str, thread: str) -> dict[str, int]:
    with postgres.connect(database) as connection:
        count = "SELECT COUNT(*) FROM {} WHERE thread_id = %s"
        return {table: connection.execute(count.format(table), (thread,)).fetchone()[0] for table in TABLES}


async def test_a_copy_names_its_own_thread(saver: DurablePostgresSaver) -> None:
    metadata = {"source": "loop", "thread_id": "original", "run_id": "run-1", "kept": "as it was"}
    await saver.aput(on("original"), empty_checkpoint(), cast(CheckpointMetadata, metadata), {})
    await saver.acopy_thread("original", "copy")
    copied = await saver.aget_tuple(on("copy"))
    assert copied
    assert dict(copied.metadata) == {"source": "loop", "thread_id": "copy", "kept": "as it was"}


async def test_deleting_an_old_run_never_loses_what_a_delta_channel_is_replayed_from(
    saver: DurablePostgresSaver,
) -> None:
    graph = delta_graph(saver)
    for n in range(4):
        await graph.ainvoke({"log": [str(n)]}, on("thread", f"run-{n}"))
    for deleted, left in (("run-2", 4), ("run-3", 3)):
        await saver.adelete_for_runs([deleted])
        whole = [text for n in range(left) for text in (str(n), f"re: {n}")]
        assert (await graph.aget_state(on("thread"))).values["log"] == whole


async def test_a_deletion_is_seen_by_whatever_comes_next(saver: DurablePostgresSaver) -> None:
    await saver.aput(on("thread"), empty_checkpoint(), {}, {})
    await saver.adelete_thread("thread")
    assert await saver.aget_tuple(on("thread")) is None
    await saver.adelete_thread("thread")
    await saver.aput(on("thread"), empty_checkpoint(), {}, {})
    assert len([found async for found in saver.alist(on("thread"))]) == 1


async def test_a_run_in_another_process_saves_nothing_in_a_thread_that_was_deleted(
    saver: DurablePostgresSaver, postgres: Postgres, database: str
) -> None:
    async with open_postgres_checkpointer(database) as elsewhere:
        going_on = await elsewhere.aput(on("thread"), empty_checkpoint(), {}, {})
        await saver.adelete_thread("thread")
        assert await saver.aget_tuple(on("thread")) is None

        await elsewhere.aput_writes(going_on, [("said", "xyzzy")], "task")
        later = await elsewhere.aput(
            {"configurable": {**on("thread")["configurable"], **going_on["configurable"]}}, empty_checkpoint(), {}, {}
        )
        await elsewhere.aput_writes(later, [("said", "xyzzy")], "task")
        assert rows(postgres, database, "thread") == dict.fromkeys(TABLES, 0)

        await elsewhere.aput(on("thread"), empty_checkpoint(), {}, {})  # made anew under the id
        assert rows(postgres, database, "thread")["checkpoints"] == 1


async def test_G2_a_running_summary_comes_back_as_itself_and_an_unknown_class_does_not(
    saver: DurablePostgresSaver,
) -> None:
    summary = RunningSummary("Ada moved to Bergen.", {"m1", "m2"}, "m2").extended(
        "More.", ["m3"], last="m3", kept={"m0": 0}
    )
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"context": {"running_summary": summary}, "stranger": Stranger("eve")}
    checkpoint["channel_versions"] = {"context": "1", "stranger": "1"}
    saved = await saver.aput(on("thread"), checkpoint, {}, {"context": "1", "stranger": "1"})
    await saver.aput_writes(saved, [("context", summary)], "task")

    found = await saver.aget_tuple(on("thread"))

    assert found
    assert found.checkpoint["channel_values"]["context"] == {"running_summary": summary}
    assert found.pending_writes == [("task", "context", summary)]
    assert not isinstance(found.checkpoint["channel_values"]["stranger"], Stranger)


async def test_the_tables_tell_whose_threads_there_are(saver: DurablePostgresSaver, database: str) -> None:
    graph = echo_graph(saver)
    await graph.ainvoke({"messages": [HumanMessage("my secret is xyzzy")]}, on("adas", user="ada"))
    await graph.ainvoke({"messages": [HumanMessage("hello")]}, on("nobodys"))
    await graph.ainvoke({"messages": [HumanMessage("hello")]}, on("shared", user="ada"))
    await graph.ainvoke({"messages": [HumanMessage("hello")]}, on("shared", user="eve"))
    left = {"memory": {"has_unwritten": True}}
    checkpoint = {**empty_checkpoint(), "channel_values": left, "channel_versions": {"memory": "1"}}
    await saver.aput(on("left", user="eve"), checkpoint, {}, {"memory": "1"})  # type: ignore[arg-type]

    tables = checkpoints_at(database)
    assert await tables.threads_of(["ada"]) == ["adas"]
    assert sorted(await tables.threads_of(["", "ada"])) == ["adas", "nobodys"]
    assert await tables.unwritten(10) == await tables.unwritten(1, after="k") == [("left", "eve")]
    assert await tables.unwritten(10, after="left") == []


async def test_where_no_tables_are_yet_nothing_is_known(database: str) -> None:
    assert await checkpoints_at(database).threads_of([""]) == []


async def test_a_database_that_is_away_is_named_without_its_password() -> None:
    uri = "postgresql://ada:hunter2@127.0.0.1:1/palimpsest"
    with pytest.raises(DatabaseAway, match=r"the database palimpsest on 127\.0\.0\.1:1 cannot be used") as away:
        async with open_postgres_checkpointer(uri):
            pass
    assert "start it, or correct DATABASE_URI" in str(away.value)
    assert "hunter2" not in str(away.value)


async def test_openings_at_once_make_the_tables_once(database: str) -> None:
    async def opened(_: int) -> None:
        async with open_postgres_checkpointer(database, 2) as saver:
            await say(echo_graph(saver), str(uuid4()), "hello")

    async with asyncio.timeout(120):
        await asyncio.gather(*(opened(n) for n in range(6)))


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


def test_the_last_turn_is_the_newest_though_the_clock_went_back(database: str) -> None:
    """A board before its network time, a dual boot, a resumed machine, a second server whose clock is behind."""
    assert said_later_by_slow_clocks(open_postgres_checkpointer, database) == [
        ["one", "re: one"],
        ["one", "re: one", "two", "re: two"],
        ["three", "re: three"],
    ]
