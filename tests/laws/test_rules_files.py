"""Files of a deployment: no word is readable without the key, retention is no erase, and a server's are not erased."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from langgraph.store.memory import InMemoryStore

from palimpsest import FactStore, Settings, open_store
from tests.command_line import Failing, Typed
from tests.laws.doors import deleting_by_age, deletions_of, open_files
from tests.laws.talk import Talk

KEY, OTHER = b"0123456789abcdef0123456789abcdef", b"fedcba9876543210"
WORDS = ("zeppelin", "figs", "marmalade")


@asynccontextmanager
async def opened(folder: Path, key: bytes) -> AsyncIterator[Talk]:
    settings: dict[str, Any] = {"data_dir": folder, "encryption_key": key}
    async with open_files(Settings(**settings)) as (store, saver):
        talk = Talk(store=store, saver=saver, settings=settings)
        talk.chat.respond = lambda _: "Marmalade it is: marmalade."
        yield talk


def found_in(folder: Path) -> set[str]:
    files = [path.read_bytes() for path in folder.iterdir()]
    assert len(files) >= 2
    return {word for word in WORDS for content in files if word.encode() in content}


@pytest.mark.parametrize("key", [KEY, OTHER, b""])
async def test_with_a_key_no_word_is_readable_and_all_comes_back(tmp_path: Path, key: bytes) -> None:
    async with opened(tmp_path, key) as talk:
        await talk.say("I like figs. My zeppelin is purple.")
        assert await talk.learn() == ["Likes figs"]
        assert not key or found_in(tmp_path) == set(), "not in the log either, while it is open"
    assert found_in(tmp_path) == (set() if key else set(WORDS))
    for wrong in {KEY, OTHER, b""} - {key} if key else ():
        with pytest.raises(Exception, match="LANGGRAPH_AES_KEY"):
            async with opened(tmp_path, wrong):
                pass
    async with opened(tmp_path, key or KEY) as talk:  # what was written before there was a key is read on
        assert (await talk.values())["messages"][0].text == "I like figs. My zeppelin is purple."
        assert len((await talk.say("And now?"))["messages"]) == 4
        assert "figs" in talk.shown()


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


async def test_nothing_is_erased_in_local_files_that_another_process_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    alone = Typed(Failing(httpx.ConnectError("no server")), {"PALIMPSEST_DATA_DIR": str(tmp_path)})
    async with open_store(tmp_path / "store.sqlite") as store:
        fact = await FactStore(store, "local").acreate("Likes figs", "preference", 0.9)
        erase = ("erase", "fact", fact.id, "--yes", "--local")
        assert "another process has" in await asyncio.to_thread(alone.refused, *erase)
    await asyncio.to_thread(alone, *erase)
    assert b"figs" not in (tmp_path / "store.sqlite").read_bytes()
