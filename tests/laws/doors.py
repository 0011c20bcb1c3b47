"""The one place that knows how today's memory is entered where `palimpsest` has no public name yet.

A `House` is what one process holds in its own memory: a service, a graph and the memory API over a store and a saver
that outlive it. Operations of the matrix speak its vocabulary only. What changes inside is aimed anew here.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import httpx
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.types import ASGIApp

from graphs.persistence import CHECKPOINTS, STORE, empty_logs, leave_no_bytes, open_checkpointer, open_store
from graphs.persistence.postgres_saver import open_postgres_checkpointer
from graphs.persistence.postgres_store import open_postgres_store
from graphs.persistence.sqlite_saver import CheckpointFile
from graphs.server.api import MemoryApi, Service
from graphs.server.api.guard import RateLimit
from graphs.server.thread_doors import DeletedThreads, DeletionDoor, by_retention
from graphs.server.unwritten import write_down_left
from memory.namespaces import Owner
from palimpsest import (
    ConversationContext,
    FactStore,
    MemoryConfig,
    MemoryService,
    MemoryUpdater,
    Settings,
    build_graph,
)
from tests.fakes import Clock, RecordingModel
from tests.memory_app import FakeCrons, FakeThreads, HeaderSays

USER = "ada"
CAP = 7
CONFIG = MemoryConfig(
    max_facts=CAP,
    update_spacing_seconds=0,
    read_timeout_seconds=60,  # a busy machine is no store that is away
    write_timeout_seconds=60,
)
LONGEST_WAIT = 2 * CONFIG.retry_max_seconds
DAY = 86_400.0

_SAID = re.compile(r"^\[(\d+)\] user[^:]*: (.*)$", re.MULTILINE)
_KNOWN = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)


def reply_to(text: str) -> str:
    """Return what the chat model answers to a message, whatever its prompt shows of memory."""
    return f"Noted as {crc32(text.encode())}."


def remember(messages: list[BaseMessage]) -> str:
    """Answer as a memory model that takes everybody at their word."""
    text = messages[-1].text
    if "<journal>" in text:
        return "They talked of " + ", ".join(dict.fromkeys(re.findall(r"I (?:\w+ )*like (\w+)", text))) + "."
    known = {content: int(number) for number, content in _KNOWN.findall(text.partition("Known profile:")[0])}
    found = [each for number, said in _SAID.findall(text) for each in _facts(int(number), said, known)]
    told = re.findall(r"I like (axolotls)", text.partition("Messages:")[2])
    return json.dumps({"facts": found, "profile": [{"section": "personal", "text": each.title()} for each in told]})


def _facts(number: int, said: str, known: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    new = {"message": number, "action": "new", "known": 0, "category": "preference", "confidence": 0.9}
    for what in re.findall(r"I like (\w+)", said):
        yield {**new, "content": f"Likes {what}"}
    for what in re.findall(r"I might like (\w+)", said):
        yield {**new, "content": f"Likes {what}", "confidence": 0.55}
    for what in re.findall(r"I still like (\w+)", said):
        old = known.get(f"Likes {what}", 0)
        yield {**new, "content": f"Likes {what}", "action": "confirms" if old else "new", "known": old}
    for now, before in re.findall(r"I prefer (\w+) to (\w+)", said):
        old = next((place for content, place in known.items() if before in content), 0)
        yield {**new, "content": f"Prefers {now}", "action": "corrects" if old else "new", "known": old}


class Threads(FakeThreads):
    """A server's rows of threads, whose checkpoints go with them."""

    def __init__(self, rows: dict[str, Any], saver: BaseCheckpointSaver[str]) -> None:
        super().__init__()
        self.rows, self._saver = rows, saver

    async def delete(self, thread_id: str) -> None:
        await super().delete(thread_id)
        await self._saver.adelete_thread(thread_id)


class House:
    """One process: what it holds goes when it is killed, store, saver, rows of threads and clock stay."""

    def __init__(
        self,
        store: BaseStore,
        saver: BaseCheckpointSaver[str],
        rows: dict[str, Any],
        clock: Clock,
        folder: Path,
    ) -> None:
        self.ids: dict[str, str] = {}
        self.leaves_no_bytes = False  # a process for each erase takes long where files do not matter
        self.store, self.saver, self.rows, self.clock, self.folder = store, saver, rows, clock, folder
        self.chat, self.memory = (
            RecordingModel(respond=lambda sent: reply_to(sent[-1].text)),
            RecordingModel(respond=remember),
        )
        self._settings = Settings(trigger="run", memory=CONFIG, data_dir=folder)
        self.service = MemoryService(
            self._settings, lambda _, purpose: self.chat if purpose == "chat" else self.memory, clock=clock
        )
        self.facts = FactStore(store, USER, config=CONFIG, clock=clock)
        self._owner = Owner.of(USER)

    @cached_property
    def graph(self) -> Any:
        return build_graph(service=self.service).compile(checkpointer=self.saver, store=self.store)

    def prompts(self) -> str:
        """All that models were sent."""
        return "\n".join(each.text for model in (self.chat, self.memory) for sent in model.prompts for each in sent)

    async def say(self, thread_id: str, text: str, user: str = USER) -> None:
        """One turn of the chat graph."""
        if thread_id not in self.rows:
            self.rows[thread_id] = (user, {}, {})
        who = {"configurable": {"thread_id": thread_id, "langgraph_auth_user_id": user}}
        await self.graph.ainvoke({"messages": [HumanMessage(text, id=f"m{crc32(text.encode())}")]}, who)

    async def learn(self) -> None:
        """Work off what waits of the user."""
        await self.service.adrain(self.store, self._owner)

    async def sweep(self) -> None:
        """Do what a server does at its start: all that is due, of anybody."""
        await self.service.asweep(self.store)

    async def roll_up(self) -> None:
        await self.service.arollup(self.store, self._owner)

    async def cut(self, thread_id: str, *texts: str) -> None:
        """Write down and learn what a summary takes away."""
        said = [HumanMessage(text, id=f"m{crc32(text.encode())}") for text in texts]
        updater = MemoryUpdater(self.store, lambda _: self.memory, config=CONFIG, clock=self.clock)
        context = ConversationContext(thread_id, USER, messages=said, kind="cut")
        await asyncio.to_thread(updater.process, context)

    async def ask(self, method: str, path: str, body: object = None, user: str = USER) -> tuple[int, Any]:
        """Ask the memory API in process; return status and answer."""
        with _app(self._api()) as app:
            transport, headers = httpx.ASGITransport(app), {"x-test-user": user}
            async with httpx.AsyncClient(transport=transport, base_url="http://t/memory", headers=headers) as client:
                answer = await client.request(method, path, json=body)
        is_json = answer.headers.get("content-type", "").partition(";")[0] == "application/json"
        return answer.status_code, answer.json() if is_json else answer.text

    async def shown(self) -> str:
        """What a new conversation's prompt, or an extraction, may show of facts and profile."""
        return repr(await self.facts.asnapshot())

    def _api(self) -> Service:
        return Service(
            settings=self._settings,
            store=self.store,
            threads=Threads(self.rows, self.saver),
            crons=FakeCrons(),
            checkpoints=CheckpointFile(self.folder / CHECKPOINTS),
            empty_logs=lambda: (leave_no_bytes if self.leaves_no_bytes else empty_logs)(self.folder),
            clock=self.clock,
            forget=self.service.forget,
            wake=lambda *_: None,
            limit=RateLimit(1_000_000, clock=self.clock),
        )


_IDLE: list[MemoryApi] = []


@contextmanager
def _app(service: Service) -> Iterator[MemoryApi]:
    """Lend an app, as making one takes longer than a request; two requests at once have one each."""
    guards = [Middleware(AuthenticationMiddleware, backend=HeaderSays())]
    app = _IDLE.pop() if _IDLE else MemoryApi(middleware=guards)
    app.state.service = service
    yield app
    _IDLE.append(app)


def open_ours_on_postgres(uri: str) -> AbstractAsyncContextManager[BaseStore]:
    """Open the store that a deployment has on Postgres."""
    return open_postgres_store(uri, 4)


def open_saver_on_postgres(uri: str) -> AbstractAsyncContextManager[BaseCheckpointSaver[str]]:
    """Open the checkpointer that a deployment has on Postgres."""
    return open_postgres_checkpointer(uri, 4)


async def look_back(service: MemoryService, store: BaseStore) -> int:
    """Write down what states name as unwritten, as a server does at its start; return how many turns."""
    return await write_down_left(service, store)


@asynccontextmanager
async def open_files(settings: Settings) -> AsyncIterator[tuple[BaseStore, BaseCheckpointSaver[str]]]:
    """Open the files of a deployment as its server does."""
    folder = settings.data_dir
    async with open_store(folder / STORE) as store, open_checkpointer(folder / CHECKPOINTS) as saver:
        yield store, saver


def deletions_of(app: ASGIApp, store: BaseStore, clock: Clock) -> ASGIApp:
    """Return what stands before a server's routes of threads."""

    async def deleted() -> DeletedThreads:
        return DeletedThreads(store, None, clock)

    return DeletionDoor(app, deleted=deleted)


def deleting_by_age() -> None:
    """Let all that the task deletes from here on go because it is old."""
    by_retention.set(True)
