"""A thread that is deleted is gone for whoever uses it afterwards."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

from graphs.persistence.sqlite_saver import DurableSqliteSaver, open_checkpointer


@pytest.fixture
async def saver(tmp_path: Path) -> AsyncIterator[DurableSqliteSaver]:
    async with open_checkpointer(tmp_path / "checkpoints.sqlite") as saver:
        yield saver


def on(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


async def save(saver: DurableSqliteSaver, thread: str) -> RunnableConfig:
    return await saver.aput(on(thread), empty_checkpoint(), {}, {})


async def checkpoints(saver: DurableSqliteSaver, thread: str) -> int:
    return len([found async for found in saver.alist(on(thread))])


async def test_every_read_and_write_comes_after_the_deletion(saver: DurableSqliteSaver) -> None:
    await save(saver, "thread")
    await saver.adelete_thread("thread")
    assert await saver.aget_tuple(on("thread")) is None
    assert await checkpoints(saver, "thread") == 0
    kept = await save(saver, "thread")
    await saver.aput_writes(kept, [("said", "hello")], "task")
    assert await checkpoints(saver, "thread") == 1
    await saver.adelete_thread("thread")
    await saver.acopy_thread("thread", "copy")
    assert [await checkpoints(saver, thread) for thread in ("thread", "copy")] == [0, 0]


async def test_what_cannot_be_deleted_is_said_and_stays_whole(saver: DurableSqliteSaver) -> None:
    await save(saver, "thread")
    await saver.conn.execute(
        "CREATE TRIGGER full BEFORE DELETE ON checkpoints BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    )
    with pytest.raises(sqlite3.DatabaseError, match="disk full"):
        await saver.adelete_thread("thread")
    assert await checkpoints(saver, "thread") == 1
    await saver.conn.execute("DROP TRIGGER full")
    await saver.adelete_thread("thread")
    assert await checkpoints(saver, "thread") == 0
