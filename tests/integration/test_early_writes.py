"""What a task wrote before the first checkpoint of its thread, which a kill then prevented: deletions reach it."""

import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import HumanMessage

from graphs.persistence.durable_saver import EARLY_SECONDS
from graphs.persistence.sqlite_saver import CheckpointFile, open_checkpointer
from tests.postgres import Postgres
from tests.saver_graphs import echo_graph, on, say

if TYPE_CHECKING:
    from graphs.persistence.postgres_saver import CheckpointTables


@dataclass
class Place:
    """Somewhere that checkpoints are kept."""

    open: Callable[[], AbstractAsyncContextManager[Any]]
    known: "CheckpointFile | CheckpointTables"
    dump: Callable[[], bytes]
    age: Callable[[], None]
    """Lets all that is noted be from long ago."""


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgres":
        return postgres_place(request.getfixturevalue("postgres"))
    path = tmp_path / "checkpoints.sqlite"

    def age() -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE early_writes SET at = at - ?", (EARLY_SECONDS + 1,))

    def dump() -> bytes:
        return b"".join(each.read_bytes() for each in sorted(tmp_path.iterdir()))

    return Place(lambda: open_checkpointer(path), CheckpointFile(path), dump, age)


def postgres_place(postgres: Postgres) -> Place:
    from graphs.persistence.postgres_saver import CheckpointTables, open_postgres_checkpointer

    database = postgres.database()

    def age() -> None:
        with postgres.connect(database) as connection:
            connection.execute(f"UPDATE palimpsest_early_writes SET at = at - interval '{EARLY_SECONDS + 1} seconds'")

    return Place(
        lambda: open_postgres_checkpointer(database, 2),
        CheckpointTables(database),
        lambda: postgres.everything(database),
        age,
    )


async def write_early(saver: Any, thread: str, user: str) -> None:
    """Save what the first task of a thread wrote, as its process is killed before it saves the checkpoint."""
    config = on(thread, user=user)
    config["configurable"]["checkpoint_id"] = "1f1e6d6f-9bc8-6560-8017-2ee4e2cc6d21"
    await saver.aput_writes(config, [("messages", [HumanMessage("my secret is xyzzy")])], "task")


async def test_erasing_finds_them_by_their_user_and_leaves_nothing(place: Place) -> None:
    async with place.open() as saver:
        await write_early(saver, "adas", "ada")
        await write_early(saver, "nobodys", "")
        assert await place.known.threads_of(["ada"]) == ["adas"]
        assert await place.known.threads_of([""]) == ["nobodys"]
        assert await place.known.threads_of(["eve"]) == []
        for thread in ("adas", "nobodys"):
            await saver.adelete_thread(thread)
        assert await saver.aget_tuple(on("adas")) is await saver.aget_tuple(on("nobodys")) is None
        assert await place.known.threads_of(["ada", ""]) == []
    assert b"xyzzy" not in place.dump()


async def test_a_thread_that_got_its_checkpoint_is_its_users_by_that(place: Place) -> None:
    async with place.open() as saver:
        await write_early(saver, "T", "ada")
        await echo_graph(saver).ainvoke({"messages": [HumanMessage("hello")]}, on("T", user="ada"))
        place.age()
        await saver.adelete_thread("another")
        assert await place.known.threads_of(["ada"]) == ["T"]
        assert len((await saver.aget_tuple(on("T"))).checkpoint["channel_values"]["messages"]) == 2
    async with place.open() as saver:
        assert await saver.aget_tuple(on("T")) is not None


@pytest.mark.parametrize("at", ["the next start", "the next deletion"])
async def test_those_that_nobody_can_go_on_with_go_by_themselves_after_a_while(place: Place, at: str) -> None:
    async with place.open() as saver:
        await write_early(saver, "adas", "ada")
        await saver.adelete_thread("another")
        assert await saver.aget_tuple(on("another")) is None
        assert await place.known.threads_of(["ada"]) == ["adas"]  # it may be going on
        place.age()
        if at == "the next deletion":
            await saver.adelete_thread("another")
            assert await saver.aget_tuple(on("another")) is None
            assert await place.known.threads_of(["ada"]) == []
    async with place.open() as saver:
        assert await place.known.threads_of(["ada"]) == []
        await say(echo_graph(saver), "T", "hello")
    assert b"xyzzy" not in place.dump()
