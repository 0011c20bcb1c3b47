"""Everything as lines of JSON, streamed, and such lines taken in again."""

from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import StreamingResponse

from graphs.server.api.guard import bounded, check_json, from_value_error
from graphs.server.api.routing import AgentCall, ApiModel, Call, MemoryRouter
from memory.archive.entries import aexport
from memory.archive.importing import Imported, aimport

router = MemoryRouter()

LARGEST_BODY = 1024 * 1024 * 1024

LARGEST_LINE = 32 * 1024 * 1024
JSON_LINES = "application/jsonl"

_LINES: dict[str, Any] = {
    "description": (
        "A JSON value a line: first a header with `format` and `schema`, then objects that each hold one entry under "
        "the name of its part: profile, fact, history, journal, update."
    ),
    "content": {JSON_LINES: {"schema": {"type": "string"}}},
}


async def lines_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines of a body that comes in pieces; `ValueError` for one that is too long to be held."""
    line = bytearray()
    async for piece in pieces:
        line += piece
        if b"\n" in piece:
            *whole, line = line.split(b"\n")
            for each in whole:
                yield bytes(each)
        if len(line) > LARGEST_LINE:
            raise ValueError(f"body: a line must have at most {LARGEST_LINE} bytes")
    yield bytes(line)


class RefusedLine(ApiModel):
    """A line that was not taken in, by its number, from 1; the header is the first."""

    line: int
    reason: str


class ImportResult(ApiModel):
    """What taking an export in did."""

    created: list[str]
    """Ids of new facts."""
    known: int
    """Facts that were known already."""
    refused: list[RefusedLine]
    """Lines that were not taken in, the first 1,000."""
    refused_more: int
    """How many more there are."""
    quarantined: list[str]
    """Ids of new facts that wait for review."""
    sections: list[str]
    """Profile sections that were empty and now are not."""
    journal: int
    """Journal entries that were taken in, new or not."""
    updates: int
    """Updates that wait again."""


@router.answers("GET /export", response_class=StreamingResponse, responses={200: _LINES})
async def export(call: AgentCall) -> StreamingResponse:
    """Export everything that is remembered for this agent, and what waits to be learned."""
    pieces = aexport(call.store, call.owner, call.now)
    first = await anext(pieces)  # all is read before: a store that is away is no empty file

    # Its text is made while it is sent: it may be large.
    async def sent() -> AsyncIterator[bytes]:
        yield first.encode()
        async for piece in pieces:
            yield piece.encode("utf-8", "replace")

    return StreamingResponse(sent(), media_type=JSON_LINES)


@router.answers(
    "POST /import",
    shown=ImportResult,
    # FastAPI would read a body that it knows of as a whole.
    openapi_extra={"requestBody": {"required": True, **_LINES}},
)
async def take_in(request: Request, call: AgentCall) -> Imported:
    """Take an export in; twice is the same as once, and nothing that is there is overwritten.

    It is read and written in pieces. What breaks off in the middle can be sent again.
    """
    check_json(request)
    try:
        return await take_lines(call, lines_of(bounded(request, LARGEST_BODY).stream()))
    except ValueError as error:
        raise from_value_error(error, [str(error).partition(" ")[0].rstrip(":")]) from None


async def take_lines(call: Call, lines: AsyncIterator[bytes]) -> Imported:
    """Take the lines of an export in; `ValueError` if they are none."""
    done = await aimport(call.store, call.owner, call.config, call.now, lines)
    for thread_id in done.threads:
        call.service.wake(call.owner, thread_id)
    return done
