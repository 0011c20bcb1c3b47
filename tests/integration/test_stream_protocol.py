"""The newest protocol's channels, in process."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphs.streaming import stream_transformers
from tests.stream_checks import CONFIG, History
from tests.stream_graphs import Graph, inner, outer

pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol:langchain_core._api.LangChainBetaWarning")


async def protocol(graph: Graph, given: Any) -> list[dict[str, Any]]:
    stream = await graph.astream_events(given, CONFIG, version="v3", transformers=stream_transformers())
    return [dict(event) async for event in stream]


def of(events: list[dict[str, Any]], *methods: str, nested: bool = False) -> list[tuple[str, Any]]:
    return [
        (event["method"], event["params"]["data"])
        for event in events
        if event["method"] in methods and bool(event["params"]["namespace"]) == nested
    ]


async def test_S4_a_subgraphs_envelopes_are_light_too() -> None:
    saver = InMemorySaver()
    graph = outer(inner(), saver)
    events = await protocol(graph, {"log": ["in"]})
    history = History.of(saver, graph)
    nested = [data for _, data in of(events, "checkpoints", nested=True)]
    assert len(nested) == 4
    assert all(envelope == history.known[envelope["id"]].envelope for envelope in nested)


async def test_S1_updates_custom_and_tasks_arrive_once() -> None:
    events = await protocol(outer(inner(), InMemorySaver()), {"log": ["in"]})
    assert [data for _, data in of(events, "updates") if "last" in data] == [{"last": {"log": ["note"]}}]
    assert [data["name"] for _, data in of(events, "custom")].count("looked") == 1
    assert [data["name"] for _, data in of(events, "tasks")].count("use_tool") == 2
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)


async def test_S4_no_values_are_lost_at_an_interrupt_or_a_resume() -> None:
    saver = InMemorySaver()
    graph = outer(inner(), saver)
    asked = of(await protocol(graph, {"log": ["in"], "ask": True}), "values")
    assert asked[-1][1] == graph.get_state(CONFIG).values
    resumed = of(await protocol(graph, Command(resume="yes")), "checkpoints", "values")
    assert resumed[0][0] == "checkpoints"
    assert resumed[-1][1] == graph.get_state(CONFIG).values


async def test_S4_the_envelopes_are_a_projection_in_process() -> None:
    saver = InMemorySaver()
    graph = outer(inner(), saver)
    stream = await graph.astream_events({"log": ["in"]}, CONFIG, version="v3", transformers=stream_transformers())
    seen = [envelope["id"] async for envelope in stream.extensions["checkpoints"]]
    roots = [identity for identity, known in History.of(saver, graph).known.items() if not known.namespace]
    assert seen == sorted(roots)
