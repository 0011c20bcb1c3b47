"""Summaries of an agent's conversation: written before they are due, or behind the turn, as the chat graph has them."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from graphs.middleware import MemoryContext, PalimpsestMemory, PalimpsestState, PalimpsestSummary
from memory.context.tokens import shared_counter
from memory.turn import MemoryMode
from tests.summary_chat import Chat, Held
from tests.threads import varied

TRIGGER, SUMMARY_TOKENS = 600, 60
BESIDE = 60
"""Tokens of the system prompt, and of the words around a summary."""


@tool
def look_up(city: str) -> str:
    """Look a city up."""
    return varied(20, city)


class AgentChat(Chat):
    """A thread of an agent whose summary model knows whether a turn waits for it."""

    def __init__(self, door: str, *, with_memory: bool = True, summary: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.is_sync = door.endswith("sync")
        memory = PalimpsestMemory(service=self.service, memory_tokens=0, tools=())
        flushes: dict[str, Any] = {"memory": memory} if with_memory else {"service": self.service}
        middleware: list[Any] = [memory] if with_memory else []
        middleware.append(
            PalimpsestSummary(
                self.summaries,
                **{"trigger": ("tokens", TRIGGER), "keep": ("tokens", TRIGGER // 2), **(summary or {})},
                max_summary_tokens=SUMMARY_TOKENS,
                **flushes,
            )
        )
        agent: dict[str, Any] = {
            "middleware": middleware,
            "context_schema": MemoryContext,
            "system_prompt": "Be brief.",
        }
        agent |= {"checkpointer": self.saver, "store": self.store}
        self.graph: Any = self._made(door, agent)

    def _made(self, door: str, agent: dict[str, Any]) -> Any:
        if door.startswith("deep"):
            return pytest.importorskip("deepagents").create_deep_agent(self.answers, **agent)
        return create_agent(self.answers, tools=[look_up], state_schema=PalimpsestState, **agent)

    async def turn(self, number: int, context: Any = None, size: int = 25, mode: MemoryMode = "normal") -> None:
        asked = {"messages": [HumanMessage(f"question {number} {varied(size)}", id=f"h{number}")]}
        streamed: Any = {"context": MemoryContext(memory_mode=mode), "stream_mode": ["custom", "values"]}
        if self.is_sync:
            parts = await asyncio.to_thread(lambda: list(self.graph.stream(asked, self.config(), **streamed)))
        else:
            parts = [part async for part in self.graph.astream(asked, self.config(), **streamed)]
        self.events += [
            part["payload"] for kind, part in parts if kind == "custom" and part["name"] == "memory.summarized"
        ]
        self.left_out = [
            part["payload"] for kind, part in parts if kind == "custom" and part["name"] == "memory.left_out"
        ]

    async def written(self) -> None:
        """Return when what is written in the background is."""
        if self.writing:
            await asyncio.gather(asyncio.wrap_future(self.writing[-1]), return_exceptions=True)

    async def summary(self) -> dict[str, Any]:
        return dict((await self.state()).get("palimpsest_summary", {}))

    async def receipt(self) -> dict[str, Any]:
        return dict((await self.state())["palimpsest_memory"]["PalimpsestMemory"]["receipt"])


@pytest.fixture(params=["agent", "agent sync", "deep agent", "deep agent sync"])
def door(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["agent", "agent sync"])
def plain(request: pytest.FixtureRequest) -> str:
    """Return a door whose prompts hold nothing else than the conversation."""
    return str(request.param)


@contextmanager
def talking(door: str, **options: Any) -> Iterator[AgentChat]:
    chat = AgentChat(door, **options)
    yield chat
    chat.service.close(0.0)


def after(**summary: Any) -> dict[str, Any]:
    return {"summary": {"summarize": "after", **summary}}


@pytest.mark.parametrize(
    "summary",
    [
        {"trigger": ("messages", 12), "keep": ("messages", 4)},
        {"trigger": ("messages", 12), "keep": ("tokens", 150)},
        {"trigger": ("tokens", 400), "keep": ("messages", 4)},
    ],
    ids=str,
)
async def test_whatever_triggers_it_the_summary_is_there(plain: str, summary: dict[str, Any]) -> None:
    with talking(plain, summary=summary) as chat:
        for number in range(30):
            await chat.turn(number)
            await chat.written()
        assert len(chat.events) >= 2
        assert all(event["ready"] for event in chat.events)
        assert "turn" not in chat.asked_in


async def test_an_agent_without_memory_has_it_too(plain: str) -> None:
    with talking(plain, with_memory=False) as chat:
        for number in range(20):
            await chat.turn(number)
            await chat.written()
        assert chat.events
        assert all(event["ready"] for event in chat.events)


async def test_a_state_that_nobody_keeps_waits_for_its_summary(plain: str) -> None:
    """Without a checkpointer there is no later turn that would have it."""
    with talking(plain, **after()) as chat:
        agent: Any = create_agent(
            chat.answers, middleware=[PalimpsestSummary(chat.summaries, trigger=("tokens", TRIGGER), summarize="after")]
        )
        messages = [HumanMessage(varied(25)) if number % 2 == 0 else AIMessage(varied(25)) for number in range(61)]
        sent: Any = {"messages": messages}
        await (asyncio.to_thread(agent.invoke, sent) if chat.is_sync else agent.ainvoke(sent))
        assert {*chat.asked_in} == {"turn"}
        assert "They talked" in chat.answers.prompts[-1][0].text


async def test_a_turn_of_many_tools_waits_for_nothing(plain: str) -> None:
    held, steps = Held(), itertools.count(1)
    with talking(plain, begin=held, **after()) as chat:

        def answer(_: Any) -> Any:
            step = next(steps)
            if step % 6 == 0:
                return varied(25, "answer")
            call = {"name": "look_up", "args": {"city": "Bergen"}, "id": f"c{step}"}
            return AIMessage(varied(20, "thinking"), tool_calls=[call])

        chat.answers.respond = answer
        for number in range(8):
            await chat.turn(number)
            prompt = chat.answers.prompts[-1]
            called = {call["id"] for one in prompt for call in getattr(one, "tool_calls", ())}
            assert called == {one.tool_call_id for one in prompt if isinstance(one, ToolMessage)}
            assert shared_counter()(prompt) <= TRIGGER + BESIDE
        assert "turn" not in chat.asked_in
        written = chat.cut_ids()
        assert len(written) == len(set(written))
        await held.finish()
        await chat.turn(8)
        assert [event["ready"] for event in chat.events] == [True]


def test_when_it_summarizes_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="summarize must be 'before' or 'after', not 'never'"):
        PalimpsestSummary(Chat().summaries, summarize="never")  # type: ignore[arg-type]
