"""Streams of a real server over graphs with subgraphs, parallel and sent tasks, interrupts, forks and errors."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

from graphs.streaming import (
    StreamEvent,
    StreamMode,
    pair_run_events,
    server_modes,
    stream_run_events,
)
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.stream_checks import History, check
from tests.stream_graphs import State, graph

INPUT: State = {"log": ["in"]}
MODES: tuple[StreamMode, ...] = ("values", "updates", "tasks", "checkpoints", "custom", "messages", "debug")


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve("tests/e2e/support/streams.json")


async def collect(stream: AsyncIterator[StreamEvent]) -> list[StreamEvent]:
    return [event async for event in stream]


async def history_of(client: LangGraphClient, thread_id: str, events: list[StreamEvent]) -> History:
    namespaces = {"|".join(event["data"]["chunk"][0]) for event in events if is_chunk(event)}
    return await History.of_server(client, thread_id, graph.nodes.keys(), namespaces)


def is_chunk(event: StreamEvent) -> bool:
    return event["type"] == "on_chain_stream" and not event["parent_ids"]


def mode_of(event: StreamEvent) -> str:
    return str(event["data"]["chunk"][1])


async def test_S4_an_interrupt_its_resume_and_a_fork_carry_their_checkpoints(
    client: LangGraphClient, thread_id: str
) -> None:
    asked = await collect(
        stream_run_events(client, thread_id, "cases", input={**INPUT, "ask": True}, stream_mode=MODES)
    )
    resumed = await collect(stream_run_events(client, thread_id, "cases", command={"resume": "yes"}, stream_mode=MODES))
    history = await history_of(client, thread_id, [*asked, *resumed])
    check([event for event in asked if not is_half_a_step(event, asked)], history)
    check(resumed, history)
    assert resumed[0]["checkpoint"] == asked[-1]["checkpoint"]
    assert "answered yes" in resumed[-1]["data"]["output"]["log"]

    middle = next(known for known in history.known.values() if ("nested" in str(known.tasks)) and not known.namespace)
    forked = await collect(
        stream_run_events(client, thread_id, "cases", checkpoint_id=middle.envelope["id"], stream_mode=MODES)
    )
    check([event for event in forked if not is_half_a_step(event, forked)], await history_of(client, thread_id, forked))
    assert forked[0]["checkpoint"] is not None
    assert forked[0]["checkpoint"]["source"] == "fork"
    assert forked[0]["checkpoint"]["parent_id"] == middle.envelope["id"]


def is_half_a_step(event: StreamEvent, events: list[StreamEvent]) -> bool:
    """Say whether these are the last values of an interrupted step: its checkpoint plus the finished tasks' writes."""
    values = [
        event for event in events if is_chunk(event) and not event["data"]["chunk"][0] and mode_of(event) == "values"
    ]
    return event is values[-1] and "__interrupt__" not in event["data"]["chunk"][2]


async def test_S6_a_run_can_be_joined_from_its_first_event(client: LangGraphClient, thread_id: str) -> None:
    run = await client.runs.create(
        thread_id, "cases", input=INPUT, stream_mode=server_modes(), stream_subgraphs=True, stream_resumable=True
    )
    parts = client.runs.join_stream(thread_id, run["run_id"], last_event_id="-1")
    events = await collect(pair_run_events(parts))
    check(events, await history_of(client, thread_id, events))
    assert (events[0]["type"], events[-1]["type"]) == ("on_chain_start", "on_chain_end")


async def test_S6_leaving_the_stream_cancels_the_run_where_that_is_asked_for(
    client: LangGraphClient, thread_id: str
) -> None:
    options: dict[str, Any] = {"input": {**INPUT, "wait": True}, "on_disconnect": "cancel"}
    async with aclosing(stream_run_events(client, thread_id, "cases", **options)) as events:
        async for event in events:
            if event["name"] == "waiting":
                break
    (run,) = await client.runs.list(thread_id)
    await client.runs.join(thread_id, run["run_id"])
    assert (await client.runs.get(thread_id, run["run_id"]))["status"] == "interrupted"
