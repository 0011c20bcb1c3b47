"""The chat graph as a node of another graph: compiled with `checkpointer=True` it keeps its summary between turns."""

import logging
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

from graphs.chat import build_graph
from graphs.process.models import Purpose
from graphs.process.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from graphs.turn.run import warn_summary_lost
from memory.config import MemoryConfig
from tests.fakes import RecordingModel

SMALL = Context(max_tokens=900, max_summary_tokens=64, memory_tokens=100, reply_tokens=50)


class Outer(MessagesState):
    memory: dict[str, Any]


async def twenty_turns(*, checkpointer: bool | None, depth: int = 1) -> tuple[int, list[dict[str, Any]]]:
    """Return how often a chat graph below others was summarized in twenty turns, and the receipts of the turns."""
    calls: list[Purpose] = []

    def load(name: str, purpose: Purpose) -> RecordingModel:
        calls.append(purpose)
        return RecordingModel()

    service = MemoryService(Settings(memory=MemoryConfig(enabled=False)), load)
    below: Any = build_graph(service=service).compile(checkpointer=checkpointer)
    for level in range(depth, 0, -1):
        outer: Any = StateGraph(Outer, context_schema=Context).add_node("chat", below).set_entry_point("chat")
        below = outer.compile(checkpointer=InMemorySaver() if level == 1 else None)
    config, receipts = RunnableConfig(configurable={"thread_id": "t"}), []
    for turn in range(20):
        asked = {"messages": [HumanMessage(f"{turn} {'long ' * 60}", id=f"h{turn}")]}
        state = await below.ainvoke(asked, config, context=SMALL)
        receipts.append(state["memory"]["receipt"])
    assert len(state["messages"]) == 40
    return calls.count("summary"), receipts


def warnings(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if "below another graph" in record.getMessage()]


@pytest.mark.parametrize("depth", [1, 2])
async def test_twenty_turns_summarize_as_rarely_as_alone(depth: int, caplog: pytest.LogCaptureFixture) -> None:
    warn_summary_lost.cache_clear()
    summaries, receipts = await twenty_turns(checkpointer=True, depth=depth)
    assert 1 <= summaries <= 5
    assert not [receipt for receipt in receipts if "summary_lost" in receipt]
    assert not warnings(caplog)


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_summary_that_is_lost_each_turn_is_no_secret(depth: int, caplog: pytest.LogCaptureFixture) -> None:
    warn_summary_lost.cache_clear()
    for _ in range(2):  # two graphs of one process
        summaries, receipts = await twenty_turns(checkpointer=None, depth=depth)
        assert summaries >= 15
        assert [receipt.get("summary_lost") for receipt in receipts] == ["below_another_graph"] * 20
    (record,) = warnings(caplog)
    assert record.levelno == logging.WARNING
    assert "compile(checkpointer=True)" in record.getMessage()
