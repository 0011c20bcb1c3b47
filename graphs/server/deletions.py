"""A deletion of a thread takes along what memory learned from it: recorded first, then granted, then carried out.

That holds where somebody asks for it. Threads that are only old take nothing along; a context variable, which only this
process can set, tells them apart.
"""

import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from langgraph.store.base import BaseStore
from langgraph_sdk import get_client
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphs.process.identity import as_server
from graphs.server.asgi import get, whole_body
from graphs.server.threads import all_pages, rows_of
from graphs.turn.state import MEMORY_KEY
from memory.context.running_summary import state_of
from memory.door import arun, tolerated
from memory.forget.erase import aerase_thread
from memory.forget.threads import Deletion, deletions_left, drop_deletion, record_deletion
from memory.updates.unwritten import HAS_UNWRITTEN

logger = logging.getLogger(__name__)

by_retention: ContextVar[bool] = ContextVar("palimpsest_by_retention", default=False)
"""Set where this process itself deletes a thread as it is old: it takes nothing of memory along. No request sets it."""

_PAGE, _DAY = 100, 86_400.0


@dataclass(frozen=True, slots=True)
class Deletions:
    """Carries deletions out: recorded first, so that a later start finishes what this process cannot.

    Attributes:
        store: Where memory is kept.
        clock: Returns seconds since the epoch.
        clear: Deletes the rest of a thread, in this process and its checkpoints: a run may have saved some since. Its
            second argument is true where a deletion broke off behind the row: the server deletes that first, and may
            have left checkpoints.
    """

    store: BaseStore
    clock: Callable[[], float]
    clear: Callable[[str, bool], Awaitable[object]]

    async def refuse(self, asked: Deletion) -> None:
        """Forget a request: the thread lives."""
        with tolerated(logger, "a refused deletion stays recorded"):  # the sweep sees that the thread is there
            await arun(self.store, drop_deletion(asked))

    async def carry_out(self, asked: Deletion, is_left: bool = False) -> None:
        """Erase what came from a thread that is deleted; what fails is tried again by the sweep."""
        with tolerated(logger, "what came from thread %s is not erased yet", asked.thread_id, level=logging.ERROR):
            await arun(self.store, record_deletion(replace(asked, state="done")))
            erased = await aerase_thread(self.store, asked.thread_id, clock=self.clock)
            await self.clear(asked.thread_id, is_left)
            await arun(self.store, drop_deletion(asked))
            logger.info("erased what came from thread %s: items %d", asked.thread_id, erased)

    async def finish(self, is_there: Callable[[str], Awaitable[bool]]) -> None:
        """Carry out what earlier processes were asked for and could not finish.

        Args:
            is_there: Says whether the server has a thread; then its deletion may not have been granted.
        """
        for asked in await arun(self.store, deletions_left(self.clock())):
            has_row = await is_there(asked.thread_id)
            if asked.state == "asked" and has_row:
                await self.refuse(asked)
            else:
                await self.carry_out(asked, is_left=not has_row)


class DeletionDoor:
    """Records who asks for threads to be deleted or pruned, lets the server decide, and carries out what it grants.

    The answer waits until what memory learned from the thread is erased. Only a thread that the caller may read is
    recorded: nobody can make a record of another user's.

    Args:
        app: What answers.
        deletions: Returns what carries them out.
    """

    def __init__(self, app: ASGIApp, *, deletions: Callable[[], Awaitable[Deletions]]) -> None:
        self._app, self._deletions = app, deletions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_looked_at = scope["type"] == "http" and not by_retention.get()
        root, *below = scope["path"].removesuffix("/").rsplit("/", 2) if is_looked_at else ("",)
        match below and (scope["method"], *below):
            case "DELETE", "threads" | "assistants" as kind, named:
                doomed, is_sure = await _doomed(scope, kind, named), kind == "threads"
            case "DELETE", "runs", run_id:
                # The server has its checkpointer delete those of a run before it looks in whose thread that is
                # (langgraph-runtime-inmem 0.36.7).
                status, body = await get(self._app, scope, f"{root}/runs/{run_id}")
                refused = None if status == 200 else Response(body, status, media_type="application/json")
                await (refused or self._app)(scope, receive, send)
                return
            case "POST", "threads", "prune":
                if (read := await whole_body(scope, receive)) is None:
                    return
                body, receive = read
                doomed, is_sure = _pruned(body), False
            case _:
                await self._app(scope, receive, send)
                return
        deletions, asked = await self._deletions(), list[Deletion]()
        for thread_id in doomed:
            status, _ = await get(self._app, scope, f"{root}/threads/{thread_id}")
            # Recorded before the server decides: a crash after its answer must not lose what was granted.
            if status == 200:
                # Memory that fails stops nobody.
                with tolerated(logger, "what came from thread %s will not be erased", thread_id, level=logging.ERROR):
                    record = Deletion(thread_id=thread_id, at=deletions.clock())
                    await arun(deletions.store, record_deletion(record))
                    asked.append(record)

        async def answer(message: Message) -> None:
            status = message.get("status", 500)  # after a 5xx the sweep finds out
            for record in asked if status < 500 else ():
                # An assistant goes with those of its threads that the server lets the caller delete. Others live on, as
                # those do of which only the latest state is kept.
                if status < 300 and (is_sure or not await is_there(record.thread_id)):
                    await deletions.carry_out(record)
                else:
                    await deletions.refuse(record)
            await send(message)

        await self._app(scope, receive, answer)


async def _doomed(scope: Scope, kind: str, named: str) -> list[str]:
    """Return the threads that the request is about; an assistant may be deleted with its threads."""
    try:
        named = str(UUID(named))
    except ValueError:
        return []
    if kind == "threads":
        return [named]
    if Request(scope).query_params.get("delete_threads", "").lower() != "true":
        return []
    search, theirs = get_client().threads.search, {"assistant_id": named}
    pages = all_pages(lambda offset: search(metadata=theirs, select=["thread_id"], limit=_PAGE, offset=offset), _PAGE)
    return [str(thread["thread_id"]) async for thread in pages]


def _pruned(body: bytes) -> list[str]:
    """Return the threads that a request names to be pruned; none where the server will refuse it."""
    try:
        return [str(UUID(each)) for each in from_json(body)["thread_ids"]]
    except (ValueError, TypeError, KeyError, AttributeError):
        return []


async def is_there(thread_id: str) -> bool:
    """Say whether the server has a thread, whoever's it is."""
    return thread_id in await rows_of(get_client(), [thread_id])


async def drop_old_threads(days: int, now: float) -> None:
    """Delete the threads that nobody went on with for so many days; what memory learned of them stays.

    Threads at work, or with something still to be written down for memory, stay. What fails is tried again at the
    next look.
    """
    oldest: dict[str, Any] = {"sort_by": "updated_at", "sort_order": "asc", "limit": _PAGE}
    oldest["select"] = ["thread_id", "updated_at", "status", "values"]
    search, found = get_client().threads.search, list[str]()
    # All are read before one is deleted, which would shift the next page.
    async for thread in all_pages(lambda offset: search(offset=offset, **oldest), _PAGE):
        if datetime.fromisoformat(str(thread["updated_at"])).timestamp() >= now - days * _DAY:
            break
        values = state_of(thread.get("values"))
        is_left = any(state_of(values.get(key)).get(HAS_UNWRITTEN) for key in ("memory", MEMORY_KEY))
        if thread.get("status") != "busy" and not is_left:
            found.append(str(thread["thread_id"]))
    for thread_id in found:
        with tolerated(logger, "old thread %s stays", thread_id):
            await as_server(_delete_by_age(thread_id))
            logger.info("dropped thread %s, with which nobody went on for %d days", thread_id, days)


async def _delete_by_age(thread_id: str) -> None:
    by_retention.set(True)  # in the context of this task alone
    await get_client().threads.delete(thread_id)
