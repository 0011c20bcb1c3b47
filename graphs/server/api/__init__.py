"""The memory API: a person's control over what is remembered about them, as routes of the server's HTTP app."""

from collections.abc import Iterable
from functools import partial
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute

from graphs.persistence import checkpoints_of, leave_no_bytes
from graphs.server.api import (
    approval,
    archive,
    conversations,
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
from graphs.server.server_store import ServerStore
from graphs.server.threads import ServerCrons, ServerThreads
from graphs.settings import Settings

__all__ = ["ROUTERS", "MemoryApi", "Service", "service_of_server"]

ROUTERS = (
    overview.router,
    facts.router,
    approval.router,
    preview.router,
    profile.router,
    journal.router,
    updates.router,
    conversations.router,
    archive.router,
    sources.router,
    erase.router,
)


def service_of_server(settings: Settings) -> Service:
    """Return what the routes work with inside a LangGraph server."""
    from graphs.deployment import service_of_process  # with the graph's tools, which the local files do not need

    return Service(
        settings=settings,
        store=ServerStore(lambda: service_of_process().store_of_server()),
        threads=ServerThreads(settings.single_user),
        crons=ServerCrons(settings.single_user),
        checkpoints=checkpoints_of(settings),
        empty_logs=partial(leave_no_bytes, settings.data_dir),
        limit=RateLimit(settings.requests_per_minute),
        forget=lambda erased: service_of_process().forget(erased),
        embed=lambda text: service_of_process().aembed(text),
        wake=lambda owner, thread_id: service_of_process().wake(owner, thread_id),
    )


class MemoryApi(FastAPI):
    """The app with the routes under `/memory`, their OpenAPI document among them.

    A LangGraph server makes its own app of this one: it puts its routes beside these, and what is set here holds for
    them too. So nothing is set but routes.

    Args:
        service: What the routes work with.
        pages: Routes beside them that are no part of the document.
        options: What else `FastAPI` takes: middleware, lifespan.
    """

    def __init__(self, service: Service, pages: Iterable[BaseRoute] = (), **options: Any) -> None:
        super().__init__(
            title="Palimpsest memory API",
            version=version("palimpsest-memory"),
            description="What is remembered about you, and control over it. You are who the server says you are.",
            # Not `include_router`: the server puts its login around the `app` of each route, and what that makes has
            # none (langgraph-api 0.16.7, FastAPI 0.165).
            routes=[*(route for router in ROUTERS for route in router.routes), *pages],
            openapi_url=None,  # FastAPI would add `/docs` beside it, which is the server's
            telemetry={"tracing": False, "metrics": False, "logs": False},  # the server has its own, without bodies
            **options,
        )
        self.state.service = service
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
