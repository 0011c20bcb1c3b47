"""`palimpsest migrate`: memory and conversations from SQLite to Postgres, in one go or in several."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore, Item
from typer.testing import CliRunner

from graphs.chat import build_graph
from graphs.cli.main import main
from graphs.cli.shell import Shell
from graphs.persistence import open_checkpointer, open_store
from graphs.persistence.migration import open_migration
from graphs.persistence.postgres_saver import open_postgres_checkpointer
from graphs.persistence.postgres_store import open_postgres_store
from graphs.service import MemoryService
from graphs.settings import Settings
from tests.fakes import RecordingModel

Graph = CompiledStateGraph[Any, Any, Any, Any]
ADA = ("palimpsest", "u_ada", "default")
THREADS = ("one", "two", "three")


class Stopped(Exception):
    """The process was killed here."""


def stop_at(what: str, at: int) -> Callable[[str, int, int], None]:
    def told(kind: str, done: int, _: int) -> None:
        if kind == what and done >= at:
            raise Stopped

    return told


def chat(saver: Any, store: BaseStore) -> Graph:
    model = RecordingModel(respond=lambda _: "Yes.")
    service = MemoryService(Settings(trigger="run"), lambda *_: model)  # no update runs in this process
    return build_graph(service=service, tools=()).compile(checkpointer=saver, store=store)


def on(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "langgraph_auth_user_id": "ada"}}


async def said_in(graph: Graph, thread: str) -> list[tuple[str, str]]:
    state = await graph.aget_state(on(thread))
    return [(str(message.id), message.text) for message in state.values["messages"]]


async def history_of(graph: Graph, thread: str) -> list[tuple[Any, ...]]:
    return [
        (each.config["configurable"]["checkpoint_id"], each.next, len(each.values.get("messages", ())))
        async for each in graph.aget_state_history(on(thread))
    ]


async def all_of(store: BaseStore) -> dict[tuple[tuple[str, ...], str], Item]:
    return {(item.namespace, item.key): item for item in await store.asearch((), limit=5000)}


@pytest.fixture
async def files(tmp_path: Path) -> tuple[Path, Path]:
    """The two files of a folder in which somebody talked."""
    checkpoints, memory = tmp_path / "checkpoints.sqlite", tmp_path / "store.sqlite"
    async with open_checkpointer(checkpoints) as saver, open_store(memory) as store:
        graph = chat(saver, store)
        for thread in THREADS:
            for text in ("I like figs.", "And dates."):
                await graph.ainvoke({"messages": [HumanMessage(text)]}, on(thread))
        for n in range(1200):
            await store.aput((*ADA, "facts"), f"fact_{n:08x}", {"content": f"Likes fig no. {n} 🫐", "n": n})
        await store.aput((*ADA, "journal"), "line", {"text": "I like figs."})
    return checkpoints, memory


async def command(folder: Path, database: str, *words: str, **more: str) -> tuple[int, str, str]:
    shell = Shell(environ={"PALIMPSEST_DATA_DIR": str(folder), "DATABASE_URI": database, **more})
    done = await asyncio.to_thread(CliRunner().invoke, main, ["migrate", *words], obj=shell)
    return done.exit_code, done.stdout, done.stderr


async def test_everything_is_there_afterwards_and_counted(
    files: tuple[Path, Path], database: str, tmp_path: Path
) -> None:
    code, said, noted = await command(tmp_path, database, "--json")
    assert code == 0, noted
    counts = json.loads(said)
    assert counts["before"] == counts["after"]
    assert (counts["before"]["facts"], counts["before"]["threads"]) == (1200, len(THREADS))
    assert counts["before"]["journal"] == 1
    assert counts["before"]["items"] > counts["before"]["facts"] + counts["before"]["journal"]  # pending updates

    code, said, noted = await command(tmp_path, database)
    assert code == 0
    assert "This was done before" in noted
    assert "facts\t1200\t1200" in said


async def test_states_history_and_values_are_the_same(files: tuple[Path, Path], database: str) -> None:
    async with open_migration(*files, database) as migration:
        assert not await migration.begin()
        await migration.carry(lambda *_: None)
    async with (
        open_checkpointer(files[0]) as old_saver,
        open_store(files[1]) as old_store,
        open_postgres_checkpointer(database) as saver,
        open_postgres_store(database) as store,
    ):
        before, after = chat(old_saver, old_store), chat(saver, store)
        for thread in THREADS:
            assert await said_in(after, thread) == await said_in(before, thread)
            assert await history_of(after, thread) == await history_of(before, thread)
        old, new = await all_of(old_store), await all_of(store)
        assert {place: item.value for place, item in old.items()} == {place: item.value for place, item in new.items()}
        place = ((*ADA, "facts"), "fact_00000001")
        # SQLite's times name no zone, and are in this one.
        assert new[place].created_at.replace(tzinfo=None) == old[place].created_at
        assert new[place].created_at.utcoffset() == timedelta(0)

        await after.ainvoke({"messages": [HumanMessage("More.")]}, on("one"))
        assert [text for _, text in await said_in(after, "one")][-2:] == ["More.", "Yes."]


async def test_stopped_in_between_it_goes_on_where_it_was(files: tuple[Path, Path], database: str) -> None:
    for told in (stop_at("items of memory", 500), stop_at("threads", 1), stop_at("threads", 2)):
        async with open_migration(*files, database) as migration:
            assert not await migration.begin()
            with pytest.raises(Stopped):
                await migration.carry(told)
            assert (await migration.counts_before()).missing_from(await migration.counts_after())
    with psycopg.connect(database, autocommit=True) as connection:  # half a thread, as a kill leaves it
        connection.execute("DELETE FROM checkpoint_writes WHERE thread_id = (SELECT min(thread_id) FROM checkpoints)")
    async with open_migration(*files, database) as migration:
        await migration.begin()
        await migration.carry(lambda *_: None)
        assert await migration.counts_before() == await migration.counts_after()
        assert await migration.begin()  # done


async def test_a_database_with_memory_of_its_own_is_left_alone(
    files: tuple[Path, Path], database: str, tmp_path: Path
) -> None:
    async with open_postgres_store(database) as store:
        await store.aput(("palimpsest", "u_eve", "default", "facts"), "fact_1", {"content": "Likes tea"})
        code, _, noted = await command(tmp_path, database)
        assert code == 1
        assert "the database holds memory already" in noted
        assert len(await all_of(store)) == 1


async def test_it_says_what_is_missing(files: tuple[Path, Path], database: str, tmp_path: Path) -> None:
    async def refused(folder: Path, uri: str, **more: str) -> str:
        code, _, noted = await command(folder, uri, **more)
        assert code == 1
        return noted

    assert "DATABASE_URI names no database" in await refused(tmp_path, "")
    assert "there is no" in await refused(tmp_path / "elsewhere", database)
    assert "LANGGRAPH_AES_KEY" in await refused(tmp_path, database, LANGGRAPH_AES_KEY="k" * 16)
    assert "cannot be used" in await refused(tmp_path, "postgresql://ada:hunter2@127.0.0.1:1/x")
    async with open_store(files[1]):
        assert "stop it first" in await refused(tmp_path, database)
