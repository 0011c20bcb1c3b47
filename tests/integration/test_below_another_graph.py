"""The chat graph as a node of another graph: compiled with `checkpointer=True` it keeps its summary between turns."""

from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

from graphs.chat import build_graph
from graphs.context import Context
from graphs.models import Purpose
from graphs.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from tests.fakes import RecordingModel

SMALL = Context(max_tokens=900, max_summary_tokens=64, memory_tokens=100, reply_tokens=50)


async def test_twenty_turns_summarize_as_rarely_as_alone() -> None:
    calls: list[Purpose] = []

    def load(name: str, purpose: Purpose) -> RecordingModel:
        calls.append(purpose)
        return RecordingModel()

    service = MemoryService(Settings(memory=MemoryConfig(enabled=False)), load)
    chat = build_graph(service=service).compile(checkpointer=True)
    outer: Any = StateGraph(MessagesState, context_schema=Context).add_node("chat", chat).set_entry_point("chat")
    graph, config = outer.compile(checkpointer=InMemorySaver()), RunnableConfig(configurable={"thread_id": "t"})
    for turn in range(20):
        asked = {"messages": [HumanMessage(f"{turn} {'long ' * 60}", id=f"h{turn}")]}
        state = await graph.ainvoke(asked, config, context=SMALL)
    assert len(state["messages"]) == 40
    assert 1 <= calls.count("summary") <= 5
