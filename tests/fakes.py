"""Typed, recording stand-ins for tests. They keep what they were sent; nothing is patched."""

import json
import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field

from tests.templates import TemplateRefused, refuse

Reply = str | AIMessage | Exception
Responder = Callable[[list[BaseMessage]], Reply]


class WordEmbeddings(Embeddings):
    """An embedder for which texts are alike that share words; the same text has the same vector on every machine.

    Attributes:
        asked: Every text it embedded, oldest first.
    """

    def __init__(self, size: int = 32) -> None:
        self.asked: list[str] = []
        self._size = size

    def embed_query(self, text: str) -> list[float]:
        self.asked.append(text)
        vector = [0.001] * self._size
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % self._size] += 1.0
        return vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class RecordingModel(BaseChatModel):
    """A chat model that answers from a queue, then by `respond`, and keeps every prompt it was sent.

    Attributes:
        replies: Answers given first, in order; an exception in the queue is raised.
        respond: Makes the answer when the queue is empty, from the prompt.
        prompts: Every list of messages it was sent, oldest first.
        tags_seen: The tags of each call.
        bound: Names of the tools bound to it.
        strict: Whether it refuses what some server refuses; not where somebody else's prompt is sent.
        blocks: Kinds of blocks that it knows beside those that all do.
    """

    replies: list[Reply] = Field(default_factory=list)
    respond: Responder = Field(default=lambda messages: f"reply to {messages[-1].text[:40]}")
    prompts: list[list[BaseMessage]] = Field(default_factory=list)
    tags_seen: list[list[str]] = Field(default_factory=list)
    bound: list[str] = Field(default_factory=list)
    strict: bool = True
    blocks: tuple[str, ...] = ()

    @property
    def _llm_type(self) -> str:
        return "recording"

    def _answer(self, messages: list[BaseMessage], tags: list[str] | None) -> AIMessage:
        self.prompts.append(list(messages))
        self.tags_seen.append(list(tags or []))
        if self.strict and (reason := refuse(messages, self.blocks)):
            raise TemplateRefused(reason)
        reply = self.replies.pop(0) if self.replies else self.respond(messages)
        if isinstance(reply, Exception):
            raise reply
        return reply.model_copy() if isinstance(reply, AIMessage) else AIMessage(reply)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = self._answer(messages, run_manager.tags if run_manager else None)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(self._answer(messages, run_manager.tags if run_manager else None)):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(self._answer(messages, run_manager.tags if run_manager else None)):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        self.bound.extend(getattr(tool, "name", str(tool)) for tool in tools)
        return self


def _chunks(answer: AIMessage) -> Iterator[ChatGenerationChunk]:
    """Cut an answer into word-sized chunks, tool calls whole, as providers stream them."""
    if answer.tool_calls:
        calls = [
            tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=at)
            for at, call in enumerate(answer.tool_calls)
        ]
        message = AIMessageChunk(content=answer.content, id=answer.id, tool_call_chunks=calls)
        yield ChatGenerationChunk(message=message)
        return
    for word in re.findall(r"\S+\s*|\s+", answer.text) or [""]:
        yield ChatGenerationChunk(message=AIMessageChunk(content=word, id=answer.id))


class Refused(Exception):
    """How a provider's package tells of an answer with an error."""

    def __init__(self, status: int, said: str = "", **headers: str) -> None:
        super().__init__(said)
        self.status_code = status
        told = {name.replace("_", "-"): each for name, each in headers.items()}
        self.response = type("Response", (), {"headers": told})


class Clock:
    """A clock that tests advance; `now()` is seconds since the epoch."""

    def __init__(self, start: float = 1_760_000_000.0) -> None:
        self.seconds = start

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


def learns(messages: list[BaseMessage]) -> str:
    """Answer as a memory model that finds a fact in every "I like ..." of the user's new messages."""
    likes = re.findall(r"^\[(\d+)\] user[^:]*: .*?I like ([^.\n]+)", messages[-1].text, re.MULTILINE)
    facts = [
        {
            "message": int(number),
            "action": "new",
            "known": 0,
            "content": f"Likes {what}",
            "category": "preference",
            "confidence": 0.9,
        }
        for number, what in likes
    ]
    return json.dumps({"facts": facts, "profile": []})
