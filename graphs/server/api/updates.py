"""Updates that are pending or failed for good, and the receipts of those that were done."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Query
from pydantic import BeforeValidator, Field, JsonValue

from graphs.server.api.guard import RefusedRequest
from graphs.server.api.routing import AgentCall, ApiModel, Call, Empty, MemoryRouter
from memory.control import read_control
from memory.door import side_by_side
from memory.facts.fact import Time
from memory.forms import plain
from memory.message import iso_time
from memory.updates.entry import Entry, EntryKind, EntryState
from memory.updates.lease import read_lease
from memory.updates.outbox import read_entries, settle_dead
from memory.updates.receipts import read_receipts

router = MemoryRouter()


Moment = Annotated[str, BeforeValidator(iso_time)]


class Update(ApiModel):
    """One update that was written down and is not done."""

    key: str
    kind: EntryKind
    """turn: a finished turn. cut: what left a thread's context by a summary."""
    thread_id: str
    state: EntryState
    """dead: it failed for good; retry or discard it."""
    created: Moment
    due: Moment
    attempts: int
    error: str
    """Sort of the last failure."""
    messages: Annotated[int, BeforeValidator(len)]
    """How many messages wait in it."""


class Updates(ApiModel):
    """Updates that are not done, oldest first."""

    updates: list[Update]


class UpdateFilter(ApiModel):
    """Which updates to list."""

    state: EntryState | None = None
    thread: str | None = Field(default=None, max_length=200)


class Receipts(ApiModel):
    """What updates did: facts created, confirmed, superseded and refused with the reason, by ids; oldest first."""

    receipts: list[dict[str, JsonValue]]


class ReceiptFilter(ApiModel):
    """Which receipts to read."""

    since: Time = Field(default="", max_length=64)
    """Only updates that ended after this time (ISO 8601)."""


@router.answers("GET /updates", shown=Updates)
async def list_updates(call: AgentCall, asked: Annotated[UpdateFilter, Query()]) -> dict[str, Any]:
    """List what is pending or dead."""
    found = await updates_of(call)
    return {"updates": [e for e in found if asked.state in (None, e.state) and asked.thread in (None, e.thread_id)]}


@router.answers("POST /updates/run", shown=Updates)
async def run_updates(call: AgentCall, _: Empty) -> dict[str, Any]:
    """Have what waits read now, without its quiet time; what failed is tried again when it is due."""
    waiting = [entry for entry in await updates_of(call) if entry.state == "pending"]
    for thread_id in {entry.thread_id for entry in waiting}:
        call.service.wake(call.owner, thread_id)
    return {"updates": waiting}


@router.answers("POST /updates/{key}/retry", 404, 409, shown=Update)
async def retry_update(call: AgentCall, key: str, _: Empty) -> Entry:
    """Give a dead update another chance, now."""
    dead, now = await _dead(call, key), call.now
    await call.run(settle_dead(call.owner, key, now))
    call.service.wake(call.owner, dead.thread_id)
    return replace(dead, state="pending", attempts=0, due=now, error="")


@router.answers("DELETE /updates/{key}", 404, 409)
async def discard_update(call: AgentCall, key: str) -> None:
    """Throw a dead update away: what it holds is not learned."""
    await _dead(call, key)
    await call.run(settle_dead(call.owner, key, None))


@router.answers("GET /receipts", shown=Receipts)
async def list_receipts(call: AgentCall, asked: Annotated[ReceiptFilter, Query()]) -> dict[str, Any]:
    """Read what updates did."""
    done = await call.run(read_receipts(call.owner, asked.since))
    return {"receipts": [*map(plain, done)]}


async def updates_of(call: Call) -> Sequence[Entry]:
    """Read what is pending or dead of a call's owner, oldest first, with its waits among its attempts."""
    owner = call.owner
    control, lease, entries = await call.run(side_by_side(read_control(owner), read_lease(owner), read_entries(owner)))
    running = lease.keys if lease.stands(call.now) else ()
    return [
        replace(
            entry,
            state="running" if entry.key in running else entry.state,
            attempts=entry.attempts + entry.waits,
        )
        for entry in entries
        if entry.epoch == control.epoch  # what carries another one was erased in between
    ]


async def _dead(call: Call, key: str) -> Entry:
    found = next((entry for entry in await updates_of(call) if entry.key == key), None)
    if found is None:
        raise RefusedRequest(404, "no update has this key; it may be done")
    if found.state != "dead":
        raise RefusedRequest(409, f"this update is {found.state}, not dead")
    return found
