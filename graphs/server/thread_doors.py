"""What happens beside the server's own routes of threads: a deletion is recorded, a lost thread is readable again."""

import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from urllib.parse import parse_qs
from uuid import UUID

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph_sdk import get_client
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphs.identity import as_server
from graphs.server.asgi import get, json_object, read_request, with_body
from graphs.server.assistants import takes_context
from graphs.server.permissions import assistant_of_graph
from graphs.server.this_machine import is_in_process
from graphs.server.threads import all_pages
from memory.effects import arun, tolerated
from memory.erase import aerase_thread
from memory.threads import Deletion, ask_deletion, confirm_deletion, deletions_left, settle_deletion

logger = logging.getLogger(__name__)

_GRAPH = "chat"
_PATH = re.compile(r"(?:^|/)(threads|assistants)/([^/]+)/?$")
_PAGE = 100


by_retention: ContextVar[bool] = ContextVar("palimpsest_by_retention", default=False)
"""Set where this process itself deletes a thread as it is old: it takes nothing of memory along. No request sets it."""


class RecreatedThreads:
    """Gives `POST /threads` with an id and `if_exists: do_nothing` the chat graph, where it names none.

    A server that has no graph of this project under that name is left alone: a thread of a graph that is not there
    could not be read at all. A thread that is there already stays as it is, and a run of another graph makes the
    thread that graph's.

    Args:
        app: What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._is_served: bool | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the server's own calls are left alone."""
        is_asked = scope["type"] == "http" and scope["method"] == "POST"
        is_asked = is_asked and scope["path"].rstrip("/").endswith("/threads")
        if not is_asked or is_in_process(scope):
            await self._app(scope, receive, send)
            return
        read, body = await read_request(receive)
        if (changed := with_graph(body)) != body:
            if self._is_served is None:  # asked once: it takes the server 30 ms, and its graphs stay the same
                assistants = scope["path"].rstrip("/").removesuffix("/threads") + "/assistants"
                self._is_served = await takes_context(self._app, scope, assistants, assistant_of_graph(_GRAPH))
            body = changed if self._is_served else body
        await self._app(*with_body(scope, receive, read, body), send)


def with_graph(body: bytes) -> bytes:
    """Return the body of a request for a thread that may be there already, with a graph; any other as it is."""
    asked = json_object(body)
    if not asked.get("thread_id") or asked.get("if_exists") != "do_nothing":
        return body
    metadata = asked.get("metadata") or {}
    if not isinstance(metadata, dict) or "graph_id" in metadata:
        return body
    return json.dumps({**asked, "metadata": {**metadata, "graph_id": _GRAPH}}).encode()


class DeletedThreads:
    """Carries deletions out: recorded first, so that a later start finishes what this process cannot.

    Args:
        store: Where memory is kept.
        saver: Our own saver, if the server has it: a run that is going on may have saved something since.
        clock: Returns seconds since the epoch.
        forget: Drops what this process holds of a thread in its own memory.
        drop: Deletes the checkpoints of a thread whose row is gone, where they are a server's own.
        empty_logs: Sees to it that no file of a database keeps what was deleted.
    """

    def __init__(
        self,
        store: BaseStore,
        saver: BaseCheckpointSaver[str] | None,
        clock: Callable[[], float],
        forget: Callable[[str], None] = lambda _: None,
        drop: Callable[[str], Awaitable[None]] | None = None,
        empty_logs: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._store, self._saver, self._clock, self._forget, self._drop = store, saver, clock, forget, drop
        self._empty_logs = empty_logs

    async def ask(self, thread_id: str) -> Deletion | None:
        """Record the request of somebody who may delete the thread; `None` if memory fails, which stops nobody."""
        with tolerated(logger, "what came from thread %s will not be erased", thread_id, level=logging.ERROR):
            return await arun(self._store, ask_deletion(thread_id, self._clock()))
        return None

    async def refuse(self, asked: Deletion) -> None:
        """Forget a request: the thread lives."""
        with tolerated(logger, "a refused deletion stays recorded"):  # the sweep sees that the thread is there
            await arun(self._store, settle_deletion(asked))

    async def carry_out(self, asked: Deletion) -> None:
        """Erase what came from a thread that is deleted; what fails is tried again by the sweep."""
        with tolerated(logger, "what came from thread %s is not erased yet", asked.thread_id, level=logging.ERROR):
            await arun(self._store, confirm_deletion(asked))
            self._forget(asked.thread_id)
            if self._saver is not None:
                await self._saver.adelete_thread(asked.thread_id)
            erased = await aerase_thread(self._store, asked.thread_id, clock=self._clock)
            await arun(self._store, settle_deletion(asked))
            if self._empty_logs is not None:
                await self._empty_logs()
            logger.info("erased what came from thread %s: items %d", asked.thread_id, erased)

    async def finish(self, is_there: Callable[[str], Awaitable[bool]]) -> None:
        """Carry out what earlier processes were asked for and could not finish.

        Args:
            is_there: Says whether the server has a thread: if so, nobody knows that its deletion was granted.
        """
        for asked in await arun(self._store, deletions_left(self._clock())):
            has_row = await is_there(asked.thread_id)
            if asked.state == "asked" and has_row:
                await self.refuse(asked)
                continue
            with tolerated(logger, "deleted thread %s is not gone yet", asked.thread_id, level=logging.ERROR):
                # A server deletes the row first: killed then, it never comes to the checkpoints. A row that is there
                # again is another conversation's.
                if self._drop is not None and not has_row:
                    await self._drop(asked.thread_id)
                await self.carry_out(asked)


class DeletionDoor:
    """Records who asks for a thread to be deleted, lets the server decide, and carries out what it grants.

    The answer waits until what memory learned from the thread is erased. Only a thread that the caller may read is
    recorded: nobody can make a record of another user's.

    Args:
        app: What answers.
        deleted: Returns what carries deletions out.
    """

    def __init__(self, app: ASGIApp, *, deleted: Callable[[], Awaitable[DeletedThreads]]) -> None:
        self._app, self._deleted = app, deleted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_deletion = scope["type"] == "http" and scope["method"] == "DELETE" and not by_retention.get()
        found = _PATH.search(scope["path"]) if is_deletion else None
        if found is None:
            await self._app(scope, receive, send)
            return
        deleted = await self._deleted()
        root = scope["path"].removesuffix(found[0]) + ("/" if found[0].startswith("/") else "")
        asked: list[Deletion] = []
        for thread_id in [each async for each in _doomed(scope, *found.groups())]:
            status, _ = await get(self._app, scope, f"{root}threads/{thread_id}")
            # Recorded before the server decides: a crash after its answer must not lose what was granted.
            if status == 200 and (record := await deleted.ask(thread_id)):
                asked.append(record)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                await _settle_all(deleted, asked, message["status"], is_one=found[1] == "threads")
            await send(message)

        await self._app(scope, receive, answer)


async def _settle_all(deleted: DeletedThreads, asked: list[Deletion], status: int, *, is_one: bool) -> None:
    """Do what the server's answer means for each record; after a failure of the server, the sweep finds out."""
    if status >= 500:
        return
    for record in asked:
        # An assistant goes with those of its threads that the server lets the caller delete; the others live on.
        if status < 300 and (is_one or not await is_there(record.thread_id)):
            await deleted.carry_out(record)
        else:
            await deleted.refuse(record)


async def _doomed(scope: Scope, kind: str, identity: str) -> AsyncIterator[str]:
    """Yield the threads that the request is about; an assistant may be deleted with its threads."""
    try:
        named = str(UUID(identity))
    except ValueError:
        return
    if kind == "threads":
        yield named
    elif parse_qs(scope["query_string"].decode("latin-1")).get("delete_threads", [""])[0].lower() == "true":
        doomed = all_pages(
            lambda offset: get_client().threads.search(
                metadata={"assistant_id": named}, select=["thread_id"], limit=_PAGE, offset=offset
            ),
            _PAGE,
        )
        async for thread in doomed:
            yield str(thread["thread_id"])


async def is_there(thread_id: str) -> bool:
    """Say whether the server has a thread, whoever's it is."""
    return bool(await as_server(get_client().threads.search(ids=[thread_id], select=["thread_id"], limit=1)))
