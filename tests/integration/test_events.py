"""The emitter in every stream, from every place a node can emit from."""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from langgraph.errors import GraphInterrupt
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.stream import CustomTransformer
from langgraph.types import interrupt
from typing_extensions import TypedDict

from graphs.process.events import MemoryQueued, aemit, emit
from graphs.streaming import stream_events
from graphs.streaming.envelopes import StreamMode

QUEUED = MemoryQueued(entry="e1", due="2026-01-01T00:00:00+00:00")
CHUNK = {"name": QUEUED.name, "payload": QUEUED.model_dump(mode="json")}


class State(TypedDict, total=False):
    done: bool


Graph = CompiledStateGraph[State, None, State, State]


def graph_of(node: Callable[..., Any]) -> Graph:
    builder = StateGraph(State)
    builder.add_node("emitting", node)
    builder.add_edge(START, "emitting")
    builder.add_edge("emitting", END)
    return builder.compile()


def sync_node(state: State) -> State:
    emit(QUEUED.name, QUEUED)
    return {"done": True}


async def async_node(state: State) -> State:
    await aemit(QUEUED.name, QUEUED)
    return {"done": True}


async def sync_emit_in_async_node(state: State) -> State:
    emit(QUEUED.name, QUEUED)
    return {"done": True}


async def task_in_async_node(state: State) -> State:
    await asyncio.create_task(aemit(QUEUED.name, QUEUED))
    return {"done": True}


async def thread_in_async_node(state: State) -> State:
    await asyncio.to_thread(emit, QUEUED.name, QUEUED)
    return {"done": True}


def bare_thread_with_config(state: State, config: RunnableConfig) -> State:
    thread = threading.Thread(target=emit, args=(QUEUED.name, QUEUED), kwargs={"config": config})
    thread.start()
    thread.join()
    return {"done": True}


@tool
async def emitting_tool() -> str:
    """Emit from a tool."""
    await aemit(QUEUED.name, QUEUED)
    return "ok"


async def tool_in_node(state: State) -> State:
    await emitting_tool.ainvoke({})
    return {"done": True}


async def subgraph_in_node(state: State) -> State:
    await graph_of(async_node).ainvoke({})
    return {"done": True}


PLACES = [
    sync_node,
    async_node,
    sync_emit_in_async_node,
    task_in_async_node,
    thread_in_async_node,
    bare_thread_with_config,
    tool_in_node,
    subgraph_in_node,
]


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol:langchain_core._api.LangChainBetaWarning")
@pytest.mark.parametrize("node", PLACES)
async def test_S5_an_emitted_event_arrives_once_in_each_stream(node: Callable[..., Any]) -> None:
    graph = graph_of(node)
    events = [event async for event in graph.astream_events({}, version="v2") if event["event"] == "on_custom_event"]
    assert [(event["name"], event["data"]) for event in events] == [(CHUNK["name"], CHUNK["payload"])]
    assert [chunk async for _, chunk in graph.astream({}, stream_mode="custom", subgraphs=True)] == [CHUNK]
    newest = await graph.astream_events({}, version="v3", transformers=[CustomTransformer])
    assert [event["params"]["data"] async for event in newest if event["method"] == "custom"] == [CHUNK]


async def test_S5_what_a_node_writes_itself_arrives_once_as_on_custom_event() -> None:
    def node(state: State) -> State:
        get_stream_writer()({"progress": 1})
        emit(QUEUED.name, QUEUED)
        return {"done": True}

    choices: list[list[StreamMode]] = [["values"], ["values", "custom"]]
    for modes in choices:
        events = [event async for event in stream_events(graph_of(node), {}, stream_mode=modes)]
        told = [(each["name"], each["data"]) for each in events if each["event"] == "on_custom_event"]
        assert sorted(told, key=str) == sorted([("custom", {"progress": 1}), (QUEUED.name, CHUNK["payload"])], key=str)
        root = [each for each in events if each["event"] == "on_chain_stream" and not each["parent_ids"]]
        written = [each["data"]["chunk"][2] for each in root if each["data"]["chunk"][1] == "custom"]
        assert written == ([{"progress": 1}, CHUNK] if "custom" in modes else [])


async def test_S5_outside_a_run_nothing_happens_but_a_debug_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="graphs.process.events"):
        emit(QUEUED.name, QUEUED)
        await aemit(QUEUED.name, QUEUED)
    assert [record.levelname for record in caplog.records] == ["DEBUG", "DEBUG"]


async def test_S5_an_interrupt_raised_around_an_emit_is_not_swallowed() -> None:
    async def asks(state: State) -> State:
        try:
            await aemit("asking", {"at": interrupt("may I?")})
        except GraphInterrupt:
            emit("interrupted", None)
            raise
        return {"done": True}

    (update,) = [chunk async for chunk in graph_of(asks).astream({}, stream_mode="updates")]
    assert [asked.value for asked in update["__interrupt__"]] == ["may I?"]
    (chunk,) = [chunk async for chunk in graph_of(asks).astream({}, stream_mode="custom")]
    assert chunk == {"name": "interrupted", "payload": None}
