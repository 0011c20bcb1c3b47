"""Only a deletion that a person asked for, and that the server granted, takes what memory learned along."""

import uuid
from dataclasses import replace

import httpx
import pytest
from langgraph.store.memory import InMemoryStore
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from graphs.server.deletions import DeletionDoor, Deletions
from memory.door import arun
from memory.facts.store import FactStore
from memory.forget.threads import Deletion, record_deletion
from memory.namespaces import DELETIONS, Owner, thread_namespace
from tests.fact_sets import apply, change, facts_of
from tests.fakes import Clock

THREAD = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d"
ADA = Owner.of("ada")


class Server:
    """A server with one thread of Ada's, of which memory learned a fact."""

    def __init__(self, status: int = 204, prefix: str = "") -> None:
        self.store, self.clock, self.status = InMemoryStore(), Clock(), status
        self.threads = {THREAD: "ada"}
        self.seen_before: list[str] = []
        self.prefix = prefix
        self.forgotten: list[str] = []
        apply(facts_of(self.store), change("Likes figs"), thread_id=THREAD)
        self.store.put(thread_namespace(THREAD), ADA.due_key, {})
        routes = [Route(f"{prefix}/threads/{{thread_id}}", self._thread, methods=["GET", "DELETE"])]
        self.app = Starlette(routes=routes, middleware=[Middleware(DeletionDoor, deletions=self.deletions)])

    async def deletions(self) -> Deletions:
        async def clear(thread_id: str, _is_left: bool) -> None:
            self.forgotten.append(thread_id)

        return Deletions(self.store, self.clock, clear)

    async def _thread(self, request: Request) -> Response:
        try:
            thread_id = str(uuid.UUID(request.path_params["thread_id"]))
        except ValueError:
            return JSONResponse({}, status_code=422)
        if self.threads.get(thread_id) != request.headers["user"]:
            return JSONResponse({}, status_code=404)
        if request.method == "GET":
            return JSONResponse({})
        self.seen_before += self.records()
        if self.status == 500:
            raise RuntimeError("down")
        if self.status == 204:
            del self.threads[thread_id]
        return Response(status_code=self.status)

    async def delete(self, user: str = "ada", thread_id: str = THREAD) -> int:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            path = f"{self.prefix}/threads/{thread_id}"
            return (await client.delete(path, headers={"user": user})).status_code

    async def finish(self) -> None:
        async def is_there(thread_id: str) -> bool:
            return thread_id in self.threads

        await (await self.deletions()).finish(is_there)

    def records(self) -> list[str]:
        return [item.value["state"] for item in self.store.search(DELETIONS)]

    def facts(self) -> list[str]:
        return [fact.content for fact in FactStore(self.store, ADA).list()]


@pytest.mark.parametrize("prefix", ["", "/chat/v1"])
@pytest.mark.parametrize("named", [THREAD, THREAD.upper(), f"{{{THREAD}}}"])
async def test_a_granted_deletion_erases_before_it_is_answered(prefix: str, named: str) -> None:
    server = Server(prefix=prefix)
    assert await server.delete(thread_id=named) == 204
    assert server.seen_before == ["asked"]
    assert server.facts() == []
    assert server.records() == []
    assert server.forgotten == [THREAD]


@pytest.mark.parametrize(("status", "user"), [(403, "ada"), (404, "ada"), (409, "ada"), (204, "eve")])
async def test_a_refused_deletion_erases_nothing(status: int, user: str) -> None:
    server = Server(status)
    assert await server.delete(user) in (status, 404)
    assert server.facts() == ["Likes figs"]
    assert server.forgotten == []
    assert server.records() == []
    await server.finish()
    assert server.facts() == ["Likes figs"]


@pytest.mark.parametrize("before", ["/ok%3F", "/ok%23", "/ok%3Fa=b", "/%01"])
async def test_whether_somebody_may_read_a_thread_is_asked_of_no_other_path(before: str) -> None:
    server, seen_before = Server(), list[list[str]]()

    async def other(request: Request) -> Response:
        if request.method == "DELETE":
            seen_before.append(server.records())
        return Response(status_code=200 if request.scope["path"] == "/ok" else 404)

    server.app.router.routes.append(Route("/{rest:path}", other, methods=["GET", "DELETE"]))
    server.prefix = before
    assert await server.delete("eve") == 404
    assert seen_before == [[]]


async def test_what_a_killed_process_had_granted_is_finished_at_once_though_the_row_came_back() -> None:
    server = Server()
    asked = Deletion(thread_id=THREAD, at=server.clock())
    await arun(server.store, record_deletion(asked))
    await arun(server.store, record_deletion(replace(asked, state="done")))
    await server.finish()
    assert server.facts() == []
    assert server.records() == []


async def test_checkpoints_that_cannot_be_deleted_are_tried_again() -> None:
    server, tries = Server(), list[str]()

    async def clear(thread_id: str, _is_left: bool) -> None:
        tries.append(thread_id)
        if len(tries) == 1:
            raise OSError("away")

    async def is_there(thread_id: str) -> bool:
        return False

    deleted = Deletions(server.store, server.clock, clear)
    await arun(server.store, record_deletion(Deletion(thread_id=THREAD, at=server.clock(), state="done")))
    await deleted.finish(is_there)
    assert server.records()
    await deleted.finish(is_there)
    assert (tries, server.facts(), server.records()) == ([THREAD, THREAD], [], [])
