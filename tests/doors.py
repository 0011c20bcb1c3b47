"""The doors to one memory, so that a test can enter by each: the chat graph, `create_agent`, `create_deep_agent`."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.middleware import MemoryContext, PalimpsestMemory, PalimpsestState, PalimpsestSummary
from graphs.process.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory import RunningSummary
from memory.config import MemoryConfig
from memory.namespaces import Owner
from memory.turn import MemoryMode
from tests.fakes import RecordingModel

MAX_TOKENS, REPLY_TOKENS, SUMMARY_TOKENS = 900, 64, 64

DOORS = ("graph", "agent", "agent sync", "deep agent", "deep agent sync")
"""Every door; those that end in `sync` are entered without `await`."""


def is_extraction(messages: Sequence[BaseMessage]) -> bool:
    return "Answer with JSON only" in messages[0].text


def saver() -> InMemorySaver:
    return InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=[RunningSummary]))


class Door(Protocol):
    """How a conversation is entered."""

    def __call__(self, house: "House") -> Any:
        """Return what is invoked."""


class House:
    """One deployment in single-user mode with its fakes, and one door to it.

    Args:
        door: One of `DOORS`.
        store: Where memory is kept.
        tools: What the model may call.
        memory: Limits of memory.
        middleware: Given the memory middleware, returns an agent's whole list; the graph has none.
        checkpointer: Where threads are kept.
    """

    def __init__(
        self,
        door: str = "graph",
        *,
        store: BaseStore | None = None,
        tools: Any = (),
        memory: MemoryConfig | None = None,
        middleware: Callable[[PalimpsestMemory], list[Any]] | None = None,
        checkpointer: BaseCheckpointSaver[str] | None = None,
        summarizes: bool = False,
        **choices: Any,
    ) -> None:
        self.door, self.tools = door, tools
        self.chat = RecordingModel()
        self.memory = RecordingModel(respond=self._remember)
        self.facts: list[dict[str, Any]] = []
        settings = Settings(single_user=True, memory=memory or MemoryConfig(debounce_seconds=3600))
        self.service = MemoryService(settings, lambda _, purpose: self.chat if purpose == "chat" else self.memory)
        self.store = store or InMemoryStore()
        self.checkpointer = checkpointer or saver()
        self.summarizes = summarizes
        self.choices = choices
        self.graph: Any
        if self.is_graph:
            builder = build_graph(service=self.service, tools=tools)
            self.graph = builder.compile(checkpointer=self.checkpointer, store=self.store)
            return
        remembers = PalimpsestMemory(service=self.service, **choices)
        around = middleware(remembers) if middleware else [remembers]
        if summarizes:
            around.append(self.summary(remembers))
        self.graph = self._agent(around)

    @property
    def is_graph(self) -> bool:
        return self.door == "graph"

    def summary(self, remembers: PalimpsestMemory | None = None) -> PalimpsestSummary:
        return PalimpsestSummary(
            self.memory,
            trigger=("tokens", MAX_TOKENS),
            keep=("tokens", MAX_TOKENS // 2),
            max_summary_tokens=SUMMARY_TOKENS,
            memory=remembers,
        )

    def _agent(self, around: list[Any]) -> Any:
        options: dict[str, Any] = {
            "tools": list(self.tools),
            "middleware": around,
            "context_schema": MemoryContext,
            "checkpointer": self.checkpointer,
            "store": self.store,
            "system_prompt": "Be brief.",
        }
        if self.door.startswith("deep"):
            deepagents = pytest.importorskip("deepagents")
            return deepagents.create_deep_agent(self.chat, **options)
        return create_agent(self.chat, state_schema=PalimpsestState, **options)

    def _remember(self, messages: list[BaseMessage]) -> str:
        return json.dumps({"facts": self.facts, "profile": []}) if is_extraction(messages) else "They talked."

    async def say(
        self, text: str, thread: str = "t", *, user: str = "local", mode: MemoryMode = "normal", **said: Any
    ) -> dict[str, Any]:
        """Say something and return the state that the run ends with."""
        return await self.invoke({"messages": [HumanMessage(text, **said)]}, thread, user=user, mode=mode)

    async def invoke(
        self, sent: Any, thread: str = "t", *, user: str = "local", mode: MemoryMode = "normal"
    ) -> dict[str, Any]:
        config: RunnableConfig = {"configurable": {"thread_id": thread, "user_id": user}}
        context: Any = MemoryContext(memory_mode=mode)
        if self.is_graph:
            limits: dict[str, Any] = {}
            if self.summarizes:
                limits = {"max_tokens": MAX_TOKENS, "reply_tokens": REPLY_TOKENS, "max_summary_tokens": SUMMARY_TOKENS}
            context = Context(memory_mode=mode, **limits, **self.choices)
        if self.door.endswith("sync"):
            state = await asyncio.to_thread(self.graph.invoke, sent, config, context=context)
        else:
            state = await self.graph.ainvoke(sent, config, context=context)
        return dict(state)

    async def settle(self, user: str = "local", agent_name: str = "default") -> None:
        """Learn what waits."""
        await self.service.adrain(self.store, Owner.of(user, agent_name))

    def shown(self) -> str:
        """Return all that the chat model was sent last."""
        return "\n".join(message.text for message in self.chat.prompts[-1])

    def outbox(self, user: str = "local", agent_name: str = "default") -> list[dict[str, Any]]:
        """Return the pending updates, oldest first."""
        items = self.store.search(Owner.of(user, agent_name).namespace("outbox"), limit=1000)
        return sorted((item.value for item in items), key=lambda value: float(value["created"]))

    def pending(self, user: str = "local", agent_name: str = "default") -> set[str]:
        """Return what people said that waits to be learned."""
        messages = (message for entry in self.outbox(user, agent_name) for message in entry["messages"])
        return {str(message["text"]) for message in messages if message["role"] == "user"}
