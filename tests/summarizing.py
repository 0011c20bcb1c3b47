"""Conversations to summarize, and a model that does."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
)

from memory.context.summarization import SummarizationNode, summarize_messages
from memory.context.summarizer import SummarizationResult
from tests.fakes import RecordingModel
from tests.laws.life import human, talk
from tests.threads import word_counter

__all__ = ["counting", "human", "make_node", "saying", "sent", "summarize", "talk"]


def summarize(messages: list[BaseMessage], model: RecordingModel | None = None, **options: Any) -> SummarizationResult:
    options = {"running_summary": None, "max_tokens": 200, "max_summary_tokens": 40} | options
    model = model or saying()
    return summarize_messages(messages, model=model, token_counter=word_counter(), **options)


def saying(
    reply: str | AIMessage | Exception = "what was said", first: Sequence[str | AIMessage | Exception] = ()
) -> RecordingModel:
    """A model that gives the first replies, then always the same."""
    waiting = list(first)

    def respond(messages: list[BaseMessage]) -> str | AIMessage | Exception:
        return waiting.pop(0) if waiting else reply

    return RecordingModel(respond=respond)


def counting() -> RecordingModel:
    """A model whose replies are `summary 1`, `summary 2` …"""
    return saying(first=[f"summary {call}" for call in range(1, 99)])


def sent(model: RecordingModel, call: int = -1) -> str:
    return "\n".join(message.text for message in model.prompts[call])


def make_node(**options: Any) -> SummarizationNode:
    return SummarizationNode(
        model=saying(), max_tokens=200, max_summary_tokens=40, token_counter=word_counter(), **options
    )
