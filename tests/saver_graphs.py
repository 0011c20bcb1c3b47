"""Small graphs on a checkpointer, what is said in them, and what stands in their threads then."""

import dataclasses
from collections.abc import Sequence
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
    named = {"run_id": run, "langgraph_auth_user_id": user}
    return {
        "configurable": {"thread_id": thread, "checkpoint_ns": ""},
        "metadata": {name: value for name, value in named.items() if value},
    }


async def say(graph: Graph, thread: str, text: str, run: str = "") -> None:
    await graph.ainvoke({"messages": [HumanMessage(text)]}, on(thread, run))


async def texts(graph: Graph, thread: str) -> list[str]:
    state = await graph.aget_state(on(thread))
    return [message.text for message in state.values.get("messages", [])]
