"""The daily journal: what was said, by day."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from graphs.server.api.routing import AgentQuery, MemoryRouter, call_of
from memory.control import read_epoch
from memory.journal.entry import LineSource
from memory.journal.journal import read_journal
from memory.message import Role

router = MemoryRouter()


class Said(BaseModel):
    """One message."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    role: Role
    text: str
    time: str


class Exchange(BaseModel):
    """What was said together."""

    model_config = ConfigDict(from_attributes=True)

    day: str = Field(description="The user's calendar day.")
    thread_id: str
    source: LineSource = Field(description="`turn`: it was learned. `cut`: a summary took it out of its thread.")
    messages: list[Said]


class JournalPage(BaseModel):
    """A page of the journal, oldest first."""

    entries: list[Exchange]
    total: int


class JournalFilter(AgentQuery):
    """Which entries to read."""

    since: str = Field("", pattern=r"^(\d{4}-\d{2}-\d{2})?$", description="From this day on (YYYY-MM-DD).")
    until: str = Field("", pattern=r"^(\d{4}-\d{2}-\d{2})?$", description="Up to this day, included.")
    thread: str | None = Field(None, max_length=200)
    source: LineSource | None = Field(None, description="Only what is marked so.")
    limit: int = Field(100, ge=1, le=1000)
    offset: int = Field(0, ge=0, le=1_000_000)


@router.get("/journal", summary="Read the daily journal")
async def list_journal(request: Request, asked: Annotated[JournalFilter, Query()]) -> JournalPage:
    """Read the journal."""
    call = await call_of(request, asked)
    epoch = await call.run(read_epoch(call.owner))
    found = [
        entry
        for entry in await call.run(read_journal(call.owner, epoch, asked.since))
        if asked.thread in (None, entry.thread_id)
        and asked.source in (None, entry.source)
        and (not asked.until or entry.day <= asked.until)
    ]
    page = found[asked.offset : asked.offset + asked.limit]
    return JournalPage(entries=[Exchange.model_validate(entry) for entry in page], total=len(found))
