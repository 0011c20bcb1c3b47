"""A chat model that takes a fixed time, and a store that takes its time, does not answer, or fails."""

import asyncio
import time
import uuid
from collections.abc import Iterable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore
from pydantic import PrivateAttr

from benchmarks.conversations import words
from memory.context.tokens import shared_counter

HOUR = 3600.0


class TimedModel(BaseChatModel):
    """Answers in 40 words after a fixed time, and counts the tokens that it reads and writes."""

    seconds: float
    size: int = 40
    _tokens: int = PrivateAttr(0)
    _calls: int = PrivateAttr(0)
    _awaited: int = PrivateAttr(0)

    @property
    def _llm_type(self) -> str:
        return "timed"

    @property
    def tokens(self) -> int:
        return self._tokens

    @property
    def calls(self) -> int:
        return self._calls

    @property
    def awaited(self) -> int:
        """Calls on the event loop, as turns make them: what is written ahead of time asks on a thread of its own."""
        return self._awaited

    def _answer(self, messages: list[BaseMessage]) -> ChatResult:
        self._calls += 1
        answer = AIMessage(words(self.size, -self._calls), id=str(uuid.uuid4()))
        self._tokens += shared_counter()([*messages, answer])
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        time.sleep(self.seconds)
        return self._answer(messages)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self._awaited += 1
        await asyncio.sleep(self.seconds)
        return self._answer(messages)


class ConditionedStore(InMemoryStore):
    """A store that takes its time, does not answer, or fails, from the moment it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.condition = "healthy"

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        if self.condition == "failing":
            raise OSError("the disk is gone")
        if self.condition != "healthy":
            time.sleep(0.3 if self.condition == "slow" else 60)
        return super().batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        if self.condition == "failing":
            raise OSError("the disk is gone")
        if self.condition != "healthy":
            await asyncio.sleep(0.3 if self.condition == "slow" else HOUR)
        return await super().abatch(ops)
