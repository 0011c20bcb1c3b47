"""Files of a deployment: retention is no erase, and a server's are not erased."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from langgraph.store.memory import InMemoryStore

from palimpsest import FactStore, open_store
from tests.command_line import Failing, Typed
from tests.laws.doors import deleting_by_age, deletions_of
from tests.laws.talk import Talk


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
