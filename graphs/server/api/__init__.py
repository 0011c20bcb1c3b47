"""The memory API: a person's control over what is remembered about them, as routes of the server's HTTP app."""

from collections.abc import Iterable
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from langgraph.store.base import BaseStore
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute

from graphs.server.api import (
    approval,
    archive,
    erase,
    facts,
    journal,
    overview,
    preview,
    profile,
    sources,
    updates,
)
from graphs.server.api.guard import RateLimit
from graphs.server.api.routing import PREFIX, Service
from graphs.server.threads import ServerThreads

if TYPE_CHECKING:
    from graphs.process.service import MemoryService

__all__ = ["ROUTERS", "MemoryApi", "Service", "memory_api", "service_of"]

ROUTERS = (
    overview.router,
    facts.router,
    approval.router,
    preview.router,
    profile.router,
    journal.router,
    updates.router,
    archive.router,
    sources.router,
    erase.router,
)


_VERSION = version("palimpsest-memory")


def memory_api(memory: "MemoryService", store: BaseStore) -> "MemoryApi":
    """Return the memory API as an ASGI app, for a program's own server.

    Who calls is the user that a middleware before it has put into the scope, as Starlette's authentication does.

    Args:
        memory: The process's memory work; its `client` reaches the server that has the threads.
        store: Where memory is kept.
    """
    app = MemoryApi()
    app.state.service = service_of(memory, store)
    return app


def service_of(memory: "MemoryService", store: BaseStore) -> Service:
    """Return what the routes work with in a process."""
    settings = memory.settings
    return Service(
        settings=settings,
        store=store,
        threads=ServerThreads(settings.single_user, memory.client),
        limit=RateLimit(settings.requests_per_minute),
        forget=memory.forget,
        recalling=memory.recalling,
        wake=partial(memory.wake, store),
        clock=memory.clock,
    )


class MemoryApi(FastAPI):
    """The app with the routes under `/memory`, their OpenAPI document among them.

    A LangGraph server makes its own app of this one: it puts its routes beside these, and what is set here holds for
    them too. So nothing is set but routes. They work with the `Service` that is in `state.service`.

    Args:
        pages: Routes beside them that are no part of the document.
        options: What else `FastAPI` takes: middleware, lifespan.
    """

    def __init__(self, pages: Iterable[BaseRoute] = (), **options: Any) -> None:
        super().__init__(
            title="Palimpsest memory API",
            version=_VERSION,
            description="What is remembered about you, and control over it. You are who the server says you are.",
            # Not `include_router`: the server puts its login around the `app` of each route, and what that makes has
            # none (langgraph-api 0.16.7, FastAPI 0.165).
            routes=[*(route for router in ROUTERS for route in router.routes), *pages],
            openapi_url=None,  # FastAPI would add `/docs` beside it, which is the server's
            telemetry={"tracing": False, "metrics": False, "logs": False},  # the server has its own, without bodies
            **options,
        )
        self.exception_handlers.clear()  # the server's stand only where the app has none
        self.add_route(f"{PREFIX}/openapi.json", self._serve_document, methods=["GET"], include_in_schema=False)

    def openapi(self) -> dict[str, Any]:
        """Return what the server merges into its own document, whose title and login stay the server's."""
        return {**super().openapi(), "info": {}}

    async def _serve_document(self, _: Request) -> JSONResponse:
        document = super().openapi()
        bearer = {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
        components = {**document["components"], "securitySchemes": {"bearer": bearer}}
        # `{}`: nobody logs in on a machine of one's own.
        return JSONResponse({**document, "components": components, "security": [{"bearer": []}, {}]})
