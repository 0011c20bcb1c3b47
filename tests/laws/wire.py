"""A server of OpenAI's protocol that refuses what any real server refuses, behind the real `ChatOpenAI`, in process."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from palimpsest import Settings, count_tokens, load_chat_model
from tests.fakes import learns
from tests.templates import template_refuses

Json = dict[str, Any]
MARK = re.compile(r"\bw\d+\b")
URL = "http://model.test/v1"
DOWN: Json = {"status": 500, "content": "the server is down"}
TOO_LONG: Json = {"status": 400, "content": "maximum context length exceeded", "code": "context_length_exceeded"}
_MEMORY = re.compile(r"<memory>.*?</memory>", re.DOTALL)


class Wire:
    """The server: what it is asked, and what it answers next.

    Attributes:
        answers: What the chat model answers next: messages of the protocol, or a failure.
        asked: Is handed each prompt that the chat model takes.
        said: Is handed each of its answers.
        prompts: What the chat model was sent, oldest first.
        told: What was to be learned, oldest first.
        refused: Why prompts were refused.
        writes_summaries: Whether the model for summaries answers.
        hangs: Set by a chat model that hangs.
    """

    def __init__(self) -> None:
        self.asked: Callable[[Json], None] = lambda _: None
        self.said: Callable[[Json], None] = lambda _: None
        self._client = httpx.AsyncClient(transport=httpx.MockTransport(self._arespond))
        self._background = httpx.Client(transport=httpx.MockTransport(self._respond))
        self.begin()

    def begin(self) -> None:
        """Forget all that was asked."""
        self.answers: list[Json] = []
        self.prompts: list[Json] = []
        self.told: list[str] = []
        self.refused: list[str] = []
        self.writes_summaries = True
        self.hangs = asyncio.Event()
        self._thought: dict[str, str] = {}

    def of_process(self, purpose: Any) -> ChatOpenAI:
        """Return the model that a deployment loads."""
        made = load_chat_model(f"openai:{purpose}", Settings(openai_base_url=URL), purpose=purpose)
        assert isinstance(made, ChatOpenAI)
        made.root_async_client = made.root_async_client.with_options(http_client=self._client, max_retries=0)
        made.root_client = made.root_client.with_options(http_client=self._background, max_retries=0)
        made.async_client, made.client = made.root_async_client.chat.completions, made.root_client.chat.completions
        return made

    def of_agent(self, purpose: str) -> ChatOpenAI:
        """Return the model that the author of an agent makes."""
        return ChatOpenAI(
            model=purpose, base_url=URL, api_key=SecretStr("any"), http_async_client=self._client, max_retries=0
        )

    async def _arespond(self, request: httpx.Request) -> httpx.Response:
        if self.answers and "hangs" in self.answers[0] and json.loads(request.content)["model"] == "chat":
            self.answers.pop(0)
            self.hangs.set()
            await asyncio.Event().wait()
        return self._respond(request)

    def _respond(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        answer = self._answer(body)
        if status := answer.get("status"):
            error = {"message": answer["content"], "type": "stub", "code": answer.get("code")}
            return httpx.Response(status, json={"error": error})
        head: Json = {"id": "c", "created": 0, "model": body["model"]}
        said = {"role": "assistant", **answer}
        finish = said.pop("finish", "tool_calls" if answer.get("tool_calls") else "stop")
        usage: Json = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if body.get("stream"):
            return httpx.Response(200, content="".join(_events(head, said, finish, usage)).encode())
        choice = {"index": 0, "finish_reason": finish, "message": said}
        return httpx.Response(200, json={**head, "object": "chat.completion", "choices": [choice], "usage": usage})

    def _answer(self, body: Json) -> Json:
        if why := template_refuses(body["messages"]) or self._refuses(body["messages"]):
            self.refused.append(f"{body['model']}: {why}")
            return {"status": 400, "content": why}
        if body["model"] == "summary":
            # It tells what it was told, so that what leaves the view is still there, once.
            told = " ".join(MARK.findall(text_of(body["messages"])))
            return {"content": f"They told {told}."} if self.writes_summaries else DOWN
        if body["model"] == "memory":
            self.told.append(text_of(body["messages"][-1:]))
            return {"content": learns([HumanMessage(self.told[-1])])}
        self.prompts.append(body)
        self.asked(body)
        if not self.answers:
            self.refused.append("the turn was over")
        answer: Json = self.answers.pop(0) if self.answers else {"content": "Well."}
        self.said(answer)
        for call in answer.get("tool_calls") or () if "reasoning_content" in answer else ():
            self._thought[call["id"]] = answer["reasoning_content"]
        return answer

    def _refuses(self, messages: list[Json]) -> str:
        for one in messages:
            thoughts = {self._thought.get(call["id"]) for call in one.get("tool_calls") or ()} - {None}
            if thoughts and one.get("reasoning_content") not in thoughts:
                return "The `reasoning_content` in the thinking mode must be passed back to the API."
        if messages[-1]["role"] not in ("user", "tool"):
            return f"Expected last role User or Tool: {messages[-1]['role']}"
        return ""


def text_of(messages: list[Json]) -> str:
    """Return all that messages of the protocol say, without what memory put there."""
    contents = [one.get("content") or "" for one in messages]
    texts = [one if isinstance(one, str) else "".join(block.get("text", "") for block in one) for one in contents]
    return _MEMORY.sub("", "\n".join(texts))


def tokens_of(body: Json) -> int:
    """Return the tokens of a prompt and of the tools in it."""
    return count_tokens(body["messages"]) + sum(count_tokens(json.dumps(tool)) for tool in body.get("tools", ()))


def _events(head: Json, said: Json, finish: str, usage: Json) -> Iterator[str]:
    calls = said.pop("tool_calls", None)
    deltas = [said, *({"tool_calls": [{"index": at, **call}]} for at, call in enumerate(calls or ()))]
    choices: list[list[Json]] = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices.append([{"index": 0, "delta": Json(), "finish_reason": finish}])
    for choice in [*choices, []]:
        more = Json() if choice else {"usage": usage}
        yield f"data: {json.dumps({**head, 'object': 'chat.completion.chunk', 'choices': choice, **more})}\n\n"
    yield "data: [DONE]\n\n"
