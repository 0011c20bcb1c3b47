"""The HTTP app of this project within Aegra, with what Aegra's runs and the calls to itself lack there.

Aegra imports it before it loads a graph. What is changed in Aegra is changed here, once, in the smallest place.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from aegra_api.core.auth_deps import require_auth
from aegra_api.core.database import db_manager
from aegra_api.core.orm import Run, get_session_maker
from aegra_api.services import run_executor
from fastapi import FastAPI, HTTPException
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from graphs.deployment import service_of_process
from graphs.http import app
from graphs.server.api.routing import PREFIX
from tests.e2e.aegra.own_calls import OwnCalls

__all__ = ["app"]

_assistant: ContextVar[str] = ContextVar("assistant")
_stream, _config_of, _lifespan = run_executor._stream_graph, run_executor._build_run_config, app.router.lifespan_context


async def _stream_graph(job: Any) -> Any:
    async with get_session_maker()() as session:
        _assistant.set(str(await session.scalar(select(Run.assistant_id).where(Run.run_id == job.identity.run_id))))
    return await _stream(job)


def _build_run_config(job: Any) -> dict[str, Any]:
    """Say in a run's configuration what LangGraph's servers say there, over whatever a client said."""
    config: dict[str, Any] = _config_of(job)
    config["configurable"].update(
        langgraph_auth_user_id=job.user.identity if job.user.is_authenticated else "",
        assistant_id=_assistant.get(),
        graph_id=job.identity.graph_id,
    )
    return config


class Login:
    """Finds out who calls before a route of ours looks: Aegra asks as a dependency of the route, which comes after.

    Args:
        app: What answers, also that somebody is nobody.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and f"{scope['path']}/".startswith(f"{PREFIX}/"):
            with suppress(HTTPException):
                await require_auth(Request(scope))
        await self._app(scope, receive, send)


@asynccontextmanager
async def _opened(server: FastAPI) -> AsyncIterator[None]:
    service = service_of_process()
    # Ours are not opened: these are the server's own, which runs have too.
    service.bind(db_manager.get_store())
    service.bind(db_manager.get_checkpointer())
    # Where the SDK's `get_client()` looks for the server of its process.
    module = sys.modules["langgraph_api.server"] = ModuleType("langgraph_api.server")
    sys.modules.setdefault("langgraph_api", ModuleType("langgraph_api"))
    module.app = OwnCalls(server)  # type: ignore[attr-defined]
    async with _lifespan(server):
        yield


async def _ok(_: Request) -> JSONResponse:
    return JSONResponse({"ok": True})


app.add_middleware(Login)
app.add_route("/ok", _ok)  # as LangGraph's servers answer those who ask whether they are up
run_executor._stream_graph, run_executor._build_run_config = _stream_graph, _build_run_config
app.router.lifespan_context = _opened
