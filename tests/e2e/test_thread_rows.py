"""Runs without a thread, whose temporary threads the server deletes, cost nobody's thread."""

import asyncio
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.speaking import say
from tests.limits import limits

PATIENCE = 180.0


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(**limits(sweep_seconds=1))


async def turn(client: LangGraphClient, thread_id: str | None) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await client.runs.wait(thread_id, "chat", input=say("Hello."))


async def test_ten_runs_without_a_thread_at_once_lose_nobodys_thread(
    server: DevServer, client: LangGraphClient
) -> None:
    made: list[str] = []

    async def make(number: int) -> None:
        for _ in range(number):
            made.append((await client.threads.create())["thread_id"])
            await asyncio.sleep(0.05)

    for _ in range(4):
        await asyncio.gather(make(3), *(turn(client, None) for _ in range(10)))
    found = {str(thread["thread_id"]) for thread in await client.threads.search(limit=1000)}
    assert found == set(made)
    for thread_id in made:
        await client.threads.get(thread_id)


async def test_threads_are_deleted_and_erased_while_others_read(server: DevServer, client: LangGraphClient) -> None:
    read = (await client.threads.create())["thread_id"]
    for _ in range(8):
        await turn(client, read)
    doomed = [(await client.threads.create(graph_id="chat"))["thread_id"] for _ in range(90)]
    await asyncio.gather(
        *(client.threads.update_state(thread, say("Hello."), as_node="flush_memory") for thread in doomed)
    )
    done = asyncio.Event()

    async def look() -> None:
        while not done.is_set():
            assert await client.threads.get_history(read, limit=100)

    readers = [asyncio.create_task(look()) for _ in range(3)]
    for thread in doomed[:60]:
        await client.threads.delete(thread)
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as memory:
        answers = [await memory.post("/memory/erase/thread", json={"thread_id": thread}) for thread in doomed[60:]]
    done.set()
    await asyncio.gather(*readers)
    assert {answer.status_code for answer in answers} == {200}
    left = {str(thread["thread_id"]) for thread in await client.threads.search(limit=1000)}
    assert not left.intersection(doomed)


async def test_everything_is_erased_while_turns_run_and_end(server: DevServer, client: LangGraphClient) -> None:
    for number in range(12):
        thread = (await client.threads.create())["thread_id"]
        await client.runs.create(thread, "chat", input=say(f"{number}: Hello."))
    async with httpx.AsyncClient(base_url=f"{server.url}/memory", timeout=PATIENCE) as memory:
        assert (await memory.post("/erase/everything", json={"erase": "everything"})).status_code == 200
    assert await client.threads.search(metadata={"graph_id": "chat"}, limit=100) == []
