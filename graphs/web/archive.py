"""Everything as one JSON document, and such a document taken in again."""

from dataclasses import asdict
from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from graphs.web.endpoint import LARGE_BODY, Call, Endpoint, Form, Query
from graphs.web.problems import from_value_error
from memory.archive import VERSION, export_steps, import_steps

Json = dict[str, JsonValue]


class Document(Form):
    """A memory, as exporting wrote it; `memory.archive` says what its parts are."""

    schema_name: Literal["palimpsest.memory"] = Field(alias="schema")
    version: int = Field(ge=1, description=f"The newest is {VERSION}.")
    exported_at: str = ""
    agent: str = ""
    facts: list[Json] = Field(default_factory=list)
    history: list[Json] = Field(default_factory=list, description="Earlier revisions; not taken in.")
    profile: dict[str, str] = Field(default_factory=dict)
    journal: list[Json] = Field(default_factory=list)


class Exported(BaseModel):
    """A memory as one document."""

    schema_name: str = Field(alias="schema", serialization_alias="schema")
    version: int
    exported_at: str
    agent: str
    facts: list[Json]
    history: list[Json]
    profile: dict[str, str]
    journal: list[Json]


class RefusedFact(BaseModel):
    """A fact that was not taken in."""

    index: int
    reason: str


class ImportResult(BaseModel):
    """What taking a document in did."""

    created: list[str] = Field(description="Ids of new facts.")
    known: int = Field(description="Facts that were known already.")
    refused: list[RefusedFact]
    quarantined: list[str] = Field(description="Ids of new facts that wait for review.")
    sections: list[str] = Field(description="Profile sections that were empty and now are not.")
    journal: int = Field(description="Journal entries in the document.")


async def export(call: Call, _: Query) -> Exported:
    """Export everything that is remembered for this agent."""
    return Exported.model_validate(await call.run(export_steps(call.owner, call.service.clock())))


async def take_in(call: Call, document: Document) -> ImportResult:
    """Take a document in; twice is the same as once, and nothing that is there is overwritten."""
    try:
        done = await call.run(
            import_steps(
                call.owner,
                document.model_dump(by_alias=True),
                call.service.settings.memory,
                call.service.clock(),
            )
        )
    except ValueError as error:
        raise from_value_error(error, ("version", "facts", "profile", "journal")) from None
    refused = [RefusedFact(index=index, reason=reason) for index, reason in done.refused]
    return ImportResult.model_validate({**asdict(done), "refused": refused})


ENDPOINTS = (
    Endpoint(
        method="GET", path="/export", handler=export, takes=Query, answers=Exported,
        summary="Export everything as one document",
    ),
    Endpoint(
        method="POST", path="/import", handler=take_in, takes=Document, answers=ImportResult, largest=LARGE_BODY,
        summary="Take such a document in; idempotent",
    ),
)  # fmt: skip
