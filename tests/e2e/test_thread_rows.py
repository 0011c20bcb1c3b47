"""Runs without a thread, whose temporary threads the server deletes, cost nobody's thread."""

import asyncio
from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.speaking import say

PATIENCE = 90.0


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_SWEEP_SECONDS="1")


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


async def test_after_a_restart_a_turn_at_once_ends(server: DevServer, client: LangGraphClient) -> None:
    threads = [(await client.threads.create())["thread_id"] for _ in range(5)]
    await asyncio.gather(*(turn(client, thread) for thread in threads), *(turn(client, None) for _ in range(10)))
    await asyncio.to_thread(server.restart)
    async with get_client(url=server.url) as again:
        states = await asyncio.gather(*(turn(again, thread) for thread in threads))
    assert [len(state["messages"]) for state in states] == [4] * 5
