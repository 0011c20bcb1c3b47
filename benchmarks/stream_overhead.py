"""CPU of `stream_events` as a ratio of plain `astream_events` on the same graph.

    python -m benchmarks.stream_overhead

Two graphs, both checkpointed in memory: a turn as chats have it (three nodes, one answer of 100 tokens), and the
worst case for the pairing (40 supersteps with nothing but their checkpoints). The goal is a ratio of at most 1.3.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from graphs.process.events import aemit
from graphs.streaming import stream_events

ROUNDS = 15
TOKENS = 100
STEPS = 40
HISTORY = 50


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    count: int


Graph = CompiledStateGraph[State, None, State, State]
Stream = Callable[[Graph, State, RunnableConfig], AsyncIterator[Any]]


def chat() -> Graph:
    async def before(state: State) -> State:
        await aemit("before", {"messages": len(state["messages"])})
        return {"count": 1}

    async def answer(state: State) -> State:
        model = GenericFakeChatModel(messages=iter([AIMessage(" ".join(["word"] * (TOKENS // 2)))]))
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(State)
    builder.add_node("before", before)
    builder.add_node("answer", answer)
    builder.add_node("after", before)
    builder.add_edge(START, "before")
    builder.add_edge("before", "answer")
    builder.add_edge("answer", "after")
    builder.add_edge("after", END)
    return builder.compile(checkpointer=InMemorySaver())


def steps() -> Graph:
    async def count(state: State) -> State:
        return {"count": state.get("count", 0) + 1}

    builder = StateGraph(State)
    builder.add_node("count", count)
    builder.add_edge(START, "count")
    builder.add_conditional_edges("count", lambda state: END if state["count"] >= STEPS else "count")
    return builder.compile(checkpointer=InMemorySaver())


def plain(graph: Graph, given: State, config: RunnableConfig) -> AsyncIterator[Any]:
    return graph.astream_events(given, config, version="v2")


def same_chunks(graph: Graph, given: State, config: RunnableConfig) -> AsyncIterator[Any]:
    return graph.astream_events(given, config, version="v2", stream_mode=["values", "updates"], subgraphs=True)


async def cpu_seconds(stream: Stream, graph: Graph, thread: int) -> float:
    given: State = {"messages": [HumanMessage(f"message {at}") for at in range(HISTORY)]}
    config: RunnableConfig = {"configurable": {"thread_id": str(thread)}, "recursion_limit": 2 * STEPS}
    started = time.process_time()
    async for _ in stream(graph, given, config):
        pass
    return time.process_time() - started


async def compare(name: str, graph: Graph) -> None:
    streams: dict[str, Stream] = {"plain": plain, "same chunks": same_chunks, "stream_events": stream_events}
    seconds: dict[str, list[float]] = {stream: [] for stream in streams}
    for at in range(ROUNDS + 2):
        for offset, (label, stream) in enumerate(streams.items()):
            spent = await cpu_seconds(stream, graph, at * len(streams) + offset)
            if at >= 2:  # the first two warm up
                seconds[label].append(spent)
    medians = {label: statistics.median(values) for label, values in seconds.items()}
    for label, median in medians.items():
        print(f"{name:6} {label:14} {median * 1000:7.2f} ms CPU   {median / medians['plain']:.2f}x")


async def main() -> None:
    await compare("chat", chat())
    await compare("steps", steps())


if __name__ == "__main__":
    asyncio.run(main())
