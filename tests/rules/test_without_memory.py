"""A turn without memory says why in its receipt."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.process.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.config import MemoryConfig
from tests.fakes import RecordingModel


async def receipts(settings: Settings, store: BaseStore | None, context: Context) -> list[dict[str, Any]]:
    service = MemoryService(settings, lambda *_: RecordingModel())
    graph = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=store)
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    asked: Any = {"messages": [HumanMessage("I like figs.")]}
    return [(await graph.ainvoke(asked, config, context=context))["memory"]["receipt"] for _ in range(2)]


@pytest.mark.parametrize(
    ("settings", "store", "context", "reason"),
    [
        (Settings(), InMemoryStore(), Context(), "no_identity"),
        (Settings(single_user=True), None, Context(), "no_store"),
        (Settings(single_user=True, memory=MemoryConfig(enabled=False)), InMemoryStore(), Context(), "switched_off"),
        (Settings(single_user=True), InMemoryStore(), Context(memory_mode="incognito"), "incognito"),
        (Settings(single_user=True), InMemoryStore(), Context(), None),
        (Settings(single_user=True), InMemoryStore(), Context(memory_tokens=0), None),
    ],
)
async def test_the_receipt_says_why(
    settings: Settings,
    store: BaseStore | None,
    context: Context,
    reason: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for receipt in await receipts(settings, store, context):
        assert receipt.get("without_memory") == reason
    said = [record for record in caplog.records if "go on without memory" in record.getMessage()]
    assert len(said) == (1 if reason and reason != "incognito" else 0)
