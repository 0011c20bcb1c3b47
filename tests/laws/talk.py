"""A conversation by each of the public doors, with models that note what they are sent and a clock that tests advance.

Nothing is learned before a test says so: `learn` is another process that starts on the same store.
"""

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore

from palimpsest import (
    Context,
    FactStore,
    MemoryConfig,
    MemoryContext,
    MemoryService,
    MemoryUpdater,
    PalimpsestMemory,
    PalimpsestState,
    RunningSummary,
    Settings,
    build_graph,
)
from tests.fakes import Clock, RecordingModel, learns
from tests.laws.doors import House
from tests.untriggered import Untriggered

AGENTS = ("agent", "agent sync")
DOORS = ("graph", *AGENTS)
"""Every door; one that ends in `sync` is entered without `await`."""
DEEP_AGENTS = ("deep agent", "deep agent sync")
"""More doors, in an environment of their own."""
DAY = 86_400.0
PATIENT: dict[str, Any] = {"read_timeout_seconds": 60, "write_timeout_seconds": 60, "update_spacing_seconds": 0}
"""A busy machine is no store that is away."""
NARROW = Context(max_tokens=900, max_summary_tokens=64, reply_tokens=64, memory_tokens=0)
LONG = " word" * 60


def remembers(messages: list[BaseMessage]) -> str:
    """Answer as a memory model: facts of an extraction, a sentence of all else."""
    return learns(messages) if "Messages:" in messages[-1].text else "They talked."


def no_server() -> Any:
    """Be a process that is no server."""
    raise ConnectionError


class Failing(InMemoryStore):
    """A store that may be away."""

    fails = False

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        if self.fails:
            raise OSError("the disk is gone")
        return await super().abatch(ops)


class Talk:
    """One deployment with its fakes, and one door to it.

    Args:
        door: One of `DOORS` or `DEEP_AGENTS`.
        store: Where memory is kept.
        saver: Where threads are kept.
        tools: What the model may call.
        around: Given the memory middleware, returns an agent's whole list; the graph has none.
        context: What runs of the graph choose.
        settings: Other settings.
        memory: Limits of memory.
        embedder: What finds texts by their meaning; by default nothing does.
        models: Other models than the fakes, by their purpose.
        choices: What an agent's author chose.
    """

    def __init__(
        self,
        door: str = "graph",
        *,
        store: Any = None,
        saver: BaseCheckpointSaver[str] | None = None,
        clock: Clock | None = None,
        tools: Sequence[Any] = (),
        around: Callable[[PalimpsestMemory], list[Any]] = lambda memory: [memory],
        context: Context | None = None,
        settings: dict[str, Any] | None = None,
        memory: dict[str, Any] | None = None,
        embedder: Any = None,
        models: Mapping[str, Any] | None = None,
        **choices: Any,
    ) -> None:
        self.embedder = embedder
        self.door, self.clock = door, clock or Clock()
        self.context: Any = context
        self._made = dict(tools=tools, around=around, context=context, settings=settings, memory=memory, **choices)
        self.store: Any = store or InMemoryStore()
        self.saver = saver or InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=[RunningSummary]))
        given = models or {}
        self.chat: RecordingModel = given.get("chat") or RecordingModel(respond=lambda _: "Noted.")
        self.memory: RecordingModel = given.get("memory") or RecordingModel(respond=remembers)
        self.summaries: RecordingModel = given.get("summary") or RecordingModel(respond=remembers)
        config = MemoryConfig(**PATIENT | (memory or {}))
        self.settings = Settings(**{"memory": config, **(settings or {})})
        self.service = self.process()
        self.service.bind(self.saver)
        if door == "graph":
            self.graph: Any = build_graph(service=self.service, tools=tools).compile(
                checkpointer=self.saver, store=self.store
            )
        else:
            options: dict[str, Any] = {"state_schema": PalimpsestState} if door in AGENTS else {}
            make: Any = create_agent
            if door not in AGENTS:
                make = pytest.importorskip("deepagents").create_deep_agent
            self.graph = make(
                self.chat,
                tools=list(tools),
                middleware=around(PalimpsestMemory(service=self.service, **choices)),
                context_schema=MemoryContext,
                checkpointer=self.saver,
                store=self.store,
                system_prompt="Be brief.",
                **options,
            )

    def restarted(self) -> "Talk":
        """Return the deployment's next process, by the same door."""
        return type(self)(self.door, store=self.store, saver=self.saver, clock=self.clock, **self._made)

    def process(self) -> MemoryService:
        """Start another process of the deployment."""
        return Untriggered(self.settings, self._model, clock=self.clock, client=no_server, embedder=self.embedder)

    def updater(self) -> MemoryUpdater:
        """Return what a program of its own learns with."""
        return MemoryUpdater(self.store, lambda _: self.memory, config=self.settings.memory, clock=self.clock)

    def _model(self, _: str, purpose: str) -> Any:
        return {"chat": self.chat, "summary": self.summaries}.get(purpose, self.memory)

    def who(self, thread: str = "T", user: str = "ada") -> RunnableConfig:
        return {"configurable": {"thread_id": thread, "langgraph_auth_user_id": user}}

    async def say(
        self, text: str, thread: str = "T", *, user: str = "ada", mode: Any = None, **said: Any
    ) -> dict[str, Any]:
        """Say something and return the state that the run ends with."""
        return await self.run({"messages": [HumanMessage(text, **said)]}, self.who(thread, user), mode)

    async def run(self, sent: Any, config: RunnableConfig | None = None, mode: Any = None) -> dict[str, Any]:
        """Run the graph or agent on anything; the config of a checkpoint is enough, and the run is ada's."""
        self.clock.advance(1)
        if config is None or "checkpoint_id" in config["configurable"]:
            config = {"configurable": {**self.who()["configurable"], **(config or {}).get("configurable", {})}}
        context = self.context if self.door == "graph" else None
        if mode:
            limits = vars(context) if context else {}
            kind: Any = Context if self.door == "graph" else MemoryContext
            context = kind(**{**limits, "memory_mode": mode})
        if self.door.endswith("sync"):
            return dict(await asyncio.to_thread(self.graph.invoke, sent, config, context=context))
        return dict(await self.graph.ainvoke(sent, config, context=context))

    async def values(self, thread: str = "T") -> dict[str, Any]:
        """Return the newest state of a thread."""
        return dict((await self.graph.aget_state(self.who(thread))).values)

    async def learn(self) -> list[str]:
        """Let another process learn all that waits, of anybody; return what is known of ada then."""
        await self.process().asweep(self.store)
        return await self.known()

    async def known(self, user: str = "ada", **of: Any) -> list[str]:
        """Return what is known of a user."""
        return sorted(fact.content for fact in await FactStore(self.store, user, **of).alist())

    def stored(self) -> str:
        """Return all that the store holds."""
        return str([(item.namespace, item.key, item.value) for item in self.store.search((), limit=10_000)])

    def shown(self) -> str:
        """Return all that the chat model was sent last."""
        return "\n".join(message.text for message in self.chat.prompts[-1])

    def read(self) -> Counter[str]:
        """Return how often each text of a person was read to be learned."""
        prompts = [prompt[-1].text for prompt in self.memory.prompts if "Messages:" in prompt[-1].text]
        return Counter(
            told for text in prompts for told in re.findall(r"^\[\d+\] user[^:]*: (.*)$", text, re.MULTILINE)
        )


@contextmanager
def failing(store: Failing) -> Iterator[None]:
    """Let the store be away meanwhile."""
    store.fails = True
    yield
    store.fails = False


def erase_everything(talk: Talk) -> None:
    """Erase all of ada's memory by the API; checkpoints stay, as where a server fails in the middle of it."""
    _ask(talk, "POST", "/erase/everything", {"erase": "everything"})


def set_learning(talk: Talk, is_on: bool) -> None:
    """Let ada pause learning, or go on with it, by the API."""
    _ask(talk, "PUT", "/learning", {"learning": is_on})


def _ask(talk: Talk, method: str, path: str, body: object) -> None:
    house = House(talk.store, InMemorySaver(), {}, talk.clock)
    in_thread(house.ask(method, path, body))


def in_thread(work: Coroutine[Any, Any, Any]) -> None:
    """Do something while an event loop waits: a model that is asked in the middle of a turn has no other way."""
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(asyncio.run(work)))
    thread.start()
    thread.join()
    ((status, _),) = done
    assert status < 300
