"""Files of a deployment: retention is no erase, and a server's are not erased."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import httpx
import pytest
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from palimpsest import FactStore, open_checkpointer, open_store
from tests.command_line import Failing, Typed
from tests.fakes import Clock
from tests.laws.doors import House
from tests.laws.operations import take_in
from tests.laws.starting import deleting_by_age, deletions_of, locked_files_wait
from tests.laws.talk import Talk
from tests.stores import refuses_what_expires
from tests.stories.serving import PROJECT

FULL = "the disk is full: make room and try again"


async def granted(_: Any, __: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


@pytest.mark.parametrize("by_age", [True, False])
async def test_retention_takes_nothing_along_that_memory_learned_and_a_person_does(by_age: bool) -> None:
    talk, thread = Talk(store=InMemoryStore()), str(UUID(int=1))
    await talk.say("I like figs", thread)
    await talk.learn()
    door = deletions_of(granted, talk.store, talk.clock)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(door), base_url="http://here") as client:

        async def delete() -> int:
            if by_age:
                deleting_by_age()
            return (await client.delete(f"/threads/{thread}")).status_code

        assert await asyncio.create_task(delete()) == 200
    assert await talk.known() == (["Likes figs"] if by_age else [])


async def test_no_door_of_the_store_takes_an_item_that_is_to_expire(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.sqlite") as store:
        await refuses_what_expires(store)


@asynccontextmanager
async def open_files(folder: Path) -> AsyncIterator[tuple[Any, Any]]:
    """Open the files of a deployment."""
    async with open_store(folder / "store.sqlite") as store, open_checkpointer(folder / "checkpoints.sqlite") as saver:
        yield store, saver


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.iterdir()]


def readable_by_others(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.stat().st_mode & 0o077]


@pytest.mark.parametrize("seed", [1, 17, 21])
async def test_words_of_rows_that_moved_between_pages_go_with_an_erase(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    tapirs: dict[str, Any] = {}
    async with open_files(tmp_path) as (store, saver):
        house = House(store, saver, {}, Clock(), tmp_path)
        await house.facts.acreate("Keeps an axolotl", "preference", 0.9)
        (ours,) = await store.alist_namespaces(suffix=("facts",))
        for _ in range(40):  # rows that grow push others to another page, where they are erased
            grown = {str(key): chance.randrange(1, 100) for key in chance.sample(range(60), 20)}
            axolotls = {key: {"text": "axolotl " * size} for key, size in grown.items() if int(key) % 3 == 0}
            changed = {key: {"text": "tapir " * size} for key, size in grown.items() if key not in axolotls}
            tapirs |= changed
            puts = [PutOp(ours, *each) for each in axolotls.items()]
            await store.abatch(puts + [PutOp(("eve",), *each) for each in changed.items()])
        assert (await house.ask("POST", "/erase/everything", {"erase": "everything"}))[0] == 200
        assert b"axolotl" not in b"".join(await asyncio.to_thread(contents, tmp_path))
        assert {item.key: item.value for item in await store.asearch(("eve",), limit=60)} == tapirs


@pytest.mark.parametrize("what", ["source", "fact", "thread"])
async def test_what_is_erased_is_in_no_file_any_more_once_that_is_answered(tmp_path: Path, what: str) -> None:
    async with open_files(tmp_path) as files:
        house, thread = House(*files, {}, Clock(), tmp_path), str(UUID(int=1))
        if what == "source":
            assert await take_in(house, "diary", "I like axolotls.") == 200
        elif what == "thread":
            await house.say(thread, "I like axolotls.")
        else:
            await house.facts.acreate("Likes axolotls", "preference", 0.9)
        await house.learn()
        (fact,) = await house.facts.alist()
        named = {"source": {"source": "diary"}, "fact": {"fact_id": fact.id}, "thread": {"thread_id": thread}}[what]
        assert b"axolotls" in b"".join(await asyncio.to_thread(contents, tmp_path))
        assert (await house.ask("POST", f"/erase/{what}", named))[0] == 200
        assert b"axolotls" not in b"".join(await asyncio.to_thread(contents, tmp_path))


async def test_a_thread_that_a_program_named_as_no_server_would_keeps_none_from_being_erased(tmp_path: Path) -> None:
    now = asyncio.get_running_loop().time
    async with open_files(tmp_path) as files:
        house = House(*files, {}, Clock(), tmp_path)
        await house.say("of a program", "I like axolotls.")
        del house.rows["of a program"]
        await house.say(str(UUID(int=1)), "I like figs.")
        await house.learn()
        before = now()
        status, done = await house.ask("POST", "/erase/everything", {"erase": "everything"})
        assert (status, done["threads"], done["still_in_threads"]) == (200, 1, ["of a program"])
        assert now() - before < 6  # it would wait longer for what the server may still delete
        assert "once more" not in done["note"]  # which would not help
        assert "delete them with that program" in done["note"]


async def test_files_that_others_could_read_are_closed_when_they_are_opened(tmp_path: Path) -> None:
    for name in ("store.sqlite", "store.sqlite-wal"):
        (tmp_path / name).touch(0o644)
    async with open_store(tmp_path / "store.sqlite") as store:
        await FactStore(store, "local").acreate("Likes figs", "preference", 0.9)
        assert await asyncio.to_thread(readable_by_others, tmp_path) == []


async def test_a_full_disk_is_named_where_it_stops_something_and_what_was_there_stays(tmp_path: Path) -> None:
    async with open_files(tmp_path) as files:
        connections = [each.conn for each in files]
        house = House(*files, {}, Clock(), tmp_path)

        _, fact = await house.ask("POST", "/facts", {"content": "Likes figs", "category": "preference"})

        async def edit(number: int) -> tuple[int, Any]:
            return await house.ask("PATCH", f"/facts/{fact['id']}", {"content": f"Likes {number} figs"})

        for each in connections:
            await each.execute("PRAGMA max_page_count = 1")
        # What has room in the pages that are there is written.
        status, problem = next(each for each in [await edit(number) for number in range(60)] if each[0] != 200)
        assert (status, problem["detail"]) == (503, f"{tmp_path / 'store.sqlite'}: {FULL}")
        with pytest.raises(RuntimeError, match=rf"checkpoints\.sqlite: {FULL}"):  # a server hides what others say
            await house.say("thread", "x" * 100_000)
        for each in connections:
            await each.execute("PRAGMA max_page_count = 1000000")
        assert [fact.content.split()[0] for fact in await house.facts.alist()] == ["Likes"]
        assert (await edit(60))[0] == 200
        assert await asyncio.to_thread(house.service.close), "what was left is written down as there is room again"


_LIMITED = """
import asyncio, resource, sys
from pathlib import Path
from langgraph.checkpoint.memory import InMemorySaver
from palimpsest import open_store
from tests.fakes import Clock
from tests.laws.doors import House
async def main(file: Path) -> None:
    async with open_store(file) as store:
        house = House(store, InMemorySaver(), {}, Clock())
        for limit in (max(each.stat().st_size for each in file.parent.iterdir()), resource.RLIM_INFINITY):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            print(*await house.ask("POST", "/facts", {"content": "Likes figs", "category": "preference"}))
asyncio.run(main(Path(sys.argv[1])))
"""


async def test_a_limit_of_the_size_of_files_is_named_too(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _LIMITED, str(tmp_path / "store.sqlite")]
    done = await asyncio.to_thread(subprocess.run, command, cwd=PROJECT, capture_output=True, text=True, check=False)
    first, second = done.stdout.splitlines()
    assert first.startswith("503 ")
    assert "store.sqlite: the disk fails, or is at a limit" in first
    assert second.startswith("201 ")


async def test_a_command_that_waits_in_vain_for_a_locked_file_names_it_and_has_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked_files_wait(monkeypatch, 0.1)
    alone = Typed(Failing(httpx.ConnectError("no server")), {"PALIMPSEST_DATA_DIR": str(tmp_path)})
    async with open_store(tmp_path / "store.sqlite") as store:
        await FactStore(store, "local").acreate("Likes figs", "preference", 0.9)
    with closing(sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)) as viewer:
        viewer.execute("BEGIN EXCLUSIVE")
        said = await asyncio.to_thread(alone.refused, "facts", "add", "Likes dates", "--local")
    assert "store.sqlite: another program has locked the file" in said
    told = await asyncio.to_thread(alone, "facts", "list", "--local")
    assert ("figs" in told, "dates" in told) == (True, False)


async def test_a_turn_waits_once_for_a_locked_file_however_often_it_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked_files_wait(monkeypatch, 4.0)
    async with open_files(tmp_path) as files:
        house = House(*files, {}, Clock(), tmp_path)
        await house.say("thread", "I like figs")
        with closing(sqlite3.connect(tmp_path / "checkpoints.sqlite", isolation_level=None)) as viewer:
            viewer.execute("BEGIN EXCLUSIVE")
            with pytest.raises(RuntimeError, match="another program has locked the file"):
                async with asyncio.timeout(16):
                    await house.say("thread", "I like dates")
        await house.say("thread", "I like plums")


async def test_what_a_terminal_cannot_show_is_escaped_and_fails_nothing(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.sqlite"):
        pass
    alone = Typed(Failing(httpx.ConnectError("no server")), {"PALIMPSEST_DATA_DIR": str(tmp_path)}, charset="latin-1")
    assert r"\u5bff\u53f8 \U0001f600 é" in await asyncio.to_thread(alone, "facts", "add", "Likes 寿司 😀 é", "--local")
    listed = await asyncio.to_thread(alone.json, "facts", "list", "--local")
    assert [fact["content"] for fact in listed["facts"]] == ["Likes 寿司 😀 é"]
