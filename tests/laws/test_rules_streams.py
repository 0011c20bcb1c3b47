"""Every event of every shape of graph carries the checkpoint that the thread's history says it should."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import pytest
from langchain_core.outputs import ChatGenerationChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Durability
from pydantic import Field

from palimpsest import StreamEvent, aemit, stream_events
from tests.fakes import RecordingModel
from tests.stream_checks import CONFIG, History, check, chunks, head
from tests.stream_graphs import SHAPES, Shape, State, called, inner, outer, retrying

INPUT: State = {"log": ["in"]}
MODES: tuple[Any, ...] = ("values", "updates", "tasks", "checkpoints", "custom", "messages", "debug")


async def collect(stream: AsyncIterator[StreamEvent]) -> list[StreamEvent]:
    return [event async for event in stream]


async def collect_into(events: list[StreamEvent], stream: AsyncIterator[StreamEvent]) -> None:
    async for event in stream:
        events.append(event)


def names(events: list[StreamEvent]) -> set[tuple[str, str]]:
    return {(event["type"], event["name"]) for event in events}


def chunk_of(event: StreamEvent) -> object:
    return event["data"]["chunk"][-1] if event["type"] == "on_chain_stream" and not event["parent_ids"] else None


@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "without"])
async def test_S4_every_event_of_every_shape_carries_its_checkpoint(shape: Shape, durability: Durability) -> None:
    saver = InMemorySaver()
    graph = outer(SHAPES[shape], saver)
    events = await collect(stream_events(graph, INPUT, CONFIG, stream_mode=MODES, durability=durability))
    check(events, History.of(saver, graph))


async def test_S4_a_subgraph_without_checkpoints_carries_those_of_the_graph_around_it() -> None:
    saver = InMemorySaver()
    graph = outer(SHAPES["without"], saver)
    events = await collect(stream_events(graph, INPUT, CONFIG, stream_mode=MODES))
    history = History.of(saver, graph)
    assert history.namespaces == {""}
    check(events, history)
    spoken = [event for event in events if event["metadata"].get("langgraph_node") == "speak"]
    assert {cast(Any, event["checkpoint"])["step"] for event in spoken} == {1}


async def test_S4_the_functional_interface_carries_its_checkpoints_too() -> None:
    saver = InMemorySaver()

    @entrypoint(checkpointer=saver)
    async def workflow(words: list[str]) -> int:
        return len([await called(word) for word in words])

    events = await collect(stream_events(workflow, ["a", "b"], CONFIG, stream_mode=MODES))
    ended = saver.get_tuple(CONFIG)
    assert ended
    assert ended.parent_config
    assert events[-1]["checkpoint"]
    assert events[-1]["checkpoint"]["id"] == ended.checkpoint["id"]
    assert [event["checkpoint"] for event in events if ("values", 2) in [chunk_pair(event)]] == [
        events[-1]["checkpoint"]
    ]
    inside = {event["checkpoint"]["id"] for event in events if event["checkpoint"] and event["parent_ids"]}
    assert inside == {ended.parent_config["configurable"]["checkpoint_id"]}


def chunk_pair(event: StreamEvent) -> object:
    return event["data"]["chunk"][1:] if event["type"] == "on_chain_stream" and not event["parent_ids"] else None


async def test_S4_a_node_that_is_tried_again_carries_the_same_checkpoint() -> None:
    saver = InMemorySaver()
    graph = retrying(saver)
    events = await collect(stream_events(graph, INPUT, CONFIG, stream_mode=MODES))
    check(events, History.of(saver, graph))
    flaky = [event["checkpoint"] for event in events if event["name"] == "flaky"]
    assert len([event for event in events if event["type"] == "on_custom_event"]) == 2
    assert all(checkpoint == flaky[0] for checkpoint in flaky)


@pytest.mark.parametrize("shape", ["subgraph", "own"])
async def test_S4_an_interrupt_and_its_resume_carry_their_checkpoints(shape: Shape) -> None:
    saver = InMemorySaver()
    graph = outer(SHAPES[shape], saver)
    asked = await collect(stream_events(graph, {**INPUT, "ask": True}, CONFIG, stream_mode=MODES))
    at_interrupt = History.of(saver, graph)
    # The last values are the head with the finished tasks' writes applied: what `get_state` shows, no checkpoint's.
    (last,) = [event for event in asked if chunk_of(event) == graph.get_state(CONFIG).values]
    assert last["checkpoint"] == head(graph)
    check([event for event in asked if event is not last], at_interrupt)
    newest = max(at_interrupt.known)
    # Nothing announces a checkpoint after an interrupt, so its values must not wait for one.
    modes = [mode for mode, chunk in chunks(asked) if mode == "tasks" or "__interrupt__" in chunk]
    assert modes[-3:] == ["updates", "values", "tasks"]
    assert (asked[-1]["type"], asked[-1]["checkpoint"]) == ("on_chain_end", head(graph))

    resumed = await collect(stream_events(graph, Command(resume="yes"), CONFIG, stream_mode=MODES))
    check(resumed, History.of(saver, graph))
    assert resumed[0]["checkpoint"] == asked[-1]["checkpoint"]
    assert resumed[-1]["checkpoint"] == head(graph)
    assert head(graph)["id"] > newest
    assert "answered yes" in resumed[-1]["data"]["output"]["log"]


async def test_S4_stops_before_and_after_a_node_carry_their_checkpoints() -> None:
    saver = InMemorySaver()
    graph = outer(inner(), saver)
    before = await collect(stream_events(graph, INPUT, CONFIG, stream_mode=MODES, interrupt_before=["nested"]))
    assert before[-1]["checkpoint"] == head(graph)
    after = await collect(stream_events(graph, None, CONFIG, stream_mode=MODES, interrupt_after=["nested"]))
    assert after[0]["checkpoint"] == before[-1]["checkpoint"]
    assert after[-1]["checkpoint"] == head(graph)
    rest = await collect(stream_events(graph, None, CONFIG, stream_mode=MODES))
    for events in (before, after, rest):
        check(events, History.of(saver, graph))


@pytest.mark.parametrize("shape", ["subgraph", "own"])
async def test_S4_a_fork_from_every_older_checkpoint_carries_its_own(shape: Shape) -> None:
    saver = InMemorySaver()
    graph = outer(SHAPES[shape], saver)
    await collect(stream_events(graph, INPUT, CONFIG))
    for snapshot in list(graph.get_state_history(CONFIG)):
        if not snapshot.next:
            continue
        events = await collect(stream_events(graph, None, snapshot.config, stream_mode=MODES))
        check(events, History.of(saver, graph))
        first = cast(Any, events[0]["checkpoint"])
        assert first["parent_id"] == snapshot.config["configurable"]["checkpoint_id"]
        assert first["source"] == "fork"


async def test_S4_an_edited_state_and_new_input_on_an_older_checkpoint_carry_their_own() -> None:
    saver = InMemorySaver()
    graph = outer(inner(), saver)
    await collect(stream_events(graph, INPUT, CONFIG))
    middle = next(snapshot for snapshot in graph.get_state_history(CONFIG) if "nested" in snapshot.next)
    edited = graph.update_state(middle.config, {"log": ["edited"]}, as_node="use_tool")
    from_edit = await collect(stream_events(graph, None, edited, stream_mode=MODES))
    again = await collect(stream_events(graph, {"log": ["again"]}, middle.config, stream_mode=MODES))
    check(from_edit, History.of(saver, graph))
    check(again, History.of(saver, graph))
    assert cast(Any, from_edit[0]["checkpoint"])["source"] == "update"
    assert cast(Any, again[0]["checkpoint"])["source"] == "input"


async def test_S4_a_second_turn_carries_new_checkpoints() -> None:
    saver = InMemorySaver()
    graph = outer(inner(True), saver)
    first = await collect(stream_events(graph, INPUT, CONFIG, stream_mode=MODES))
    second = await collect(stream_events(graph, INPUT, CONFIG, stream_mode=MODES))
    check(second, History.of(saver, graph))
    start = cast(Any, second[0]["checkpoint"])
    assert start["source"] == "input"
    assert start["parent_id"] == cast(Any, first[-1]["checkpoint"])["id"]


async def test_S4_a_node_that_raises_ends_the_stream_after_all_it_sent() -> None:
    saver = InMemorySaver()
    graph = outer(inner(), saver)
    events: list[StreamEvent] = []
    with pytest.raises(ValueError, match="asked to fail"):
        await collect_into(events, stream_events(graph, {**INPUT, "fail": True}, CONFIG, stream_mode=MODES))
    check(events, History.of(saver, graph))
    assert ("on_custom_event", "spoke") in names(events)
    assert ("on_chain_start", "gather") in names(events)


async def test_S4_without_a_checkpointer_every_checkpoint_is_none() -> None:
    graph = outer(inner(), None)
    events = await collect(stream_events(graph, INPUT, stream_mode=MODES))
    assert len(events) > 50
    assert {event["checkpoint"] for event in events} == {None}


async def test_S4_kept_only_at_the_end_the_last_checkpoint_is_the_histories() -> None:
    saver = InMemorySaver()
    graph = outer(inner(), saver)
    events = await collect(stream_events(graph, INPUT, CONFIG, stream_mode=MODES, durability="exit"))
    (kept,) = list(graph.get_state_history(CONFIG))
    assert events[-1]["checkpoint"] == head(graph)
    assert all(event["checkpoint"] is not None for event in events)
    assert kept.values == [chunk for mode, chunk in chunks(events) if mode == "values"][-1]


class AcknowledgedModel(RecordingModel):
    """A model that says its next word only when the one before it has been heard."""

    heard: Any = Field(default_factory=lambda: asyncio.Semaphore(0))

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in super()._astream(*args, **kwargs):
            yield chunk
            await asyncio.wait_for(self.heard.acquire(), timeout=120)


@pytest.mark.parametrize("checkpointed", [True, False])
@pytest.mark.parametrize("depth", [0, 1, 2])
async def test_S6_no_token_waits_for_another(depth: int, checkpointed: bool) -> None:
    model = AcknowledgedModel(replies=["one two three four"])

    async def answer(state: State) -> State:
        return {"log": [(await model.ainvoke("hi")).text]}

    graph: Any = answer
    for level in range(depth + 1):
        graph = alone(graph).compile(checkpointer=InMemorySaver() if checkpointed and level == depth else None)
    assert await tokens_heard(graph, model) == ["one ", "two ", "three ", "four", ""]


async def test_S6_no_token_of_a_called_task_waits_for_another() -> None:
    model = AcknowledgedModel(replies=["one two three four"])

    @task
    async def ask() -> str:
        return (await model.ainvoke("hi")).text

    async def answer(state: State) -> State:
        return {"log": [await ask()]}

    graph = alone(answer).compile(checkpointer=InMemorySaver())
    assert await tokens_heard(graph, model) == ["one ", "two ", "three ", "four", ""]


def alone(node: Any) -> StateGraph[State]:
    builder = StateGraph(State)
    builder.add_node("answer", node)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder


async def tokens_heard(graph: Any, model: AcknowledgedModel) -> list[str]:
    """Acknowledge each token when it comes; a stream that held one back would wait for ever."""
    tokens: list[str] = []
    async for event in stream_events(graph, INPUT, CONFIG):
        if event["type"] == "on_chat_model_stream":
            tokens.append(event["data"]["chunk"].text)
            model.heard.release()
    return tokens


async def test_S6_leaving_the_stream_stops_the_run() -> None:
    stopped = asyncio.Event()

    async def endless(state: State) -> State:
        try:
            while True:
                await aemit("tick", None)
                await asyncio.sleep(0)
        finally:
            stopped.set()

    builder = StateGraph(State)
    builder.add_node("endless", endless)
    builder.add_edge(START, "endless")
    graph = builder.compile(checkpointer=InMemorySaver())
    async with aclosing(stream_events(graph, INPUT, CONFIG)) as stream:
        seen = [await anext(stream) for _ in range(10)]
    assert stopped.is_set()
    assert {event["checkpoint"]["step"] for event in seen if event["checkpoint"]} >= {0}


async def test_S6_a_cancelled_consumer_stops_the_run() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def waits(state: State) -> State:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return {}

    builder = StateGraph(State)
    builder.add_node("waits", waits)
    builder.add_edge(START, "waits")
    consumer = asyncio.create_task(collect(stream_events(builder.compile(), INPUT)))
    await started.wait()
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert stopped.is_set()


async def test_S3_the_stream_has_all_events_of_astream_events_once() -> None:
    graph = outer(inner(), InMemorySaver())
    ours = await collect(stream_events(graph, INPUT, CONFIG))
    raw = [
        event
        async for event in outer(inner(), InMemorySaver()).astream_events(
            INPUT, CONFIG, version="v2", stream_mode=["values", "updates"], subgraphs=True
        )
    ]
    assert sorted((event["event"], event["name"]) for event in raw) == sorted(
        (event["event"], event["name"]) for event in ours
    )
    assert names(ours) >= {
        ("on_chain_start", "LangGraph"),
        ("on_chain_end", "LangGraph"),
        ("on_chain_stream", "LangGraph"),
        ("on_chat_model_stream", "RecordingModel"),
        ("on_tool_start", "look_up"),
        ("on_custom_event", "looked"),
        ("on_custom_event", "noted"),
    }
