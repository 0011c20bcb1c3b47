"""Several processes and tasks on one folder: nobody is refused, and what was deleted leaves the logs all the same."""

import asyncio
import multiprocessing
import os
import signal
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from graphs.persistence.sqlite_saver import DurableSqliteSaver, open_checkpointer
from graphs.persistence.sqlite_store import DurableSqliteStore, open_store
from memory.facts.store import FactStore
from memory.namespaces import Owner
from tests.forgetting import aerase_fact

SHELF = ("shelf", "ada")
WORDS = "my secret is xyzzy"
PATIENCE = 240.0


async def until(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not look():  # noqa: ASYNC110 (a file tells nobody)
            await asyncio.sleep(0.05)


def holding(folder: Path) -> list[str]:
    """Which files hold the words."""
    return [path.name for path in sorted(folder.iterdir()) if b"xyzzy" in path.read_bytes()]


async def save(saver: DurableSqliteSaver, thread: str, words: str) -> None:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"said": words}
    await saver.aput({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}, checkpoint, {}, {})


async def delete_thread(saver: DurableSqliteSaver, store: DurableSqliteStore) -> None:
    await save(saver, "thread", WORDS)
    await saver.adelete_thread("thread")


async def delete_item(saver: DurableSqliteSaver, store: DurableSqliteStore) -> None:
    await store.aput(SHELF, "key", {"text": WORDS})
    await store.adelete(SHELF, "key")


async def write_over_item(saver: DurableSqliteSaver, store: DurableSqliteStore) -> None:
    await store.aput(SHELF, "key", {"text": WORDS})
    await store.aput(SHELF, "key", {"text": "nothing"})


async def erase_fact(saver: DurableSqliteSaver, store: DurableSqliteStore) -> None:
    fact = await FactStore(store, "ada").acreate(WORDS, "knowledge", 1.0)
    await aerase_fact(store, Owner.of("ada"), fact.id)


Forget = Callable[[DurableSqliteSaver, DurableSqliteStore], Awaitable[None]]
FORGET = [(delete_thread, 0), (delete_item, 1), (write_over_item, 1), (erase_fact, 1)]


@pytest.mark.parametrize(("forget", "where"), FORGET)
async def test_deleted_words_leave_the_log_once_nobody_reads_them(tmp_path: Path, forget: Forget, where: int) -> None:
    files = [tmp_path / "checkpoints.sqlite", tmp_path / "store.sqlite"]
    async with open_checkpointer(files[0]) as saver, open_store(files[1]) as store:
        await save(saver, "other", "hello")
        await store.aput(SHELF, "other", {"text": "hello"})
        with closing(sqlite3.connect(files[0])) as one, closing(sqlite3.connect(files[1])) as two:
            for reader, table in ((one, "checkpoints"), (two, "store")):
                reader.execute("BEGIN")
                reader.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
            await forget(saver, store)
            await asyncio.sleep(1.5)  # the first tries meet the readers
        await until(lambda: files[where].with_name(f"{files[where].name}-wal").stat().st_size == 0)
        assert holding(tmp_path) == []


def _delete_and_hang(folder: Path) -> None:
    async def run() -> None:
        async with open_checkpointer(folder / "checkpoints.sqlite") as saver:
            await save(saver, "thread", WORDS)
            await saver.adelete_thread("thread")
            await saver.aget_tuple({"configurable": {"thread_id": "thread"}})
            (folder / "deleted").touch()
            time.sleep(PATIENCE)  # noqa: ASYNC251 (nothing else may run in this process)

    asyncio.run(run())


async def test_what_a_killed_process_left_in_the_log_goes_with_the_next_start(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_delete_and_hang, args=(tmp_path,))
    process.start()
    try:
        await until((tmp_path / "deleted").exists)
    finally:
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    assert holding(tmp_path) == ["checkpoints.sqlite-wal"]

    async with open_checkpointer(tmp_path / "checkpoints.sqlite"):
        await until(lambda: (tmp_path / "checkpoints.sqlite-wal").stat().st_size == 0)
        assert holding(tmp_path) == []


def _no_database(path: Path) -> None:
    path.write_bytes(b"This is no database. " * 400)


def _broken_pages(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE t (a)")
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))


@pytest.mark.parametrize("damage", [_no_database, _broken_pages])
@pytest.mark.parametrize("opened", [open_checkpointer, open_store])
async def test_a_damaged_file_is_refused_by_its_name(
    tmp_path: Path, damage: Callable[[Path], None], opened: Callable[[Path], AbstractAsyncContextManager[object]]
) -> None:
    path = tmp_path / "some.sqlite"
    damage(path)
    with pytest.raises(sqlite3.DatabaseError, match=r"some\.sqlite: .*: restore it from a backup, or move it away"):
        async with opened(path):
            pass
