"""Small graphs on a checkpointer, what is said in them, and what stands in their threads then."""

import asyncio
import dataclasses
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

Graph = CompiledStateGraph[Any, Any, Any, Any]


def join(state: list[str], writes: Sequence[list[str]]) -> list[str]:
    return state + [text for write in writes for text in write]


class Delta(TypedDict):
    log: Annotated[list[str], DeltaChannel(join, snapshot_frequency=6)]


@dataclasses.dataclass
class Stranger:
    """A class that the saver has not been told about."""

    name: str


def echo_graph(saver: BaseCheckpointSaver[str]) -> Graph:
    def answer(state: MessagesState) -> MessagesState:
        return {"messages": [AIMessage(f"re: {state['messages'][-1].text}")]}

    return StateGraph(MessagesState).add_node(answer).set_entry_point("answer").compile(checkpointer=saver)


def delta_graph(saver: BaseCheckpointSaver[str]) -> Graph:
    def answer(state: Delta) -> Delta:
        return {"log": [f"re: {state['log'][-1]}"]}

    return StateGraph(Delta).add_node(answer).set_entry_point("answer").compile(checkpointer=saver)


def on(thread: str, run: str = "", user: str = "") -> RunnableConfig:
    """Return the config of a run on a thread, as the server makes it."""
    named = {"langgraph_auth_user_id": user} if user else {}
    return {
        "configurable": {"thread_id": thread, "checkpoint_ns": "", **named},
        "metadata": {"run_id": run} if run else {},
    }


async def say(graph: Graph, thread: str, text: str, run: str = "") -> None:
    await graph.ainvoke({"messages": [HumanMessage(text)]}, on(thread, run))


async def texts(graph: Graph, thread: str) -> list[str]:
    state = await graph.aget_state(on(thread))
    return [message.text for message in state.values.get("messages", [])]


Open = Callable[[Any], AbstractAsyncContextManager[BaseCheckpointSaver[str]]]


def said_later_by_slow_clocks(opened: Open, place: object) -> list[list[str]]:
    """Return what a thread holds after each of three turns in processes whose clocks are ever further behind.

    The last one edits the first message away: it goes on from the thread's first checkpoint.
    """
    held = []
    for behind, text, forks in ((0, "one", False), (3600, "two", False), (86_400, "three", True)):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            held.append(process.submit(_say_behind, opened, place, behind, text, forks).result())
    return held


def _say_behind(opened: Open, place: object, seconds: int, text: str, forks: bool) -> list[str]:
    real = time.time_ns
    time.time_ns = lambda: real() - seconds * 1_000_000_000

    async def turn() -> list[str]:
        async with opened(place) as saver:
            graph, config = echo_graph(saver), on("thread")
            if forks:
                config = [state.config async for state in graph.aget_state_history(config)][-1]
            await graph.ainvoke({"messages": [HumanMessage(text)]}, config)
            return await texts(graph, "thread")

    return asyncio.run(turn())
