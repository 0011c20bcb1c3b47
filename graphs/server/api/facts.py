"""Facts: list, search, add, edit, pin, delete, their history, and undoing the last change."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from graphs.server.api.guard import Problem, RefusedRequest, invalid
from graphs.server.api.routing import (
    AgentCall,
    ApiModel,
    Call,
    Empty,
    MemoryRouter,
    PageQuery,
    StrictModel,
)
from memory.config import Category
from memory.facts.fact import DAY_SECONDS, Fact, FactChanged, FactNotFound, Held, Source, Status
from memory.facts.records import Confirmations
from memory.facts.rows import read_confirmations
from memory.message import iso_time

router = MemoryRouter()


Content = Annotated[str, Field(min_length=1, max_length=10_000)]
Confidence = Annotated[float, Field(ge=0, le=1)]
Expiry = Annotated[
    str,
    Field(
        max_length=10,
        description="Until when it holds, that day, month or year included (2026-12-31, 2026-12, 2026): it becomes "
        "`valid_to`. Empty: no end.",
    ),
]


class FactView(ApiModel):
    """One fact."""

    id: str
    content: str
    category: Category
    confidence: float
    created_at: str
    updated_at: str
    source: Source
    """Who wrote it: a conversation, or a person by the page, the API or the shell."""
    status: Status
    """active ones are used; quarantined and waiting ones wait for you; others are history."""
    held: Held = ""
    """Why it waits for you: it may be a `secret`, reads as an `order`, or needs your `approval`; empty: it does not."""
    pinned: bool
    revision: int
    thread_id: str
    """The thread it was said in; empty if it was not taken from one."""
    message_ids: list[str]
    """The messages it was taken from."""
    valid_from: str
    """From when it holds, as exact as it was said (2026, 2026-05, 2026-05-08)."""
    valid_to: str
    """Until when, included; a fact that holds no longer is not shown as current. Of a corrected one, the day on which
    the other was said."""
    topic: str
    """The sensitive topic that the model named when it had to wait; empty if none."""
    replaces: str
    """Id of the fact that it corrected, or whose place it takes once you say yes; empty if none."""
    replaced_by: str
    """Id of the fact that took its place, its own where it was edited; empty if none."""


class FactDetail(FactView):
    """One fact, and how often it was said again."""

    confirmations: int
    confirmed_at: list[str]


class FactPage(ApiModel):
    """A page of facts."""

    facts: list[FactView]
    total: int
    """How many there are on all pages."""


class Revisions(ApiModel):
    """What a fact said before, with what it corrected and what corrected it, oldest first; what holds now is last."""

    revisions: list[FactView]


class FactFilter(PageQuery):
    """Which facts to list."""

    category: Category | None = None
    status: Status = "active"
    thread: str | None = Field(default=None, max_length=200)
    """Only those that were said in this thread."""
    unconfirmed_days: int | None = Field(default=None, ge=1, le=36_500)
    """Only what nobody wrote, edited or said for so many days; nothing pinned."""
    as_of: date | None = None
    """In use at that day's end."""


class FactSearch(FactFilter, StrictModel):
    """Which facts to search; the text is no part of the URL, because servers log those."""

    text: str = Field(min_length=1, max_length=1000)
    """What they hold or share words with, whatever its case."""


class NewFact(StrictModel):
    """A fact that a person adds."""

    content: Content
    category: Category
    confidence: Confidence = 1.0
    pinned: bool = False
    expires_at: Expiry = ""


class FactEdit(StrictModel):
    """The fields to change; others stay."""

    content: Content | None = None
    category: Category | None = None
    confidence: Confidence | None = None
    pinned: bool | None = None
    expires_at: Expiry | None = None
    status: Literal["active"] | None = None
    """active: release a quarantined fact, or say yes to a waiting one; with other words in content."""
    revision: int | None = Field(default=None, ge=1)
    """The `revision` that you read: if it is another one now, 409 says what is there."""


class EditConflict(Problem):
    """Why an edit was refused; and what is there now, where the edit named another `revision`."""

    fact: FactView | None = None


class Undone(ApiModel):
    """What undoing changed."""

    restored: list[FactView]
    """Facts that say again what they said before."""
    removed: list[str]
    """Ids of facts that are no longer used."""


@router.answers("GET /facts", shown=FactPage)
async def list_facts(call: AgentCall, asked: Annotated[FactFilter, Query()]) -> dict[str, Any]:
    """List facts, pinned ones first, then the strongest."""
    return await _page(call, asked, await call.facts.alist(asked.status, as_of=asked.as_of))


@router.answers("POST /facts/search", shown=FactPage)
async def search_facts(call: AgentCall, asked: FactSearch) -> dict[str, Any]:
    """Search facts for a text: those that hold it, strongest first, then those that fit it best."""
    question = await call.service.recalling.vector_of(asked.text)
    found = await call.facts.asearch(
        asked.text, None, status=asked.status, question=question, only_asked=True, as_of=asked.as_of
    )
    return await _page(call, asked, found)


async def _page(call: Call, asked: FactFilter, facts: Sequence[Fact]) -> dict[str, Any]:
    found = [
        fact for fact in facts if asked.category in (None, fact.category) and asked.thread in (None, fact.thread_id)
    ]
    if asked.unconfirmed_days:
        found = unconfirmed(call, found, await call.run(read_confirmations(call.owner)), asked.unconfirmed_days)
    return {"facts": asked.cut(found), "total": len(found)}


def unconfirmed(call: Call, facts: Sequence[Fact], said: Mapping[str, Confirmations], days: int) -> list[Fact]:
    """Return those of the facts that for so many days nobody wrote, edited or said; pinned ones need no word."""
    since = iso_time(call.now - days * DAY_SECONDS)
    return [
        fact
        for fact in facts
        if not fact.pinned and max(fact.created_at, fact.updated_at, *said.get(fact.id, Confirmations()).times) <= since
    ]


@router.answers("POST /facts", 409, status_code=201, shown=FactView)
async def add_fact(call: AgentCall, new: NewFact) -> Fact:
    """Add a fact; a known one takes over a pin and an end, and one that waits for your yes says why (`held`)."""
    return await call.facts.acreate(**new.model_dump(), source="api")


@router.answers("GET /facts/{fact_id}", 404)
async def get_fact(call: AgentCall, fact_id: str) -> FactDetail:
    """Read one fact, also one in whose place another is."""
    facts, count, times = call.facts, 0, list[str]()
    try:
        fact, said = await facts.aget(fact_id), await call.run(read_confirmations(call.owner))
        again = said.get(fact_id, Confirmations())
        count, times = again.count, list(again.times)
    except FactNotFound:
        *_, fact = (each for each in await facts.ahistory(fact_id) if each.id == fact_id)
        if fact.replaced_by in ("", fact_id):
            raise
    return FactDetail(**FactView.model_validate(fact).model_dump(), confirmations=count, confirmed_at=times)


@router.answers("PATCH /facts/{fact_id}", 404, shown=FactView, responses={409: {"model": EditConflict}})
async def edit_fact(call: AgentCall, fact_id: str, edit: FactEdit) -> Fact:
    """Change a fact; what it said before goes to its history, and does not come back from what was said before."""
    facts, changed = call.facts, edit.model_dump(exclude={"status"})
    try:
        if edit.status == "active":
            there = await facts.aget(fact_id)
            if edit.revision not in (None, there.revision):
                raise FactChanged(there)
            # In one step: in its old words it must not be used for a moment.
            if there.status == "quarantined":
                fact_id = (await facts.arelease(fact_id, content=edit.content)).id
            elif there.status == "waiting":
                fact_id = (await facts.aapprove(fact_id, source="api", content=edit.content)).id
            if there.status != "active":
                changed |= {"content": None, "revision": None}
        return await facts.aupdate(fact_id, **changed, source="api")
    except FactChanged as conflict:
        # So that a person can choose between both texts.
        refused = invalid("revision", str(conflict).removeprefix("revision: "), status=409)
        there_now = FactView.model_validate(conflict.fact)
        refused.problem = EditConflict(**refused.problem.model_dump(), fact=there_now)
        raise refused from None


@router.answers("DELETE /facts/{fact_id}", 404)
async def delete_fact(call: AgentCall, fact_id: str) -> None:
    """Retire a fact: it is used no more and does not come back; undo restores it, erasing it takes its text away."""
    await call.facts.aretire(fact_id)


@router.answers("GET /facts/{fact_id}/history", 404, shown=Revisions)
async def fact_history(call: AgentCall, fact_id: str) -> dict[str, Any]:
    """Read what a fact said before, with what it corrected and what corrected it."""
    return {"revisions": await call.facts.ahistory(fact_id)}


@router.answers("POST /facts/{fact_id}/restore", 404, 409, shown=FactView)
async def restore_fact(call: AgentCall, fact_id: str, _: Empty) -> Fact:
    """Bring back a fact that is history; at the limit the weakest of the others goes in its place.

    It went at the limit (status `evicted`), was deleted or held no longer (`ended`), or another one has its place
    (`superseded`), which goes to history then.
    """
    try:
        return await call.facts.arestore(fact_id)
    except FactNotFound:
        text = f"no fact of history has the id {fact_id!r}, or another fact says what it said"
        raise RefusedRequest(404, text) from None


@router.answers("POST /undo", 409, shown=Undone)
async def undo(call: AgentCall, _: Empty) -> dict[str, Any]:
    """Undo the last change of the facts, whoever made it; undoing again does it again."""
    done = await call.facts.aundo()
    if done is None:
        raise RefusedRequest(409, "there is nothing to undo")
    return {"restored": done.restored, "removed": [fact.id for fact in done.removed]}
