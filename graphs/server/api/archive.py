"""Everything as one JSON document, streamed, and such a document taken in again."""

import logging
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue
from starlette.requests import Request
from starlette.responses import StreamingResponse

from graphs.server.api.guard import body_of, check_json, from_value_error
from graphs.server.api.routing import AgentCall, Call, MemoryRouter, StrictModel
from memory.archive.exporting import aexport
from memory.archive.importing import VERSION, Importer
from memory.archive.json_parts import PartsReader
from memory.effects import tolerated

logger = logging.getLogger(__name__)

router = MemoryRouter()

LARGEST_BODY = 1024 * 1024 * 1024

Json = dict[str, JsonValue]

_SUMMARIES = "Summaries of your threads, for you to have; not taken in, as they live in the threads' checkpoints."


class MemoryDocument(StrictModel):
    """A memory, as exporting wrote it, however large; `schema` and `version` stand before the lists."""

    schema_name: Literal["palimpsest.memory"] = Field(alias="schema")
    version: int = Field(ge=1, le=VERSION, description=f"The newest is {VERSION}.")
    exported_at: str = ""
    agent: str = ""
    profile: dict[str, str] = Field(default_factory=dict)
    facts: list[dict[str, Any]] = Field(default_factory=list)
    history: list[dict[str, Any]] = Field(default_factory=list, description="Earlier revisions; not taken in.")
    journal: list[dict[str, Any]] = Field(default_factory=list)
    updates: list[dict[str, Any]] = Field(default_factory=list, description="What was not learned yet; it waits again.")
    summaries: list[dict[str, Any]] = Field(default_factory=list, description=_SUMMARIES)


_DOCUMENT = MemoryDocument.model_json_schema()


class Exported(BaseModel):
    """A memory as one document."""

    schema_name: str = Field(alias="schema", serialization_alias="schema")
    version: int
    exported_at: str
    agent: str
    profile: dict[str, str]
    facts: list[Json]
    history: list[Json]
    journal: list[Json]
    updates: list[Json] = Field(description="What was said and is not learned yet.")
    summaries: list[Json] = Field(description=_SUMMARIES)


class RefusedEntry(BaseModel):
    """An entry that was not taken in."""

    part: str = Field(description="The list it stands in: facts, journal or updates.")
    index: int = Field(description="Its place there, from 0.")
    reason: str


class ImportResult(BaseModel):
    """What taking a document in did."""

    created: list[str] = Field(description="Ids of new facts.")
    known: int = Field(description="Facts that were known already.")
    refused: list[RefusedEntry] = Field(description="Entries that were not taken in, the first 1,000.")
    refused_more: int = Field(description="How many more there are.")
    quarantined: list[str] = Field(description="Ids of new facts that wait for review.")
    sections: list[str] = Field(description="Profile sections that were empty and now are not.")
    journal: int = Field(description="Journal entries that were taken in.")
    updates: int = Field(description="Updates that wait again.")


@router.get("/export", summary="Export everything as one document", response_model=Exported)
async def export(call: AgentCall) -> StreamingResponse:
    """Export everything that is remembered for this agent, what waits to be learned, and your threads' summaries."""
    pieces = aexport(call.store, call.owner, call.service.clock(), _summaries(call))
    # Made while it is sent: it may be larger than memory.
    return StreamingResponse(
        (piece.encode("utf-8", "replace") async for piece in pieces), media_type="application/json"
    )


async def _summaries(call: Call) -> AsyncIterator[dict[str, object]]:
    async for thread_id in call.service.threads.all_of(call.user_id):
        # A summary is an extra: one that cannot be read must not cost the whole export.
        with tolerated(logger, "the summary of thread %s is not exported", thread_id):
            if summary := await call.service.threads.summary(thread_id):
                yield {"thread_id": thread_id, "summary": summary}


@router.post(
    "/import",
    summary="Take such a document in; idempotent",
    # FastAPI would read a body that it knows of as a whole.
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _DOCUMENT}}}},
)
async def take_in(request: Request, call: AgentCall) -> ImportResult:
    """Take a document in; twice is the same as once, and nothing that is there is overwritten.

    It is read and written in pieces. What breaks off in the middle can be sent again.
    """
    check_json(request)
    importer, reader = Importer(call.owner, call.service.settings.memory, call.service.clock()), PartsReader()
    try:
        async for piece in body_of(request, LARGEST_BODY):
            for part in reader.feed(piece):
                importer.take(part)
                # In pieces, so not all or nothing: a document may be larger than memory.
                if importer.has_much:
                    await call.run(importer.write())
        for part in reader.close():
            importer.take(part)
        done = await call.run(importer.finish())
    except ValueError as error:
        said = f"{error}; what stands before it was taken in" if importer.has_written else str(error)
        raise from_value_error(ValueError(said), [said.partition(" ")[0].rstrip(":")]) from None
    for thread_id in importer.waiting_threads:
        call.service.wake(call.owner, thread_id)
    refused = [RefusedEntry(**asdict(each)) for each in done.rejected]
    return ImportResult.model_validate({**asdict(done), "refused": refused, "refused_more": done.more_rejected})
