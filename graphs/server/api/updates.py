"""Updates that are pending or failed for good, and the receipts of those that were done."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field, JsonValue
from starlette.requests import Request

from graphs.server.api.guard import RefusedRequest
from graphs.server.api.routing import NO_CONTENT, AgentCall, AgentQuery, Call, Empty, MemoryRouter, call_of, refusals
from memory.control import read_epoch
from memory.effects import side_by_side
from memory.facts.fact import timestamp
from memory.updates.entry import Entry, EntryKind
from memory.updates.lease import read_lease
from memory.updates.outbox import discard_dead, read_entries, retry_dead
from memory.updates.receipts import read_receipts
from memory.updates.state import EntryState

router = MemoryRouter()


class Update(BaseModel):
    """One update that was written down and is not done."""

    key: str
    kind: EntryKind = Field(description="turn: a finished turn. cut: what left a thread's context by a summary.")
    thread_id: str
    state: EntryState = Field(description="dead: it failed for good; retry or discard it.")
    created: str
    due: str
    attempts: int
    error: str = Field(description="Sort of the last failure.")
    messages: int = Field(description="How many messages wait in it.")


class Updates(BaseModel):
    """Updates that are not done, oldest first."""

    updates: list[Update]


class UpdateFilter(AgentQuery):
    """Which updates to list."""

    state: EntryState | None = None
    thread: str | None = Field(None, max_length=200)


class Receipts(BaseModel):
    """What updates did: facts created, confirmed, superseded and refused with the reason, by ids; oldest first."""

    receipts: list[dict[str, JsonValue]]


class ReceiptFilter(AgentQuery):
    """Which receipts to read."""

    since: str = Field("", max_length=64, description="Only updates that ended after this time (ISO 8601).")


@router.get("/updates", summary="List pending and dead updates")
async def list_updates(request: Request, asked: Annotated[UpdateFilter, Query()]) -> Updates:
    """List what is pending or dead."""
    call = await call_of(request, asked)
    found = [
        entry
        for entry in await updates_of(call)
        if asked.state in (None, entry.state) and asked.thread in (None, entry.thread_id)
    ]
    return Updates(updates=[update_view(entry) for entry in found])


def update_view(entry: Entry) -> Update:
    """Return what is told of a pending update."""
    return Update(
        key=entry.key,
        kind=entry.kind,
        thread_id=entry.thread_id,
        state=entry.state,
        created=timestamp(entry.created),
        due=timestamp(entry.due),
        attempts=entry.attempts + entry.waits,
        error=entry.error,
        messages=len(entry.messages),
    )


@router.post("/updates/run", summary="Learn now what waits")
async def run_updates(call: AgentCall, _: Empty) -> Updates:
    """Have what waits read now, without its quiet time; what failed is tried again when it is due."""
    waiting = [entry for entry in await updates_of(call) if entry.state == "pending"]
    for thread_id in {entry.thread_id for entry in waiting}:
        call.service.wake(call.owner, thread_id)
    return Updates(updates=[update_view(entry) for entry in waiting])


@router.post("/updates/{key}/retry", summary="Retry a dead update", responses=refusals(404, 409))
async def retry_update(call: AgentCall, key: str, _: Empty) -> Update:
    """Give a dead update another chance, now."""
    await _check_dead(call, key)
    await call.run(retry_dead(call.owner, call.service.clock(), [key]))
    again = next(entry for entry in await updates_of(call) if entry.key == key)
    call.service.wake(call.owner, again.thread_id)
    return update_view(again)


@router.delete(
    "/updates/{key}",
    **NO_CONTENT,
    summary="Discard a dead update",
    responses=refusals(404, 409),
)
async def discard_update(call: AgentCall, key: str) -> None:
    """Throw a dead update away: what it holds is not learned."""
    await _check_dead(call, key)
    await call.run(discard_dead(call.owner, [key]))


@router.get("/receipts", summary="Read what updates did")
async def list_receipts(request: Request, asked: Annotated[ReceiptFilter, Query()]) -> Receipts:
    """Read what updates did."""
    call = await call_of(request, asked)
    epoch = await call.run(read_epoch(call.owner))
    done = await call.run(read_receipts(call.owner, epoch, asked.since))
    return Receipts(receipts=[receipt.to_json() for receipt in done])


async def updates_of(call: Call) -> Sequence[Entry]:
    """Read what is pending or dead of a call's owner, oldest first."""
    owner, now = call.owner, call.service.clock()
    epoch, lease, entries = await call.run(side_by_side(read_epoch(owner), read_lease(owner), read_entries(owner)))
    running = lease.keys if lease.stands(now) else ()
    # What carries another epoch was erased in between.
    return [
        replace(entry, state="running") if entry.key in running else entry for entry in entries if entry.epoch == epoch
    ]


async def _check_dead(call: Call, key: str) -> None:
    found = [entry for entry in await updates_of(call) if entry.key == key]
    if not found:
        raise RefusedRequest(404, "no update has this key; it may be done")
    if found[0].state != "dead":
        raise RefusedRequest(409, f"this update is {found[0].state}, not dead")
