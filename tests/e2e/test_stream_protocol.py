"""The newest protocol (`threads.stream`) in both SDKs."""

from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.javascript import run_javascript
from tests.stream_checks import History
from tests.stream_graphs import State, graph

INPUT: State = {"log": ["in"]}
CHANNELS = ["values", "updates", "custom", "tasks", "checkpoints"]


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve("tests/e2e/support/streams.json")


async def read(client: LangGraphClient, thread_id: str) -> list[Any]:
    async with client.threads.stream(thread_id, assistant_id="cases") as thread:
        await thread.run.start(input=INPUT)
        return [event async for event in thread.subscribe(CHANNELS)]


@pytest.fixture(params=["python", "javascript"])
async def run(request: pytest.FixtureRequest, server: DevServer, client: LangGraphClient) -> tuple[list[Any], History]:
    thread_id = (await client.threads.create())["thread_id"]
    if request.param == "python":
        events = await read(client, thread_id)
    else:
        events = run_javascript(
            "protocol.mjs", url=server.url, threadId=thread_id, assistantId="cases", channels=CHANNELS, input=INPUT
        )
    namespaces = {"|".join(event["params"]["namespace"]) for event in events}
    return events, await History.of_server(client, thread_id, graph.nodes.keys(), namespaces)


def of(events: list[Any], *methods: str, nested: bool = False) -> list[tuple[str, Any]]:
    return [
        (event["method"], event["params"]["data"])
        for event in events
        if event["method"] in methods and bool(event["params"]["namespace"]) == nested
    ]


async def test_S1_both_sdks_get_every_channel_once(run: tuple[list[Any], History]) -> None:
    events, _ = run
    assert {event["method"] for event in events} == set(CHANNELS)
    assert [data["name"] for _, data in of(events, "custom")].count("looked") == 1
    assert [data["name"] for _, data in of(events, "tasks")].count("use_tool") == 2
    assert len([data for _, data in of(events, "updates")]) == 7
    assert [data["log"][-1] for _, data in of(events, "values")] == ["in", "x!", "each", "note"]


async def test_S4_both_sdks_get_a_subgraphs_envelopes(run: tuple[list[Any], History]) -> None:
    events, history = run
    envelopes = [envelope for _, envelope in of(events, "checkpoints", nested=True)]
    assert len(envelopes) == 4
    assert all(envelope == history.known[envelope["id"]].envelope for envelope in envelopes)


async def test_S5_javascript_can_subscribe_to_one_event_by_name(server: DevServer, client: LangGraphClient) -> None:
    thread_id = (await client.threads.create())["thread_id"]
    options: dict[str, Any] = {
        "threadId": thread_id,
        "assistantId": "cases",
        "channels": ["custom:looked"],
        "input": INPUT,
    }
    assert run_javascript("protocol.mjs", url=server.url, **options) == [{"word": "x"}]
