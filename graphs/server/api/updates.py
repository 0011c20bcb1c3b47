"""Updates that are pending or failed for good, and the receipts of those that were done."""

from collections.abc import Sequence

from pydantic import BaseModel, Field, JsonValue

from graphs.server.api.endpoint import Call, Endpoint, Form, Query
from graphs.server.api.guard import RefusedRequest
from memory.control import read_epoch
from memory.facts.fact import timestamp
from memory.outbox.entry import Entry, EntryKind, EntryState
from memory.outbox.outbox import discard_dead, read_entries, retry_dead
from memory.outbox.receipts import read_receipts


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


class UpdateFilter(Query):
    """Which updates to list."""

    state: EntryState | None = None
    thread: str | None = Field(None, max_length=200)


class Retry(Form):
    """Nothing needs to be said: send `{}`."""


class Receipts(BaseModel):
    """What updates did: facts created, confirmed, superseded and refused with the reason, by ids; oldest first."""

    receipts: list[dict[str, JsonValue]]


class ReceiptFilter(Query):
    """Which receipts to read."""

    since: str = Field("", max_length=64, description="Only updates that ended after this time (ISO 8601).")


async def list_updates(call: Call, asked: UpdateFilter) -> Updates:
    """List what is pending or dead."""
    found = [
        entry
        for entry in await _entries(call)
        if asked.state in (None, entry.state) and asked.thread in (None, entry.thread_id)
    ]
    return Updates(updates=[_view(entry) for entry in found])


def _view(entry: Entry) -> Update:
    return Update(
        key=entry.key,
        kind=entry.kind,
        thread_id=entry.thread_id,
        state=entry.state,
        created=timestamp(entry.created),
        due=timestamp(entry.due),
        attempts=entry.attempts,
        error=entry.error,
        messages=len(entry.messages),
    )


async def retry_update(call: Call, _: Retry) -> Update:
    """Give a dead update another chance, now."""
    key = await _dead(call)
    await call.run(retry_dead(call.owner, call.service.clock(), [key]))
    again = next(entry for entry in await _entries(call) if entry.key == key)
    call.service.wake(call.owner, again.thread_id)
    return _view(again)


async def discard_update(call: Call, _: Query) -> None:
    """Throw a dead update away: what it holds is not learned."""
    await call.run(discard_dead(call.owner, [await _dead(call)]))


async def list_receipts(call: Call, asked: ReceiptFilter) -> Receipts:
    """Read what updates did."""
    epoch = await call.run(read_epoch(call.owner))
    done = await call.run(read_receipts(call.owner, epoch, asked.since))
    return Receipts(receipts=[receipt.to_json() for receipt in done])


async def _entries(call: Call) -> Sequence[Entry]:
    epoch = await call.run(read_epoch(call.owner))
    return [entry for entry in await call.run(read_entries(call.owner)) if entry.epoch == epoch]


async def _dead(call: Call) -> str:
    key = call.path["key"]
    found = [entry for entry in await _entries(call) if entry.key == key]
    if not found:
        raise RefusedRequest(404, "no update has this key; it may be done")
    if found[0].state != "dead":
        raise RefusedRequest(409, f"this update is {found[0].state}, not dead")
    return key


ENDPOINTS = (
    Endpoint(
        method="GET", path="/updates", handler=list_updates, takes=UpdateFilter, answers=Updates,
        summary="List pending and dead updates",
    ),
    Endpoint(
        method="POST", path="/updates/{key}/retry", handler=retry_update, takes=Retry, answers=Update,
        summary="Retry a dead update", refusals=(404, 409),
    ),
    Endpoint(
        method="DELETE", path="/updates/{key}", handler=discard_update, takes=Query, status=204,
        summary="Discard a dead update", refusals=(404, 409),
    ),
    Endpoint(
        method="GET", path="/receipts", handler=list_receipts, takes=ReceiptFilter, answers=Receipts,
        summary="Read what updates did",
    ),
)  # fmt: skip
