"""One process over a store and a saver that outlive it, by public names and the HTTP API alone.

A `House` is what one process holds in its own memory: a service, a graph and the memory API. Operations of the matrix
speak its vocabulary only.
"""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import httpx
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from starlette.types import ASGIApp

from palimpsest import (
    ConversationContext,
    FactStore,
    MemoryConfig,
    MemoryService,
    MemoryUpdater,
    Settings,
    build_graph,
    memory_api,
)
from tests.archive_lines import taking
from tests.fakes import Clock, RecordingModel
from tests.laws.server import ThreadServer, logging_in
from tests.untriggered import Untriggered

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


NO_FOLDER = Path("no such folder")


class House:
    """One process: what it holds goes when it is killed, store, saver, rows of threads and clock stay."""

    def __init__(
        self,
        store: BaseStore,
        saver: BaseCheckpointSaver[str],
        rows: dict[str, dict[str, Any]],
        clock: Clock,
        folder: Path = NO_FOLDER,
        config: MemoryConfig = CONFIG,
        kind: type[MemoryService] = Untriggered,
    ) -> None:
        self.ids: dict[str, str] = {}
        self.store, self.saver, self.rows, self.clock = store, saver, rows, clock
        self.chat, self.memory = (
            RecordingModel(respond=lambda sent: reply_to(sent[-1].text.rpartition("</memory>\n\n")[2])),
            RecordingModel(respond=remember),
        )
        self.service = kind(
            Settings(memory=config, data_dir=folder, requests_per_minute=1_000_000),
            lambda _, purpose: self.chat if purpose == "chat" else self.memory,
            clock=clock,
            client=ThreadServer(rows, saver).client,
        )
        self.facts = FactStore(store, USER, config=config, clock=clock)

    @cached_property
    def app(self) -> ASGIApp:
        """The memory API."""
        return logging_in(memory_api(self.service, self.store))

    @cached_property
    def _client(self) -> httpx.AsyncClient:
        """It holds no connection, and is never closed: a new one for each request takes as long as the request."""
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://t/memory")

    @cached_property
    def graph(self) -> Any:
        return build_graph(service=self.service).compile(checkpointer=self.saver, store=self.store)

    def prompts(self) -> str:
        """All that models were sent."""
        return "\n".join(each.text for model in (self.chat, self.memory) for sent in model.prompts for each in sent)

    async def say(self, thread_id: str, text: str, user: str = USER) -> None:
        """One turn of the chat graph."""
        if thread_id not in self.rows:
            self.rows[thread_id] = {"owner": user}
        who = {"configurable": {"thread_id": thread_id, "langgraph_auth_user_id": user}}
        await self.graph.ainvoke({"messages": [HumanMessage(text, id=f"m{crc32(text.encode())}")]}, who)

    async def learn(self) -> None:
        """Work off what waits of the user."""
        await self.service.adrain(self.store, self.facts.owner)

    async def sweep(self) -> None:
        """Do what a server does at its start: all that is due, of anybody."""
        await self.service.asweep(self.store)

    async def known(self) -> list[str]:
        """Return what is known of the user."""
        return sorted(fact.content for fact in await self.facts.alist())

    async def roll_up(self) -> None:
        await self.service.work(self.store, lambda updater: updater.roll_up(self.facts.owner))

    async def cut(self, thread_id: str, *texts: str) -> None:
        """Write down and learn what a summary takes away."""
        said = [HumanMessage(text, id=f"m{crc32(text.encode())}") for text in texts]
        updater = MemoryUpdater(self.store, lambda _: self.memory, config=CONFIG, clock=self.clock)
        context = ConversationContext(thread_id, USER, messages=said, kind="cut")
        await asyncio.to_thread(updater.process, context)

    async def ask(self, method: str, path: str, body: object = None, user: str = USER, **sent: Any) -> tuple[int, Any]:
        """Ask the memory API in process; return status and answer."""
        headers = {"x-test-user": user, **sent.pop("headers", {})}
        answer = await self._client.request(method, path, json=body, headers=headers, **sent)
        is_json = answer.headers.get("content-type", "").partition(";")[0] == "application/json"
        return answer.status_code, answer.json() if is_json else answer.text

    async def propose(self, content: str, confidence: float = 0.9) -> str:
        """Let a fact wait for the user's yes, as one of a file may; return its id."""
        waits = {"content": content, "category": "knowledge", "confidence": confidence, "status": "waiting"}
        await self.ask("POST", "/import", None, **taking({"facts": [waits]}))
        return next(fact.id for fact in await self.facts.alist("waiting") if fact.content == content)

    async def shown(self) -> str:
        """What a new conversation's prompt, or an extraction, may show of facts and profile."""
        return repr(await self.facts.asnapshot())
