"""Programs written for langmem run unchanged, and better: their traps are gone."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import StateGraph

from memory import RunningSummary
from memory.context.summarization import SUMMARY_ID
from memory.context.tokens import shared_counter
from tests.fakes import RecordingModel
from tests.langmem_programs import function, one_key, two_keys
from tests.threads import words

Program = Callable[[Any], StateGraph[Any, Any, Any, Any]]
CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
TURNS = 25


def answering(messages: list[BaseMessage]) -> str:
    return "what was said" if "</conversation>" in messages[-1].text else words(15, "answer")


def lived(program: Program, saver: InMemorySaver) -> tuple[RecordingModel, dict[str, Any]]:
    model = RecordingModel(respond=answering)
    graph = program(model).compile(checkpointer=saver)
    values: dict[str, Any] = {}
    for turn in range(TURNS):
        values = graph.invoke({"messages": [HumanMessage(f"question {turn} {words(15)}")]}, CONFIG)
    return model, values


def sent_to_chat(model: RecordingModel) -> list[list[BaseMessage]]:
    return [prompt for prompt in model.prompts if "</conversation>" not in prompt[-1].text]


@pytest.mark.parametrize("program", [two_keys, one_key, function])
@pytest.mark.parametrize("allowed", [None, []], ids=["usual", "strict"])
def test_C7_C8_a_program_written_for_langmem_keeps_its_budget(program: Program, allowed: Any) -> None:
    saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=allowed))
    model, _ = lived(program, saver)
    prompts = sent_to_chat(model)
    assert len(prompts) == TURNS
    assert all(shared_counter()(prompt) <= 200 for prompt in prompts)
    assert all(f"question {turn} " in prompt[-1].text for turn, prompt in enumerate(prompts))
    assert sum(message.id == SUMMARY_ID for message in prompts[-1]) == 1
    assert 1 <= len(model.prompts) - TURNS <= TURNS // 2


def test_C8_with_one_key_the_summarized_messages_leave_the_state() -> None:
    _, values = lived(one_key, InMemorySaver())
    assert len(values["messages"]) < 2 * TURNS - 10
    assert values["messages"][0].id == SUMMARY_ID


def test_C7_with_two_keys_the_conversation_stays_whole_and_the_summary_is_in_the_context() -> None:
    _, values = lived(two_keys, InMemorySaver())
    assert len(values["messages"]) == 2 * TURNS
    assert isinstance(values["context"]["running_summary"], RunningSummary)
