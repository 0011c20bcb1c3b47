"""A run that resumes in another process, at the node before which it was interrupted."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver

from graphs.chat import ChatGraph, build_graph
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.config import MemoryConfig
from memory.context.tokenizer import Encoder, Tokenizer
from memory.context.tokens import MESSAGE_TOKENS, TokenCounter
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


@tool
def look() -> str:
    """Look out of the window."""
    return "rain"


@pytest.mark.parametrize("transcript", ["keep", "compact"])
async def test_what_is_edited_while_a_run_is_interrupted_is_what_the_model_sees(
    transcript: Literal["keep", "compact"],
) -> None:
    model = RecordingModel()
    context = Context(max_tokens=600, reply_tokens=64, transcript=transcript)
    graph = process(TokenCounter(), model).compile(checkpointer=InMemorySaver(), interrupt_before=["call_model"])
    asked: Any = {"messages": [HumanMessage("Where is Oslo?", id="h1"), HumanMessage("Wait. " * 2_000, id="h2")]}
    await graph.ainvoke(asked, CONFIG, context=context)
    edits: Any = {"messages": [HumanMessage("Where is Bergen?", id="h1"), HumanMessage("Please.", id="h3")]}
    await graph.aupdate_state(CONFIG, edits)
    await graph.ainvoke(None, CONFIG, context=context)
    sent = "".join(message.text for message in model.prompts[-1])
    assert "Please." in sent
    assert "Oslo" not in sent
    assert TokenCounter()(model.prompts[-1]) <= 600


@pytest.mark.parametrize("budget", ["x", -5, None, 3.5])
async def test_a_budget_that_a_client_wrote_into_the_state_is_not_believed(budget: object) -> None:
    model = RecordingModel(replies=[AIMessage("", tool_calls=[tool_call(name="look", args={}, id="1")]), "It rains."])
    graph = process(TokenCounter(), model, tools=[look]).compile(
        checkpointer=InMemorySaver(), interrupt_after=["tools"]
    )
    await graph.ainvoke({"messages": [HumanMessage(QUESTION, id="h")]}, CONFIG)
    noise: Any = {"memory": {"receipt": {"asked": "h", "messages_budget": budget}}}
    await graph.aupdate_state(CONFIG, noise)
    state = await graph.ainvoke(None, CONFIG)
    assert state["messages"][-1].text == "It rains."


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
    second = process(TokenCounter(tokenizer=Tokenizer([slowly], patience=PATIENCE))).compile(checkpointer=saver)
    ticking = asyncio.create_task(tick())
    events = [event async for event in second.astream(None, CONFIG, stream_mode="custom")]
    await ticking
    injected = next(event["payload"] for event in events if event["name"] == "memory.injected")
    assert injected["tokens"]["messages"] == MESSAGE_TOKENS + 100 * len(QUESTION.split())
