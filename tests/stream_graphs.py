"""Graphs with every shape that an event stream must cope with; served to the SDK too, see `graph`."""

import asyncio
import operator
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import task
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer, RetryPolicy, Send, interrupt
from typing_extensions import TypedDict

from palimpsest import aemit, emit, stream_transformers
from tests.fakes import RecordingModel


class State(TypedDict, total=False):
    """What the nodes said, in order, and what they are asked to do."""

    log: Annotated[list[str], operator.add]
    ask: bool
    fail: bool
    wait: bool


Graph = CompiledStateGraph[State, None, State, State]


async def speak(state: State) -> State:
    """Stream three words and emit an event."""
    model = RecordingModel(replies=[AIMessage("one two three", id="spoken")])
    answer = await model.ainvoke("hi")
    await aemit("spoke", {"words": 3})
    return {"log": [answer.text]}


def note(state: State) -> State:
    """Work in a thread, as synchronous nodes do."""
    emit("noted", None)
    return {"log": ["note"]}


@tool
async def look_up(word: str) -> str:
    """Look a word up."""
    await aemit("looked", {"word": word})
    return f"{word}!"


async def use_tool(state: State) -> State:
    """Call a tool."""
    return {"log": [str(await look_up.ainvoke({"word": "x"}))]}


def fan_out(state: State) -> list[Send]:
    """Send two tasks of one node."""
    return [Send("each", {"log": [str(at)]}) for at in range(2)]


async def each(state: State) -> State:
    """Do one of the tasks that were sent."""
    await aemit("each", state["log"])
    return {"log": ["each"]}


async def gather(state: State) -> State:
    """Ask, fail or hang where the state says so."""
    if state.get("wait"):
        await aemit("waiting", None)
        await asyncio.Event().wait()
    if state.get("fail"):
        raise ValueError("asked to fail")
    if state.get("ask"):
        return {"log": [f"answered {interrupt('may I?')}"]}
    return {"log": ["gather"]}


def inner(checkpointer: Checkpointer = None) -> Graph:
    """Return a subgraph of two steps, one of which speaks and may be interrupted."""
    builder = StateGraph(State)
    builder.add_node("speak", speak)
    builder.add_node("gather", gather)
    builder.add_edge(START, "speak")
    builder.add_edge("speak", "gather")
    builder.add_edge("gather", END)
    return builder.compile(checkpointer=checkpointer)


def outer(subgraph: Any, checkpointer: BaseCheckpointSaver[str] | None) -> Graph:
    """Return a graph with parallel nodes, a tool, sent tasks and a subgraph (or a node in its place)."""
    builder = StateGraph(State)
    builder.add_node("note", note)
    builder.add_node("use_tool", use_tool)
    builder.add_node("beside", speak)
    builder.add_node("each", each)
    builder.add_node("nested", subgraph)
    builder.add_node("last", note)
    builder.add_edge(START, "note")
    builder.add_edge(START, "use_tool")
    builder.add_conditional_edges("note", fan_out, ["each"])
    builder.add_edge("use_tool", "nested")
    builder.add_edge("use_tool", "beside")
    builder.add_edge(["nested", "beside", "each"], "last")
    builder.add_edge("last", END)
    return builder.compile(checkpointer=checkpointer)


async def calls_inner_twice(state: State) -> State:
    """Run a subgraph twice within one task."""
    first = await inner().ainvoke({"log": []})
    second = await inner().ainvoke({"log": []})
    return {"log": [*first["log"], *second["log"]]}


@task
async def called(word: str) -> str:
    """Be called by a node."""
    await RecordingModel(replies=["one two"]).ainvoke("hi")
    await aemit("called", word)
    return word


async def calls_tasks(state: State) -> State:
    """Call tasks, one after the other."""
    return {"log": [await called("a"), await called("b")]}


async def calls_a_stranger(state: State, config: RunnableConfig) -> State:
    """Run another graph on a thread of its own."""
    stranger = inner(InMemorySaver())
    result = await stranger.ainvoke({"log": []}, {"configurable": {"thread_id": "strange"}})
    return {"log": result["log"]}


def calls_inner_synchronously(state: State) -> State:
    """Run a subgraph of synchronous nodes from a synchronous node."""
    builder = StateGraph(State)
    builder.add_node("note", note)
    builder.add_edge(START, "note")
    builder.add_edge("note", END)
    return {"log": builder.compile().invoke({"log": []})["log"]}


class Flaky:
    """A node that fails once."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, state: State) -> State:
        """Speak in a subgraph, then fail the first time."""
        result = await inner().ainvoke({"log": []})
        self.calls += 1
        if self.calls == 1:
            raise ConnectionError
        return {"log": result["log"]}


def retrying(checkpointer: BaseCheckpointSaver[str]) -> Graph:
    """Return a graph whose only node fails once and is tried again."""
    builder = StateGraph(State)
    policy = RetryPolicy(initial_interval=0.0, jitter=False, retry_on=ConnectionError)
    builder.add_node("flaky", Flaky(), retry_policy=policy)
    builder.add_edge(START, "flaky")
    builder.add_edge("flaky", END)
    return builder.compile(checkpointer=checkpointer)


Shape = Literal["subgraph", "own", "without", "twice", "stranger", "synchronous", "tasks"]
SHAPES: dict[Shape, Any] = {
    "subgraph": inner(),
    "own": inner(True),
    "without": inner(False),
    "twice": calls_inner_twice,
    "stranger": calls_a_stranger,
    "synchronous": calls_inner_synchronously,
    "tasks": calls_tasks,
}

graph = outer(inner(), None)
calling_graph = outer(calls_tasks, None)

__all__ = [
    "SHAPES",
    "Graph",
    "Shape",
    "State",
    "called",
    "calling_graph",
    "graph",
    "inner",
    "outer",
    "retrying",
    "stream_transformers",
]
