"""Deleting a thread suspends nobody, and whoever uses the thread afterwards finds it deleted."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

from graphs.persistence.durable_saver import Deletions
from graphs.persistence.sqlite_saver import DurableSqliteSaver, open_checkpointer


@pytest.fixture
async def saver(tmp_path: Path) -> AsyncIterator[DurableSqliteSaver]:
    async with open_checkpointer(tmp_path / "checkpoints.sqlite") as saver:
        yield saver


def on(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


def delete(saver: DurableSqliteSaver, thread: str) -> None:
    """Run the deletion up to where it would suspend its caller for the first time: that must be its end."""
    with pytest.raises(StopIteration):
        saver.adelete_thread(thread).send(None)


async def save(saver: DurableSqliteSaver, thread: str) -> RunnableConfig:
    return await saver.aput(on(thread), empty_checkpoint(), {}, {})


async def checkpoints(saver: DurableSqliteSaver, thread: str) -> int:
    return len([found async for found in saver.alist(on(thread))])


async def test_a_deletion_never_suspends_its_caller_and_is_seen_by_every_read(saver: DurableSqliteSaver) -> None:
    for read in (
        saver.aget_tuple(on("thread")),
        checkpoints(saver, "thread"),
        anext(aiter(saver.alist(None)), None),
    ):
        await save(saver, "thread")
        delete(saver, "thread")
        assert not await read


async def test_every_write_comes_after_the_deletion(saver: DurableSqliteSaver) -> None:
    await save(saver, "thread")
    delete(saver, "thread")
    kept = await save(saver, "thread")
    await saver.aput_writes(kept, [("said", "hello")], "task")
    assert await checkpoints(saver, "thread") == 1

    await save(saver, "source")
    delete(saver, "source")
    await saver.acopy_thread("source", "copy")
    delete(saver, "thread")
    await saver.adelete_for_runs(["run"])
    assert [await checkpoints(saver, thread) for thread in ("source", "copy", "thread")] == [0, 0, 0]


async def test_a_thread_deleted_twice_and_made_anew_in_between_is_deleted(saver: DurableSqliteSaver) -> None:
    await save(saver, "thread")
    delete(saver, "thread")
    await save(saver, "thread")
    delete(saver, "thread")
    delete(saver, "thread")
    assert await checkpoints(saver, "thread") == 0


async def test_closing_waits_for_deletions(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    async with open_checkpointer(path) as saver:
        for n in range(20):
            await save(saver, f"thread{n}")
        for n in range(20):
            delete(saver, f"thread{n}")
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT COUNT(*) FROM checkpoints").fetchone() == (0,)


async def test_what_could_not_be_deleted_is_not_read_and_is_tried_again(saver: DurableSqliteSaver) -> None:
    await save(saver, "thread")
    await saver.conn.execute(
        "CREATE TRIGGER full BEFORE DELETE ON checkpoints BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    )
    delete(saver, "thread")
    for _ in range(2):
        with pytest.raises(sqlite3.DatabaseError, match="disk full"):
            await saver.aget_tuple(on("thread"))
    await save(saver, "another")
    await saver.conn.execute("DROP TRIGGER full")
    assert await saver.aget_tuple(on("thread")) is None
    assert await checkpoints(saver, "another") == 1


async def test_what_was_deleted_is_tried_once_more_at_the_end() -> None:
    tries: list[str] = []

    async def fail(thread_id: str) -> None:
        tries.append(thread_id)
        raise OSError

    deletions = Deletions(fail)
    deletions.begin("thread")
    await asyncio.sleep(0)
    await deletions.aclose()
    assert tries == ["thread"] * 2
