"""The memory API in process: real routes on an in-memory store, with a stand-in for the server and its threads."""

import json
from typing import Any

import httpx
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware

from graphs.server.api import MemoryApi, Service
from graphs.server.api.guard import RateLimit
from graphs.server.asgi import Guarded
from graphs.server.page import page_door, routes
from graphs.server.threads import ServerThreads
from graphs.settings import Settings
from memory.door import arun
from memory.facts.changes import Change, Extraction
from memory.facts.store import FactStore
from memory.journal.entry import JournalEntry
from memory.journal.journal import append
from memory.message import StoredMessage
from memory.namespaces import Owner
from memory.updates import outbox
from memory.updates.entry import Entry
from tests.fakes import Clock
from tests.laws.server import HeaderSays, ThreadServer


class MemoryApp:
    """The API with its parts at hand."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        store: BaseStore | None = None,
        per_minute: int = 100_000,
        server: ThreadServer | None = None,
        clock: Clock | None = None,
    ):
        self.store = store or InMemoryStore()
        self.clock = clock or Clock()
        chosen, client = settings or Settings(), (server or ThreadServer({}, InMemorySaver())).client
        self.service = Service(
            settings=chosen,
            store=self.store,
            threads=ServerThreads(chosen.single_user, client),
            clock=self.clock,
            forget=lambda _: None,
            wake=lambda *_: None,
            limit=RateLimit(per_minute, clock=self.clock),
        )
        guards = [
            Middleware(Guarded, guard=page_door(self.service.settings)),
            Middleware(AuthenticationMiddleware, backend=HeaderSays()),
        ]
        self.app = MemoryApi(routes, middleware=guards)
        self.app.state.service = self.service

    def user(self, name: str | None, **headers: str) -> httpx.AsyncClient:
        """Return a client on behalf of a user; `None` is nobody."""
        named = {} if name is None else {"x-test-user": name}
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url="http://testserver/memory", headers={**named, **headers}
        )


ADA = Owner.of("ada")


def said(number: int, text: str) -> StoredMessage:
    return StoredMessage(f"m{number}", "user", text, "2025-10-01T10:00:00+00:00")


async def add(client: httpx.AsyncClient, content: str, category: str = "knowledge", **fields: Any) -> dict[str, Any]:
    answer = await client.post("/facts", json={"content": content, "category": category, **fields})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def contents(client: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await client.get("/facts", params=query)
    assert answer.status_code == 200, answer.text
    return [fact["content"] for fact in answer.json()["facts"]]


async def learn(app: MemoryApp, *changes: Change, thread_id: str = "t1") -> tuple[str, ...]:
    """Apply what an update would have extracted, a second later."""
    app.clock.advance(1)
    store = FactStore(app.store, "ada", clock=app.clock)
    applied = await store.aapply(
        Extraction(changes=changes),
        thread_id=thread_id,
        epoch="initial",
        now=f"2025-10-09T09:00:{app.clock() % 60:02.0f}+00:00",
    )
    return applied.created


async def pending(app: MemoryApp, thread_id: str, text: str, **fields: Any) -> Entry:
    entry = Entry(
        kind="turn", owner=ADA, thread_id=thread_id, epoch="initial", created=app.clock(), due=app.clock() + 60,
        messages=(said(1, text),), **fields,
    )  # fmt: skip
    await arun(app.store, outbox.record(entry))
    await arun(app.store, outbox.change(ADA, [], [entry]))
    return entry


async def journal(app: MemoryApp, thread_id: str, *messages: StoredMessage) -> None:
    await arun(app.store, append(ADA, [JournalEntry("2025-10-01", thread_id, messages)]))


async def everything_stored(app: MemoryApp) -> str:
    """All the text that the store holds of anybody."""
    namespaces = await app.store.alist_namespaces(limit=1000)
    return json.dumps(
        [item.dict() for each in namespaces for item in await app.store.asearch(each, limit=1000)], default=str
    )
