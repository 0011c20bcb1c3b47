"""What every route of the memory API shares: the guard before it, the call it works on, its place in the document.

A new endpoint is a function below `answers` of a `MemoryRouter`; `ROUTERS` in `__init__.py` lists the routers:

    @router.answers("PUT /learning", 409)
    async def put_learning(call: AgentCall, choice: LearningChoice) -> Learning:

Its body is a `StrictModel`, what it takes of the query `Annotated[SomeModel, Query()]`. Where it returns what memory
itself has, `shown` names the model that says how.
"""

import logging
import re
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from langgraph.store.base import BaseStore
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from graphs.process.identity import LOCAL_USER, vouched
from graphs.process.recalling import Recalling
from graphs.server.api.guard import (
    Problem,
    RateLimit,
    RefusedRequest,
    bounded,
    check_json,
    check_origin,
    from_validation,
    invalid,
    refusing,
)
from graphs.server.threads import ServerThreads
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.door import StoreEffects, arun
from memory.facts.store import FactStore
from memory.namespaces import Owner

logger = logging.getLogger(__name__)

PREFIX = "/memory"
SMALL_BODY = 64 * 1024
LARGEST_BODY = "x-largest-body"
"""In a route's `openapi_extra`: so many bytes its body may have, instead of 64 KB; the document says it, too."""

T = TypeVar("T")
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class ApiModel(BaseModel):
    """What an answer, or the query of a request, may say; the docstring below a field is its description."""

    model_config = ConfigDict(use_attribute_docstrings=True, from_attributes=True)


class StrictModel(ApiModel):
    """What the JSON body of a request may say; what is not listed is refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Empty(StrictModel):
    """Nothing needs to be said: send `{}`."""


class AgentQuery(ApiModel):
    """What every query may say."""

    agent_name: str = Field(default="default", pattern=r"^[A-Za-z0-9_-]{1,64}$")
    """Whose memory of the user, as `agent_name` of the assistant's context."""


class PageQuery(ApiModel):
    """Which part of a list is wanted."""

    limit: int = Field(default=50, ge=1, le=1000)
    offset: int = Field(default=0, ge=0, le=1_000_000)

    def cut(self, found: Sequence[T]) -> Sequence[T]:
        """Return that part."""
        return found[self.offset : self.offset + self.limit]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What endpoints work with.

    Attributes:
        settings: The deployment's choices.
        store: The server's store.
        threads: The server's threads and crons.
        limit: How often one user may ask.
        forget: Drops what this process holds in its own memory of an erased thread, by its id, or user, by the segment.
        wake: Sees to it that what waits of an owner's thread is learned now, not with the next sweep.
        recalling: What this process recalls from.
        clock: Seconds since the epoch.
    """

    settings: Settings
    store: BaseStore
    threads: ServerThreads
    limit: RateLimit
    forget: Callable[[str], None]
    wake: Callable[[Owner, str], None]
    recalling: Recalling = field(default_factory=lambda: Recalling(None, 0))
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

    @property
    def config(self) -> MemoryConfig:
        """The deployment's choices for memory."""
        return self.service.settings.memory

    @property
    def facts(self) -> FactStore:
        """The facts of that memory."""
        return FactStore(self.store, self.owner, config=self.config, clock=self.service.clock)

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self.service.clock()

    async def run(self, effects: StoreEffects[T]) -> T:
        """Carry out effects on the server's store."""
        return await arun(self.store, effects)


_SUMMARY_ENDS = re.compile("[.:;]")
_NO_IDENTITY = (
    "log in first: memory belongs to a person, and turns of nobody go on without it. On your own machine set "
    "PALIMPSEST_SINGLE_USER=true"
)


def let_in(request: Request) -> tuple[Service, str]:
    """Look at origin, identity and rate of a request; return what it works with, and who asks.

    That is the identity that the server vouches for, never one that the client names.

    Raises:
        RefusedRequest: 403, 401 without an identity unless the server is in single-user mode, or 429.
    """
    service: Service = request.app.state.service
    is_single = service.settings.single_user
    if not is_single:  # in single-user mode `this_machine_only` stands before every route
        check_origin(request, service.settings.allowed_origins)
    user_id = vouched(request.scope.get("user")) or (LOCAL_USER if is_single else None)
    if user_id is None:
        raise RefusedRequest(401, _NO_IDENTITY)
    service.limit.take(user_id)
    request.state.user_id = user_id
    return service, user_id


# A coroutine, as all dependencies here: FastAPI sends a plain function to a thread.
async def call_of(request: Request, asked: Annotated[AgentQuery, Query()]) -> Call:
    """Return the call that a request is, which was let in."""
    user_id: str = request.state.user_id
    return Call(user_id=user_id, owner=Owner.of(user_id, asked.agent_name), service=request.app.state.service)


AgentCall = Annotated[Call, Depends(call_of)]


class GuardedRoute(APIRoute):
    """Looks at origin, identity, rate, names in the query and size, in this order, before FastAPI looks at the request.

    No dependency can do that: FastAPI reads and parses a body before it solves dependencies. A stranger would then be
    told what is wrong with the JSON, and a body of any length would be read for nobody.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()
        largest = int((self.openapi_extra or {}).get(LARGEST_BODY, SMALL_BODY))
        queries = [each for part in (self.dependant, *self.dependant.dependencies) for each in part.query_params]
        models: list[Any] = [each.field_info.annotation for each in queries]
        known = {name for model in models for name in model.model_fields}

        async def guarded(request: Request) -> Response:
            try:
                with refusing():
                    let_in(request)
                    if unknown := [name for name in request.query_params if name not in known]:
                        raise from_validation([{"loc": (name,), "msg": "Unknown parameter"} for name in unknown])
                    if self.body_field is not None:
                        check_json(request)
                        request = bounded(request, largest)
                    response = await answer(request)
            except RefusedRequest as refused:
                response = refused.response()
            except RequestValidationError as error:
                # Of what is no JSON, the place is a number: `body` stays before it.
                below = 0 if error.errors()[0]["type"] == "json_invalid" else 1
                response = from_validation(error.errors(), below=below).response()
            except HTTPException as unreadable:  # FastAPI's own: no text, or too deep
                response = invalid("body", unreadable.detail).response()
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

    def answers(self, asked: str, *refusals: int, shown: Any = None, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Return what makes a function answer requests such as `GET /facts`.

        Args:
            asked: Method and path.
            refusals: With which error statuses of its own it may refuse.
            shown: The model that says how its answer is shown; by default it returns one.
            options: What else FastAPI takes.
        """
        method, _, path = asked.partition(" ")
        with_body = () if method in ("GET", "DELETE") else (413, 415)
        statuses = sorted({401, 403, 422, 429, *with_body, *refusals})
        responses = {each: {"model": Problem, "description": HTTPStatus(each).phrase} for each in statuses}
        options["responses"] = {**responses, **options.get("responses", {})}
        if shown:
            options["response_model"] = shown
        if method == "DELETE":
            # FastAPI's own response would name the content type of an empty body.
            options |= {"status_code": 204, "response_class": Response}

        def decorate(answer: Endpoint) -> Endpoint:
            options["summary"] = _SUMMARY_ENDS.split(answer.__doc__ or "", maxsplit=1)[0]
            self.add_api_route(path, answer, methods=[method], response_description="Done.", **options)
            return answer

        return decorate
