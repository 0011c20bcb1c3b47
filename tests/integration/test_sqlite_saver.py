"""The checkpointer on SQLite: rollback, copy and delete, also with delta channels; nothing left behind."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata, empty_checkpoint
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graphs.persistence.durable_saver import DurableSaver
from graphs.persistence.sqlite_saver import DurableSqliteSaver, open_checkpointer
from tests.saver_graphs import Stranger, delta_graph, echo_graph, on, said_later_by_slow_clocks, say, texts


@pytest.fixture
async def saver(tmp_path: Path) -> AsyncIterator[DurableSqliteSaver]:
    async with open_checkpointer(tmp_path / "new" / "checkpoints.sqlite") as saver:
        yield saver


async def test_a_copy_names_its_own_thread(saver: DurableSqliteSaver) -> None:
    """The server writes a run's configuration, its thread's id among it, into every checkpoint's metadata."""
    config: RunnableConfig = {"configurable": {"thread_id": "original", "checkpoint_ns": ""}}
    metadata = {"source": "loop", "thread_id": "original", "run_id": "run-1", "kept": "as it was"}
    await saver.aput(config, empty_checkpoint(), cast(CheckpointMetadata, metadata), {})

    await saver.acopy_thread("original", "copy")

    copied, original = await saver.aget_tuple(on("copy")), await saver.aget_tuple(on("original"))
    assert copied
    assert original
    assert copied.checkpoint == original.checkpoint
    assert dict(copied.metadata) == {"source": "loop", "thread_id": "copy", "kept": "as it was"}


@pytest.mark.parametrize("strategy", ["keep_latest", "delete", "delete_all"])
async def test_pruning_is_refused_with_the_reason_and_takes_nothing(saver: DurableSqliteSaver, strategy: str) -> None:
    graph = echo_graph(saver)
    await say(graph, "thread", "hello")
    with pytest.raises(NotImplementedError, match="replayed from older checkpoints"):
        await saver.aprune(["thread"], strategy=strategy)
    assert await texts(graph, "thread") == ["hello", "re: hello"]


async def test_deleting_an_old_run_never_loses_what_a_delta_channel_is_replayed_from(saver: DurableSqliteSaver) -> None:
    graph = delta_graph(saver)
    for n in range(4):
        await graph.ainvoke({"log": [str(n)]}, on("thread", f"run-{n}"))

    await saver.adelete_for_runs(["run-2"])
    assert (await graph.aget_state(on("thread"))).values["log"] == [t for n in range(4) for t in (str(n), f"re: {n}")]

    await saver.adelete_for_runs(["run-3"])
    assert (await graph.aget_state(on("thread"))).values["log"] == [t for n in range(3) for t in (str(n), f"re: {n}")]


async def test_a_cancelled_write_leaves_no_lock_behind(saver: DurableSqliteSaver, tmp_path: Path) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1"}}
    task = asyncio.create_task(saver.aput_writes(config, [(f"channel{n}", n) for n in range(2000)], "task"))
    while not saver.conn.in_transaction:  # noqa: ASYNC110 (a connection tells nobody)
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    with closing(sqlite3.connect(tmp_path / "new" / "checkpoints.sqlite", timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")  # fails at once if the lock is held
        assert other.execute("SELECT COUNT(*) FROM writes").fetchone() == (0,)


async def test_the_saver_may_be_used_while_its_list_is_read(saver: DurableSqliteSaver) -> None:
    graph = echo_graph(saver)
    await say(graph, "thread", "hello")

    async with asyncio.timeout(120):
        found = [await saver.aget_tuple(checkpoint.config) async for checkpoint in saver.alist(on("thread"))]

    assert len(found) == 3
    assert None not in found


async def test_a_class_it_was_not_told_about_comes_back_as_plain_data(saver: DurableSqliteSaver) -> None:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"stranger": Stranger("eve"), "message": HumanMessage("hi")}
    config: RunnableConfig = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}
    await saver.aput(config, checkpoint, {}, {})

    found = await saver.aget(on("thread"))

    assert found
    assert found["channel_values"]["stranger"] == {"name": "eve"}
    assert found["channel_values"]["message"] == HumanMessage("hi")


async def test_nothing_blocks_the_event_loop(tmp_path: Path) -> None:
    with blockbuster_ctx():
        async with open_checkpointer(tmp_path / "a" / "b" / "checkpoints.sqlite") as saver:
            graph = echo_graph(saver)
            await say(graph, "thread", "hello", "run-1")
            await saver.acopy_thread("thread", "copy")
            await saver.adelete_for_runs(["run-1"])
            await saver.adelete_thread("copy")


async def test_the_stock_saver_lacks_what_the_server_calls() -> None:
    """The reason for `DurableSaver`: when this fails, stock has learnt it and ours can go."""
    missing = ["adelete_for_runs", "acopy_thread"]
    assert [name for name in missing if name in AsyncSqliteSaver.__dict__] == []
    assert [name for name in missing if name not in DurableSaver.__dict__] == []


def test_the_last_turn_is_the_newest_though_the_clock_went_back(tmp_path: Path) -> None:
    """A board before its network time, a dual boot, a resumed machine, a second server whose clock is behind."""
    assert said_later_by_slow_clocks(open_checkpointer, tmp_path / "checkpoints.sqlite") == [
        ["one", "re: one"],
        ["one", "re: one", "two", "re: two"],
        ["three", "re: three"],
    ]
