"""A run that resumes in another process, at the node before which it was interrupted."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from graphs.chat import ChatGraph, build_graph
from graphs.process.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.context.tokens import MESSAGE_TOKENS, Encoder, TokenCounter, Tokenizer
from tests.fakes import RecordingModel

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
QUESTION = "one two three four"
PATIENCE = 60.0


def process(counter: TokenCounter, model: RecordingModel | None = None, tools: Sequence[BaseTool] = ()) -> ChatGraph:
    """What one process makes of the project: its own model and counter."""
    # What one model is asked must not depend on what is written in the background.
    settings = Settings(single_user=True, memory=MemoryConfig(debounce_seconds=3600, prepare_summary_share=1.0))
    service = MemoryService(settings, lambda *_: model or RecordingModel())
    return build_graph(service=service, counter=counter, tools=tools)


@pytest.mark.parametrize("node", ["summarize", "call_model"])
async def test_tokens_are_exact_where_a_run_resumes_and_nobody_waits_for_the_tokenizer(node: Any) -> None:
    loaded, ticked = threading.Event(), threading.Event()
    saver = InMemorySaver()

    def slowly() -> Encoder:
        loaded.set()
        assert ticked.wait(PATIENCE)  # the tokenizer is there only after the event loop went on meanwhile
        return lambda text: 100 * len(text.split())

    async def tick() -> None:
        await asyncio.to_thread(loaded.wait, PATIENCE)
        ticked.set()

    first = process(TokenCounter()).compile(checkpointer=saver, interrupt_before=[node])
    await first.ainvoke({"messages": [HumanMessage(QUESTION)]}, CONFIG)
    second = process(TokenCounter(tokenizer=Tokenizer((slowly, PATIENCE)))).compile(checkpointer=saver)
    ticking = asyncio.create_task(tick())
    events = [event async for event in second.astream(None, CONFIG, stream_mode="custom")]
    await ticking
    injected = next(event["payload"] for event in events if event["name"] == "memory.injected")
    assert injected["tokens"]["messages"] == MESSAGE_TOKENS + 100 * len(QUESTION.split())
