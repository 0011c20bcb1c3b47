"""The chat graph with a summary model that knows whether a turn waits for it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from graphs.turn.prepared import PreparedSummaries
from graphs.turn.state import InputState
from memory.config import MemoryConfig
from memory.effects import in_daemon_thread
from tests.fakes import RecordingModel, learns
from tests.threads import varied

HOUR = 3600.0
CONTEXT = Context(max_tokens=600, max_summary_tokens=60, reply_tokens=0, memory_tokens=0)

Begin = Callable[[Callable[[], Any]], "Future[Any]"]


def in_background() -> bool:
    """Say whether this is no thread that a turn waits for: those are of the event loop's pool."""
    return threading.current_thread().daemon


class Held:
    """Summaries whose writing goes on when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def __call__(self, write: Callable[[], Any]) -> "Future[Any]":
        self.waiting.append((Future(), write))
        return self.waiting[-1][0]

    async def finish(self) -> None:
        """Write what waits."""
        for future, write in self.waiting:
            done = in_daemon_thread(write)
            try:
                future.set_result(await asyncio.wrap_future(done))
            except Exception as error:  # the model's, and so the future's
                future.set_exception(error)
        self.waiting.clear()


class Chat:
    """A thread of the chat graph; several of one saver and store are several processes that serve it."""

    def __init__(
        self,
        *,
        begin: Begin = in_daemon_thread,
        saver: BaseCheckpointSaver[str] | None = None,
        store: InMemoryStore | None = None,
        **memory: Any,
    ) -> None:
        self.asked_in: list[str] = []
        quiet = MemoryConfig(debounce_seconds=HOUR, max_wait_seconds=HOUR, **memory)
        self.summaries = RecordingModel(respond=self._summary)
        self.answers = RecordingModel(respond=lambda _: varied(25, "answer"))
        self.service = MemoryService(Settings(model="fake:model", memory=quiet), self._model)
        self.writing: list[Future[Any]] = []
        self._start = begin
        self.service.summaries = PreparedSummaries(HOUR, begin=self._begin)
        self.saver, self.store = saver or InMemorySaver(), store or InMemoryStore()
        self.graph = build_graph(service=self.service).compile(checkpointer=self.saver, store=self.store)
        self.events: list[dict[str, Any]] = []

    def _model(self, _: str, purpose: str) -> RecordingModel:
        if purpose == "memory":
            return RecordingModel(respond=learns)
        return self.summaries if purpose == "summary" else self.answers

    def _begin(self, write: Any) -> "Future[Any]":
        self.writing.append(self._start(write))
        return self.writing[-1]

    def _summary(self, messages: list[BaseMessage]) -> str:
        self.asked_in.append("background" if in_background() else "turn")
        return f"They talked {len(self.asked_in)} times."

    def config(self) -> RunnableConfig:
        return {"configurable": {"thread_id": "t", "langgraph_auth_user_id": "ada"}}

    async def state(self) -> dict[str, Any]:
        return (await self.graph.aget_state(self.config())).values

    async def turn(self, number: int, context: Context = CONTEXT, size: int = 25) -> None:
        question = InputState(messages=[HumanMessage(f"question {number} {varied(size)}", id=f"h{number}")])
        async for mode, part in self.graph.astream(
            question, self.config(), context=context, stream_mode=["custom", "values"]
        ):
            event: Any = part
            if mode == "custom" and event["name"] == "memory.summarized":
                self.events.append(event["payload"])

    async def turns(self, first: int, stop: int, context: Context = CONTEXT) -> None:
        for number in range(first, stop):
            await self.turn(number, context)

    def cut_ids(self) -> list[str]:
        """Return the ids of what was written down because it left the context, as often as it was."""
        entries = [item.value for item in self.store.search((), limit=10_000)]
        return [one["id"] for entry in entries if entry.get("kind") == "cut" for one in entry["messages"]]


@contextmanager
def chatting(**options: Any) -> Iterator[Chat]:
    chat = Chat(**options)
    yield chat
    chat.service.close(0.0)
