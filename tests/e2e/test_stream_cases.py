"""Streams of a real server over graphs with subgraphs, parallel and sent tasks, interrupts, forks and errors."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from graphs.streaming import RunFailed, StreamEvent, StreamMode, pair_run_events, server_modes, stream_run_events
from tests.e2e.dev_server import PROJECT, DevServer
from tests.stream_checks import History, check, chunks
from tests.stream_graphs import State, graph

INPUT: State = {"log": ["in"]}
MODES: tuple[StreamMode, ...] = ("values", "updates", "tasks", "checkpoints", "custom", "messages", "debug")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    config = PROJECT / "tests/e2e/support/streams.json"
    with DevServer(tmp_path_factory.mktemp("streams"), config=config) as server:
        yield server


@pytest.fixture
async def client(server: DevServer) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=server.url) as client:
        yield client


@pytest.fixture
async def thread_id(client: LangGraphClient) -> str:
    return (await client.threads.create())["thread_id"]


async def collect(stream: AsyncIterator[StreamEvent]) -> list[StreamEvent]:
    return [event async for event in stream]


async def history_of(client: LangGraphClient, thread_id: str, events: list[StreamEvent]) -> History:
    namespaces = {"|".join(event["data"]["chunk"][0]) for event in events if is_chunk(event)}
    return await History.of_server(client, thread_id, graph.nodes.keys(), namespaces)


def is_chunk(event: StreamEvent) -> bool:
    return event["type"] == "on_chain_stream" and not event["parent_ids"]


async def test_S4_every_event_of_a_servers_run_carries_its_checkpoint(client: LangGraphClient, thread_id: str) -> None:
    events = await collect(stream_run_events(client, thread_id, "cases", input=INPUT, stream_mode=MODES))
    history = await history_of(client, thread_id, events)
    assert len(history.namespaces) == 2
    check(events, history)


async def test_S3_a_servers_run_has_the_events_of_the_run_in_process(client: LangGraphClient, thread_id: str) -> None:
    remote = await collect(stream_run_events(client, thread_id, "cases", input=INPUT))
    local = [
        event
        async for event in graph.astream_events(
            INPUT, version="v2", stream_mode=["values", "updates"], subgraphs=True, config={"run_name": "cases"}
        )
    ]
    assert sorted((event["event"], event["name"]) for event in remote) == sorted(
        (event["event"], event["name"]) for event in local
    )
    assert [chunk for mode, chunk in chunks(remote) if mode == "values"][-1] == local[-1]["data"]["output"]
