"""The messages' channel under checkpointers: every state of a thread reads as with add_messages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from graphs.persistence.sqlite_saver import open_checkpointer
from graphs.turn.state import MessagesChannel


class Plain(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Delta(TypedDict):
    messages: Annotated[list[AnyMessage], MessagesChannel()]


Graph = CompiledStateGraph[Any, Any, Any, Any]


def compiled(state: Any, saver: BaseCheckpointSaver[Any]) -> Graph:
    """A graph that answers twice; what it does depends on the messages alone."""

    def answer(values: Any) -> Any:
        number = len(values["messages"])
        write: list[Any] = [AIMessage(f"answer {number}", id=f"a{number}")]
        if number % 7 == 0:
            write.append(RemoveMessage(id=values["messages"][1].id))
        return {"messages": write}

    builder: Any = StateGraph(state)
    graph: Graph = (
        builder.add_node("one", answer)
        .add_node("two", answer)
        .set_entry_point("one")
        .add_edge("one", "two")
        .compile(checkpointer=saver)
    )
    return graph


@asynccontextmanager
async def saver_of(kind: str, folder: Path) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    if kind == "memory":
        yield InMemorySaver()
    else:
        async with open_checkpointer(folder / "checkpoints.sqlite") as saver:
            yield saver


async def history(graph: Graph, config: RunnableConfig) -> list[list[tuple[str, str]]]:
    states = [state async for state in graph.aget_state_history(config)]
    return [[(m.id, m.text) for m in state.values.get("messages", [])] for state in states]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_every_state_of_a_thread_with_edits_and_forks_is_the_same_as_with_add_messages(
    kind: str, tmp_path: Path
) -> None:
    lived = []
    for name, state in (("plain", Plain), ("delta", Delta)):
        async with saver_of(kind, tmp_path / name) as saver:
            lived.append(await live(compiled(state, saver)))
    assert lived[0] == lived[1]


async def live(graph: Graph) -> list[list[tuple[str, str]]]:
    dice, config = Random(5), RunnableConfig(configurable={"thread_id": "t"})
    for turn in range(45):
        await graph.ainvoke({"messages": [HumanMessage(f"question {turn}", id=f"h{turn}")]}, config)
        if dice.random() < 0.1:
            edited = HumanMessage("edited", id=f"h{turn}")
            await graph.aupdate_state(config, {"messages": [edited]}, as_node="two")
        if dice.random() < 0.1:
            states = [state async for state in graph.aget_state_history(config, limit=30)]
            fork = dice.choice([state.config for state in states if state.values.get("messages")])
            changed = {"messages": [HumanMessage(f"fork {turn}", id=f"f{turn}")]}
            await graph.aupdate_state(fork, changed, as_node="two")
    return await history(graph, config)
