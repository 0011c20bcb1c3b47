"""One endpoint of the memory API as a value: what it takes, what it answers, and how a request becomes a call."""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from langgraph.store.base import BaseStore
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from graphs.persistence.checkpoint_file import CheckpointFile
from graphs.server.api.guard import (
    RateLimit,
    RefusedRequest,
    body_of,
    check_json,
    check_origin,
    from_validation,
    read_body,
    user_of,
)
from graphs.server.threads import Crons, Threads
from graphs.settings import Settings
from memory.effects import StoreEffects, arun
from memory.namespaces import Owner

logger = logging.getLogger(__name__)

PREFIX = "/memory"
SMALL_BODY = 64 * 1024
LARGEST_BODY = 1024 * 1024 * 1024

Input = TypeVar("Input", bound="Form")
T = TypeVar("T")


class Form(BaseModel):
    """What a request may carry, in its query or its JSON body; what is not listed is refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Query(Form):
    """What the query may carry; every endpoint takes the agent."""

    agent_name: str = Field(
        "default",
        validation_alias=AliasChoices("agent_name", "agent"),
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="Whose memory of the user, as `agent_name` of the assistant's context. `agent` means the same.",
    )


def _nobody(_: Owner, __: str) -> None:
    """Leave it to the next sweep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What endpoints work with.

    Attributes:
        settings: The deployment's choices.
        store: The server's store.
        threads: The server's threads.
        crons: The server's crons.
        checkpoints: What the file of the checkpoints knows that the server may not.
        empty_logs: Sees to it that no log of a database keeps what was deleted.
        limit: How often one user may ask.
        wake: Sees to it that what waits of an owner's thread is learned now, not with the next sweep.
        clock: Seconds since the epoch.
    """

    settings: Settings
    store: BaseStore
    threads: Threads
    crons: Crons
    checkpoints: CheckpointFile
    empty_logs: Callable[[], Awaitable[None]]
    limit: RateLimit
    wake: Callable[[Owner, str], None] = _nobody
    clock: Callable[[], float] = time.time


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


@dataclass(frozen=True, slots=True)
class Streamed:
    """An answer that is made while it is sent, because it may be larger than memory: pieces of a JSON document."""

    pieces: AsyncIterator[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request that has passed the guard.

    Attributes:
        user_id: The identity that the server vouches for.
        owner: That user's memory, of the agent the query names.
        path: The values of the path's parameters.
        service: What the endpoint works with.
        body: The body in pieces, where the endpoint reads it itself.
    """

    user_id: str
    owner: Owner
    path: dict[str, str]
    service: Service
    body: AsyncIterator[bytes] = field(default_factory=_nothing)

    @property
    def store(self) -> BaseStore:
        """The server's store."""
        return self.service.store

    async def run(self, steps: StoreEffects[T]) -> T:
        """Carry out steps on the server's store."""
        return await arun(self.store, steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Generic[Input]):
    """What one method of one path does.

    Attributes:
        method: The HTTP method; POST, PUT and PATCH take their input as a JSON body, the others in the query.
        path: Below `/memory`.
        summary: One sentence for the document.
        handler: Does it; returns the answer, or `None` for an empty one.
        takes: The input's form.
        answers: The answer's form.
        status: The status of success.
        refusals: What else it may answer, beside what every endpoint may.
        largest: The longest body in bytes.
        is_streamed: Whether the handler reads the body itself, from the call; its input's form only documents it.
    """

    method: str
    path: str
    summary: str
    handler: Callable[[Call, Input], Awaitable[BaseModel | Streamed | None]]
    takes: type[Input]
    answers: type[BaseModel] | None = None
    status: int = 200
    refusals: tuple[int, ...] = ()
    largest: int = SMALL_BODY
    is_streamed: bool = False

    @property
    def has_body(self) -> bool:
        """Say whether the input comes as a JSON body."""
        return self.method in ("POST", "PUT", "PATCH")

    async def answer(self, request: Request, service: Service) -> Response:
        """Answer one request: guard, input, handler, output."""
        try:
            response = await self._answer(request, service)
        except RefusedRequest as refused:
            response = refused.response()
        logger.info("%s %s%s %d", self.method, PREFIX, self.path, response.status_code)
        return response

    async def _answer(self, request: Request, service: Service) -> Response:
        single_user = service.settings.single_user
        if not single_user:  # in single-user mode `ThisMachineOnly` stands before every route
            check_origin(request, service.settings.allowed_origins)
        user_id = user_of(request, single_user=single_user)
        service.limit.take(user_id)
        try:
            query, given = await self._input(request)
        except ValidationError as error:
            raise from_validation(error) from None
        owner = Owner.of(user_id, query.agent_name)
        call = Call(user_id=user_id, owner=owner, path=dict(request.path_params), service=service)
        if self.is_streamed:
            call = replace(call, body=body_of(request, self.largest))
        done = await self.handler(call, given)
        if done is None:
            return Response(status_code=204)
        if isinstance(done, Streamed):
            return StreamingResponse(_encoded(done.pieces), media_type="application/json")
        return JSONResponse(done.model_dump(mode="json", by_alias=True), status_code=self.status)

    async def _input(self, request: Request) -> tuple[Query, Input]:
        asked: dict[str, object] = dict(request.query_params)
        if not self.has_body:
            given = self.takes.model_validate(asked)
            return (given if isinstance(given, Query) else Query.model_validate(asked)), given
        query = Query.model_validate(asked)
        if self.is_streamed:
            check_json(request)
            return query, self.takes.model_construct()
        return query, self.takes.model_validate_json(await read_body(request, self.largest))


async def _encoded(pieces: AsyncIterator[str]) -> AsyncIterator[bytes]:
    async for piece in pieces:
        yield piece.encode("utf-8", "replace")


AnyEndpoint = Endpoint[Any]
