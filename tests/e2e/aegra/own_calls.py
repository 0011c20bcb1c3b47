"""What a process under Aegra asks its own server (`get_client()` without a URL).

LangGraph's servers answer such calls on their own authority. Aegra knows no such thing: every one of its queries is for
rows of one user. So each call is made in the name of the owner of what it is about; and threads are searched here, as
Aegra's own search knows neither ids nor which fields are wanted.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from aegra_api.core.orm import Assistant, Cron, Thread, get_session_maker
from aegra_api.models.auth import User
from sqlalchemy import select
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from graphs.delayed_runs import OWNER_KEY
from graphs.server.asgi import get, handing_on, json_object, read_request

_ROW = re.compile(r"/(threads|assistants|runs/crons)/([^/]+)")
_TABLES: dict[str, tuple[Any, Any]] = {
    "threads": (Thread, Thread.thread_id),
    "assistants": (Assistant, Assistant.assistant_id),
    "runs/crons": (Cron, Cron.cron_id),
}
_NOBODY = "anonymous"  # what Aegra calls everyone where nobody logs in


class OwnCalls:
    """Answers what this process asks.

    Args:
        app: Aegra.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        read, body = await read_request(receive)
        asked = json_object(body)
        if scope["path"] == "/threads/search":
            await JSONResponse(await self._found(scope, asked))(scope, receive, send)
        else:
            of_owner = _in_the_name_of(scope, await _owner(scope["path"], asked))
            await self._app(of_owner, handing_on(read, receive), send)

    async def _found(self, scope: Scope, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
        rows = select(Thread)
        if asked.get("ids") is not None:
            rows = rows.where(Thread.thread_id.in_(asked["ids"]))
        if asked.get("metadata"):
            rows = rows.where(Thread.metadata_json.op("@>")(asked["metadata"]))
        by = Thread.updated_at if asked.get("sort_by") == "updated_at" else Thread.created_at
        rows = rows.order_by(by, Thread.thread_id).offset(asked.get("offset") or 0).limit(asked.get("limit") or 10)
        async with get_session_maker()() as session:
            threads = list(await session.scalars(rows))
        with_values = "values" in (asked.get("select") or ())
        return [await self._told(scope, thread, with_values=with_values) for thread in threads]

    async def _told(self, scope: Scope, thread: Thread, *, with_values: bool) -> dict[str, Any]:
        told = {
            "thread_id": thread.thread_id,
            "status": thread.status,
            "metadata": thread.metadata_json,
            "created_at": thread.created_at.isoformat(),
            "updated_at": thread.updated_at.isoformat(),
        }
        if with_values:
            owned = _in_the_name_of(scope, thread.user_id)
            status, body = await get(self._app, owned, f"/threads/{thread.thread_id}/state")
            told["values"] = json.loads(body).get("values") if status == 200 else None
        return told


async def _owner(path: str, asked: Mapping[str, Any]) -> str:
    """Return whose row a request is about; of a new one, or of a search, whom it names."""
    found = _ROW.match(path)
    if found and found[1] in _TABLES and found[2] != "search":
        table, key = _TABLES[found[1]]
        async with get_session_maker()() as session:
            owner = await session.scalar(select(table.user_id).where(key == found[2]))
        return str(owner or _NOBODY)
    return str((asked.get("metadata") or {}).get(OWNER_KEY) or _NOBODY)


def _in_the_name_of(scope: Scope, owner: str) -> Scope:
    # Where Aegra keeps whom it has authenticated; no request from outside can set it.
    return {**scope, "aegra.auth_result": User(identity=owner), "user": User(identity=owner)}
