"""The memory API: a person's control over what is remembered about them, as routes of the server's HTTP app."""

import json
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import version

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from graphs.deployment import service_of_process
from graphs.persistence import CHECKPOINTS, empty_logs
from graphs.persistence.checkpoint_file import CheckpointFile
from graphs.server.api import archive, conversations, erase, facts, journal, overview, profile, updates
from graphs.server.api.endpoint import PREFIX, AnyEndpoint, Service
from graphs.server.api.guard import RateLimit
from graphs.server.api.openapi import document
from graphs.server.server_store import ServerStore
from graphs.server.threads import ServerCrons, ServerThreads
from graphs.settings import Settings

__all__ = ["ENDPOINTS", "Service", "memory_routes", "service_of_server"]

ENDPOINTS: tuple[AnyEndpoint, ...] = (
    *overview.ENDPOINTS,
    *facts.ENDPOINTS,
    *profile.ENDPOINTS,
    *journal.ENDPOINTS,
    *updates.ENDPOINTS,
    *conversations.ENDPOINTS,
    *archive.ENDPOINTS,
    *erase.ENDPOINTS,
)


def service_of_server(settings: Settings) -> Service:
    """Return what the routes work with inside a LangGraph server."""
    return Service(
        settings=settings,
        store=ServerStore(),
        threads=ServerThreads(settings.single_user),
        crons=ServerCrons(settings.single_user),
        checkpoints=CheckpointFile(settings.data_dir / CHECKPOINTS),
        empty_logs=partial(empty_logs, settings.data_dir),
        limit=RateLimit(settings.requests_per_minute),
        wake=lambda owner, thread_id: service_of_process().wake(owner, thread_id),
    )


def memory_routes(service: Service) -> list[BaseRoute]:
    """Return the routes under `/memory`, the OpenAPI document among them."""
    served = document(ENDPOINTS, version("palimpsest-memory"))

    async def openapi(_: Request) -> Response:
        return JSONResponse(served)

    routes: list[BaseRoute] = [Route(f"{PREFIX}/openapi.json", openapi, methods=["GET"], include_in_schema=False)]
    routes += [Route(PREFIX + each.path, _served(each, service), methods=[each.method]) for each in ENDPOINTS]
    return routes


def _served(endpoint: AnyEndpoint, service: Service) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return await endpoint.answer(request, service)

    # The server lists custom routes in its own document by what it finds in their docstrings as YAML.
    said = {"summary": endpoint.summary, "tags": ["memory"], "externalDocs": {"url": f"{PREFIX}/openapi.json"}}
    answer.__doc__ = json.dumps(said)
    return answer
