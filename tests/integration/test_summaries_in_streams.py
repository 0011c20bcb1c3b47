"""What a summary does to a thread is no message to its user."""

from typing import Any, Literal

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from graphs.chat import build_graph
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from graphs.turn.state import InputState
from memory.context.summarization import SUMMARY_ID
from tests.fakes import RecordingModel
from tests.threads import words


@pytest.mark.parametrize("transcript", ["keep", "compact"])
async def test_C8_S_neither_the_summary_nor_a_removal_is_in_the_messages_stream(
    transcript: Literal["keep", "compact"],
) -> None:
    chat, memory = RecordingModel(replies=[words(30, "answer")] * 20), RecordingModel(replies=["They talked."] * 20)
    service = MemoryService(Settings(single_user=True), lambda _, purpose: chat if purpose == "chat" else memory)
    graph = build_graph(service=service).compile(checkpointer=InMemorySaver())
    context = Context(max_tokens=600, max_summary_tokens=60, transcript=transcript)
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    streamed: list[Any] = []
    for turn in range(20):
        question = InputState(messages=[HumanMessage(f"question {turn} {words(30)}")])
        async for message, _ in graph.astream(question, config, context=context, stream_mode="messages"):
            streamed.append(message)
    values = (await graph.aget_state(config)).values
    assert values["context"]["running_summary"].summary == "They talked."
    assert len(values["messages"]) == 40 if transcript == "keep" else SUMMARY_ID in {m.id for m in values["messages"]}
    assert streamed
    assert not [m for m in streamed if m.id == SUMMARY_ID or isinstance(m, RemoveMessage) or "They talked" in m.text]
