"""Facts: list, search, add, edit, pin, delete, their history, and undoing the last change."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from graphs.server.api.guard import Problem, RefusedRequest, from_value_error, invalid
from graphs.server.api.routing import (
    NO_CONTENT,
    AgentCall,
    AgentQuery,
    Call,
    Empty,
    MemoryRouter,
    StrictModel,
    call_of,
    refusals,
)
from memory.config import Category
from memory.facts.confirmations import is_unconfirmed, read_confirmations
from memory.facts.fact import (
    Fact,
    FactChanged,
    FactNotFound,
    Held,
    Source,
    Status,
)
from memory.facts.store import FactStore

router = MemoryRouter()

_FIELDS = ("content", "category", "confidence", "pinned", "expires_at")
_EXPIRES = "Until when it holds, that day, month or year included (2026-12-31, 2026-12, 2026): it becomes `valid_to`."


class FactView(BaseModel):
    """One fact."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    content: str
    category: Category
    confidence: float
    created_at: str
    updated_at: str
    source: Source = Field(description="Who wrote it: a conversation, or a person by the page, the API or the shell.")
    status: Status = Field(
        description="active ones are used; quarantined and waiting ones wait for you; others are history."
    )
    held: Held = Field(
        "",
        description="Why it waits for you: it may hold a `secret`, reads as an `order`, or needs your `approval`. "
        "Empty: it does not wait.",
    )
    pinned: bool
    revision: int
    thread_id: str = Field(description="The thread it was said in; empty if it was not taken from one.")
    message_ids: list[str] = Field(description="The messages it was taken from.")
    valid_from: str = Field(description="From when it holds, as exact as it was said (2026, 2026-05, 2026-05-08).")
    valid_to: str = Field(
        description="Until when, included; a fact that holds no longer is not shown as current. Of a corrected one, "
        "the day on which the other was said."
    )
    topic: str = Field(description="The sensitive topic that the model named when it had to wait; empty if none.")
    replaces: str = Field(
        description="Id of the fact that it corrected, or whose place it takes once you say yes; empty if none."
    )
    replaced_by: str = Field(
        description="Id of the fact that took its place, its own where it was edited; empty if none."
    )


class FactDetail(FactView):
    """One fact, and how often it was said again."""

    confirmations: int
    confirmed_at: list[str]


class FactPage(BaseModel):
    """A page of facts."""

    facts: list[FactView]
    total: int = Field(description="How many there are on all pages.")


class Revisions(BaseModel):
    """What a fact said before, with what it corrected and what corrected it, oldest first; what holds now is last."""

    revisions: list[FactView]


class _Choice(StrictModel):
    category: Category | None = None
    status: Status = "active"
    thread: str | None = Field(None, max_length=200, description="Only those that were said in this thread.")
    unconfirmed_days: int | None = Field(
        None,
        ge=1,
        le=36_500,
        description="Only what nobody wrote, edited or said for so many days; nothing pinned.",
    )
    limit: int = Field(50, ge=1, le=1000)
    offset: int = Field(0, ge=0, le=1_000_000)


class FactFilter(AgentQuery, _Choice):
    """Which facts to list."""


class FactSearch(_Choice):
    """Which facts to search; the text is no part of the URL, because servers log those."""

    text: str = Field(
        min_length=1, max_length=1000, description="What they hold or share words with, whatever its case."
    )


class NewFact(StrictModel):
    """A fact that a person adds."""

    content: str = Field(min_length=1, max_length=10_000)
    category: Category
    confidence: float = Field(1.0, ge=0, le=1)
    pinned: bool = False
    expires_at: str = Field("", max_length=10, description=f"{_EXPIRES} Empty: no end.")


class FactEdit(StrictModel):
    """The fields to change; others stay."""

    content: str | None = Field(None, min_length=1, max_length=10_000)
    category: Category | None = None
    confidence: float | None = Field(None, ge=0, le=1)
    pinned: bool | None = None
    expires_at: str | None = Field(None, max_length=10, description=f"{_EXPIRES} Empty takes an end back.")
    status: Literal["active"] | None = Field(
        None,
        description="active: release a quarantined fact, or say yes to a waiting one; with other words in content.",
    )
    revision: int | None = Field(
        None, ge=1, description="The `revision` that you read: if it is another one now, 409 says what is there."
    )


class EditConflict(Problem):
    """Why an edit was refused."""

    fact: FactView | None = Field(None, description="What is there now, where the edit named another `revision`.")


class Undone(BaseModel):
    """What undoing changed."""

    restored: list[FactView] = Field(description="Facts that say again what they said before.")
    removed: list[str] = Field(description="Ids of facts that are no longer used.")


_REFUSED_EDITS = refusals(404, 409)
_REFUSED_EDITS[409]["model"] = EditConflict


def facts_of(call: Call) -> FactStore:
    """Return the facts that a request is about."""
    return FactStore(call.store, call.owner, config=call.service.settings.memory, clock=call.service.clock)


@router.get("/facts", summary="List and filter facts, pinned ones first, then the strongest")
async def list_facts(request: Request, asked: Annotated[FactFilter, Query()]) -> FactPage:
    """List facts, pinned ones first, then the strongest."""
    call = await call_of(request, asked)
    return await _page(call, asked, await facts_of(call).alist(asked.status))


@router.post("/facts/search", summary="Search facts for a text")
async def search_facts(call: AgentCall, asked: FactSearch) -> FactPage:
    """Search facts for a text: those that hold it, strongest first, then those that fit it best."""
    question = await call.service.embed(asked.text)
    found = await facts_of(call).asearch(asked.text, None, status=asked.status, question=question, only_asked=True)
    return await _page(call, asked, found)


async def _page(call: Call, asked: _Choice, facts: Sequence[Fact]) -> FactPage:
    found = [
        fact for fact in facts if asked.category in (None, fact.category) and asked.thread in (None, fact.thread_id)
    ]
    if asked.unconfirmed_days:
        found = await unconfirmed(call, found, asked.unconfirmed_days)
    return FactPage(facts=_views(found[asked.offset : asked.offset + asked.limit]), total=len(found))


async def unconfirmed(call: Call, facts: Sequence[Fact], days: int) -> list[Fact]:
    """Return those of the facts that for so many days nobody wrote, edited or said."""
    said, now = await call.run(read_confirmations(call.owner)), call.service.clock()
    return [fact for fact in facts if is_unconfirmed(fact, said.get(fact.id), now, days)]


@router.post("/facts", status_code=201, summary="Add a fact", responses=refusals(409))
async def add_fact(call: AgentCall, new: NewFact) -> FactView:
    """Add a fact; one that is already known is answered as it is, and one that waits for your yes says why (`held`)."""
    try:
        fact = await facts_of(call).acreate(
            new.content, new.category, new.confidence, source="api", pinned=new.pinned, expires_at=new.expires_at
        )
    except ValueError as error:
        raise from_value_error(error, _FIELDS) from None
    return FactView.model_validate(fact)


@router.get("/facts/{fact_id}", summary="Read a fact", responses=refusals(404))
async def get_fact(call: AgentCall, fact_id: str) -> FactDetail:
    """Read one fact, also one in whose place another is."""
    facts = facts_of(call)
    try:
        fact, said = await facts.aget(fact_id), await facts.aconfirmations(fact_id)
        count, times = said.count, list(said.times)
    except FactNotFound:
        *_, fact = (each for each in await facts.ahistory(fact_id) if each.id == fact_id)
        if fact.replaced_by in ("", fact_id):
            raise
        count, times = 0, []
    return FactDetail(**FactView.model_validate(fact).model_dump(), confirmations=count, confirmed_at=times)


@router.patch("/facts/{fact_id}", summary="Edit, pin or release a fact", responses=_REFUSED_EDITS)
async def edit_fact(call: AgentCall, fact_id: str, edit: FactEdit) -> FactView:
    """Change a fact; what it said before goes to its history, and does not come back from what was said before."""
    facts, held = facts_of(call), "active"
    try:
        if edit.status == "active":
            there = await facts.aget(fact_id)
            held = there.status
            if edit.revision not in (None, there.revision):
                raise FactChanged(there)
        # In one step: in its old words it must not be used for a moment.
        if held == "quarantined":
            fact_id = (await facts.arelease(fact_id, content=edit.content)).id
        elif held == "waiting":
            fact_id = (await facts.aapprove(fact_id, source="api", content=edit.content)).id
        fact = await facts.aupdate(
            fact_id,
            content=edit.content if held == "active" else None,
            category=edit.category,
            confidence=edit.confidence,
            pinned=edit.pinned,
            expires_at=edit.expires_at,
            source="api",
            revision=edit.revision if held == "active" else None,
        )
    except FactChanged as changed:
        raise _conflict(changed) from None
    except ValueError as error:
        raise from_value_error(error, _FIELDS) from None
    return FactView.model_validate(fact)


@router.delete(
    "/facts/{fact_id}",
    **NO_CONTENT,
    summary="Retire a fact; undo restores it",
    responses=refusals(404),
)
async def delete_fact(call: AgentCall, fact_id: str) -> None:
    """Retire a fact: it is used no more and does not come back; undo restores it, erasing it takes its text away."""
    await facts_of(call).aretire(fact_id)


@router.get("/facts/{fact_id}/history", summary="Read what a fact said before", responses=refusals(404))
async def fact_history(call: AgentCall, fact_id: str) -> Revisions:
    """Read what a fact said before, with what it corrected and what corrected it."""
    return Revisions(revisions=_views(await facts_of(call).ahistory(fact_id)))


@router.post(
    "/facts/{fact_id}/restore", summary="Bring back a fact that went at the limit", responses=refusals(404, 409)
)
async def restore_fact(call: AgentCall, fact_id: str, _: Empty) -> FactView:
    """Bring back a fact that went at the limit (status `evicted`); the weakest of the others goes in its place."""
    try:
        fact = await facts_of(call).arestore(fact_id)
    except FactNotFound:
        text = f"no fact that went at the limit has the id {fact_id!r}; undo restores one that was deleted"
        raise RefusedRequest(404, text) from None
    except ValueError as full:
        raise from_value_error(full, ()) from None
    return FactView.model_validate(fact)


@router.post("/undo", summary="Undo the last change of the facts", responses=refusals(409))
async def undo(call: AgentCall, _: Empty) -> Undone:
    """Undo the last change of the facts, whoever made it; undoing again does it again."""
    done = await facts_of(call).aundo()
    if done is None:
        raise RefusedRequest(409, "there is nothing to undo")
    return Undone(restored=_views(done.restored), removed=[fact.id for fact in done.removed])


def _conflict(changed: FactChanged) -> RefusedRequest:
    """Return the refusal that says what is there now, so that a person can choose between both texts."""
    refused = invalid("revision", str(changed).removeprefix("revision: "), status=409)
    refused.problem = EditConflict(**refused.problem.model_dump(), fact=FactView.model_validate(changed.fact))
    return refused


def _views(facts: Sequence[Fact]) -> list[FactView]:
    return [FactView.model_validate(fact) for fact in facts]
