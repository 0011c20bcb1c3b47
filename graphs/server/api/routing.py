"""What every route of the memory API shares: the guard before it, the call it works on, its place in the document.

A new endpoint is a function under `@router.get(…)` of a `MemoryRouter`; `ROUTERS` in `__init__.py` lists the routers:

    @router.put("/learning", summary="Pause learning or go on", responses=refusals(409))
    async def put_learning(call: AgentCall, choice: LearningChoice) -> Learning:

Its body is a `StrictModel`. A query of its own extends `AgentQuery`; the function then takes the request and that
query, and asks `call_of` for its call.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from langgraph.store.base import BaseStore
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from graphs.server.api.guard import (
    JsonRequest,
    Problem,
    RateLimit,
    RefusedRequest,
    check_origin,
    from_validation,
    refusing,
    user_of,
)
from graphs.server.threads import ServerCrons, ServerThreads
from graphs.settings import Settings
from memory.effects import StoreEffects, arun
from memory.namespaces import Owner
from memory.recall.vectors import QueryVector

if TYPE_CHECKING:
    from graphs.persistence import Checkpoints

logger = logging.getLogger(__name__)

PREFIX = "/memory"
SMALL_BODY = 64 * 1024
LARGEST_BODY = "x-largest-body"
"""In a route's `openapi_extra`: so many bytes its body may have, instead of 64 KB; the document says it, too."""

T = TypeVar("T")

# FastAPI's own response would name the content type of an empty body.
NO_CONTENT: dict[str, Any] = {"status_code": 204, "response_class": Response}

_REFUSALS = {
    401: "No identity.",
    403: "Another web site sent it.",
    404: "It is not there, or not yours.",
    409: "It conflicts with what is there.",
    413: "The body is too long.",
    415: "The body is no JSON.",
    422: "A field is wrong.",
    429: "Too many requests.",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what the document says of these error statuses."""
    return {status: {"model": Problem, "description": _REFUSALS[status]} for status in statuses}


class StrictModel(BaseModel):
    """What a request may carry, in its query or its JSON body; what is not listed is refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Empty(StrictModel):
    """Nothing needs to be said: send `{}`."""


class AgentQuery(StrictModel):
    """What the query may carry; every endpoint takes the agent."""

    agent_name: str = Field(
        "default",
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="Whose memory of the user, as `agent_name` of the assistant's context.",
    )


async def _no_vector(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What endpoints work with.

    Attributes:
        settings: The deployment's choices.
        store: The server's store.
        threads: The server's threads.
        crons: The server's crons.
        checkpoints: What the place of the checkpoints knows that the server may not.
        empty_logs: Sees to it that no log of a database keeps what was deleted.
        limit: How often one user may ask.
        forget: Drops what this process holds in its own memory of an erased thread, by its id, or user, by the segment.
        wake: Sees to it that what waits of an owner's thread is learned now, not with the next sweep.
        embed: Returns the vector of what is searched for, or `None` where there is none in time.
        clock: Seconds since the epoch.
    """

    settings: Settings
    store: BaseStore
    threads: ServerThreads
    crons: ServerCrons
    checkpoints: "Checkpoints"
    empty_logs: Callable[[], Awaitable[None]]
    limit: RateLimit
    forget: Callable[[str], None]
    wake: Callable[[Owner, str], None]
    embed: Callable[[str], Awaitable[QueryVector | None]] = _no_vector
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request that has passed the guard.

    Attributes:
        user_id: The identity that the server vouches for.
        owner: That user's memory, of the agent the query names.
        service: What the endpoint works with.
    """

    user_id: str
    owner: Owner
    service: Service

    @property
    def store(self) -> BaseStore:
        """The server's store."""
        return self.service.store

    async def run(self, effects: StoreEffects[T]) -> T:
        """Carry out effects on the server's store."""
        return await arun(self.store, effects)


def let_in(request: Request) -> tuple[Service, str]:
    """Look at origin, identity and rate of a request; return what it works with, and who asks.

    Raises:
        RefusedRequest: 403, 401 or 429.
    """
    service: Service = request.app.state.service
    if not service.settings.single_user:  # in single-user mode `this_machine_only` stands before every route
        check_origin(request, service.settings.allowed_origins)
    user_id = user_of(request, single_user=service.settings.single_user)
    service.limit.take(user_id)
    return service, user_id


# A coroutine, as all dependencies here: FastAPI sends a plain function to a thread.
async def call_of(request: Request, asked: Annotated[AgentQuery, Query()]) -> Call:
    """Return the call that a request is; its user is who the server says, never who the request says."""
    service: Service = request.app.state.service
    user_id = user_of(request, single_user=service.settings.single_user)
    return Call(user_id=user_id, owner=Owner.of(user_id, asked.agent_name), service=service)


AgentCall = Annotated[Call, Depends(call_of)]
"""The call of an endpoint whose query names the agent and nothing else."""


class GuardedRoute(APIRoute):
    """Looks at origin, identity, rate and size, in this order, before FastAPI looks at the request.

    No dependency can do that: FastAPI reads and parses a body before it solves dependencies. A stranger would then be
    told what is wrong with the JSON, and a body of any length would be read for nobody.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                with refusing():
                    let_in(request)
                    largest = int((self.openapi_extra or {}).get(LARGEST_BODY, SMALL_BODY))
                    read = request if self.body_field is None else await JsonRequest.read(request, largest)
                    response = await answer(read)
            except RefusedRequest as refused:
                response = refused.response()
            except RequestValidationError as error:
                response = from_validation(error.errors(), below=1).response()
            # The path as it is declared: the one that was asked for may hold what a person wrote.
            logger.info("%s %s %d", request.method, self.path, response.status_code)
            return response

        return guarded


class MemoryRouter(APIRouter):
    """Routes below `/memory`: guarded, and with what any of them may answer in the document."""

    def __init__(self) -> None:
        super().__init__(
            prefix=PREFIX,
            tags=["memory"],
            route_class=GuardedRoute,
            generate_unique_id_function=lambda route: route.name,
        )

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Add a route; `GET` answers `HEAD` too, as every other route of the server does."""
        methods: Sequence[str] = options["methods"]
        always = (401, 403, 422, 429) if methods in (["GET"], ["DELETE"]) else (401, 403, 413, 415, 422, 429)
        options["responses"] = {**refusals(*always), **(options["responses"] or {})}
        options["response_description"] = "Done."
        super().add_api_route(path, endpoint, **options)
        if methods == ["GET"]:
            super().add_api_route(path, endpoint, **{**options, "methods": ["HEAD"], "include_in_schema": False})
