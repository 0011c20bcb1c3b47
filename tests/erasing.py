"""Somebody who talks about an axolotl, memory on real SQLite files, and where the word is afterwards."""

import json
import re
import sqlite3
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from langchain_core.messages import BaseMessage, HumanMessage

from graphs.chat import build_graph
from graphs.data_folder import CHECKPOINTS, STORE
from graphs.persistence import empty_logs
from graphs.persistence.sqlite_saver import open_checkpointer
from graphs.persistence.sqlite_store import open_store
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.config import MemoryConfig
from memory.namespaces import ROOT, Owner
from tests.fakes import Clock, RecordingModel
from tests.memory_app import FakeCrons, FakeThreads, MemoryApp
from tests.untriggered import Untriggered

ADA = Owner.of("ada")
WORD = "axolotl"
KINDS = ("facts", "history", "confirmations", "journal", "profile", "outbox", "seen", "receipts")
"""Where in the store a word may be; whatever else is there counts as `other`."""

_SMALL = Context(max_tokens=900, max_summary_tokens=64, reply_tokens=64)
_PADDING = " And so it went on and on." * 30
_SAID = re.compile(r"^\[(\d+)\] user[^:]*: (.*)$", re.MULTILINE)


class Conversations(FakeThreads):
    """Threads with rows as a server has them, and checkpoints in the file."""

    def __init__(self, world: "World") -> None:
        super().__init__()
        self._world = world

    async def delete(self, thread_id: str) -> None:
        await super().delete(thread_id)
        await self._world.saver.adelete_thread(thread_id)


class World:
    """One user, ada, with the chat graph and the memory API on two SQLite files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, Clock()
        self.threads, self.crons = Conversations(self), FakeCrons()
        self.reply = "Noted."
        self.chat, self.memory = RecordingModel(respond=lambda _: self.reply), RecordingModel(respond=self._remember)
        self._files = AsyncExitStack()

    async def __aenter__(self) -> "World":
        await self._open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._files.aclose()

    async def restart(self) -> None:
        """Close the files and open them in another service, as another process would."""
        await self._files.aclose()
        await self._open()

    async def _open(self) -> None:
        settings = Settings(data_dir=self.folder, memory=MemoryConfig(update_spacing_seconds=0))
        self.service = Untriggered(
            settings, lambda _, purpose: self.chat if purpose == "chat" else self.memory, clock=self.clock
        )
        self.store = await self._files.enter_async_context(open_store(self.folder / STORE))
        self.saver = await self._files.enter_async_context(open_checkpointer(self.folder / CHECKPOINTS))
        self.graph = build_graph(service=self.service).compile(checkpointer=self.saver, store=self.store)
        self.api = MemoryApp(
            settings,
            store=self.store,
            threads=self.threads,
            crons=self.crons,
            clock=self.clock,
            checkpoints=self.folder / CHECKPOINTS,
        )

    def thread(self) -> str:
        return self.threads.add("ada", str(uuid4()))

    async def say(self, thread_id: str, text: str, reply: str = "Noted.") -> str:
        """Say something and have it learned; return the prompt that the model was sent."""
        self.reply = reply
        self.clock.advance(1)
        who = {"configurable": {"thread_id": thread_id, "langgraph_auth_user_id": "ada"}}
        await self.graph.ainvoke({"messages": [HumanMessage(text)]}, who, context=_SMALL)  # type: ignore[call-overload]
        prompt = "\n".join(message.text for message in self.chat.prompts[-1])
        await self.learn()
        return prompt

    async def learn(self) -> None:
        await self.service.adrain(self.store, ADA)

    async def talk_on(self, thread_id: str) -> None:
        """Go on about something else until all that was said before is summarized, and so in the journal."""
        for number in range(4):
            await self.say(thread_id, f"Number {number} of many.{_PADDING}")

    async def next_day(self) -> None:
        """Let the day be over and rolled up."""
        self.clock.advance(86_400)
        await self.service.arollup(self.store, ADA)

    async def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        async with self.api.user("ada") as client:
            return await client.request(method, path, json=body)

    async def fact_id(self) -> str:
        """The one fact that is known."""
        (fact,) = (await self.ask("GET", "/facts")).json()["facts"]
        return str(fact["id"])

    def _remember(self, messages: list[BaseMessage]) -> str:
        asked = "\n".join(message.text for message in messages)
        if "<journal>" in messages[-1].text:
            return f"They talked of an {WORD}." if WORD in messages[-1].text else "They talked of little."
        if "Messages:" not in messages[-1].text:
            return f"They talk of an {WORD}." if WORD in asked else "They talk."
        facts = [found for number, text in _SAID.findall(messages[-1].text) if (found := _found(int(number), text))]
        is_known = f"Keeps an {WORD}" in messages[-1].text.partition("Messages:")[0]
        profile = [{"section": "user.personal", "text": f"Has an {WORD}"}] if facts and WORD in str(facts) else []
        return json.dumps({"facts": [fact for fact in facts if is_known or fact["known"] == 0], "profile": profile})

    async def places(self) -> set[str]:
        """Where the word is now, on the disk of a process that has ended, and in the next prompt."""
        found = set[str]()
        prompt = await self.say(self.thread(), "What do you know about me?")
        found.update({"prompt"} if WORD in prompt else ())
        for namespace in await self.store.alist_namespaces(limit=1000):
            kind = namespace[-1] if namespace[0] == ROOT and namespace[-1] in KINDS else "other"
            items = await self.store.asearch(namespace, limit=10_000)
            found.update(kind for item in items if WORD in json.dumps([item.key, item.value]).casefold())
        found.update({"crons"} if WORD in str(self.crons.rows) else ())
        await self._files.aclose()
        await empty_logs(self.folder)
        found.update({"conversations"} if _has_rows(self.folder / CHECKPOINTS) else ())
        for path in self.folder.iterdir():
            found.update({path.name} if WORD in path.read_bytes().decode("utf-8", "ignore").casefold() else ())
        return found


def _found(number: int, text: str) -> dict[str, Any] | None:
    fact = {"message": number, "category": "knowledge", "confidence": 0.9, "known": 0, "content": ""}
    if f"keep an {WORD}" in text:
        return {**fact, "action": "new", "content": f"Keeps an {WORD}"}
    if "keep a numbat" in text:
        return {**fact, "action": "corrects", "known": 1, "content": "Keeps a numbat"}
    return {**fact, "action": "confirms", "known": 1} if "still have it" in text else None


def _has_rows(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT checkpoint FROM checkpoints UNION ALL SELECT value FROM writes")
        return any(WORD in bytes(blob or b"").decode("utf-8", "ignore").casefold() for (blob,) in rows)
