"""Facts on the page: find, add, edit, pin, delete and undo one or many, their history, and where they come from."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field
from starlette.responses import RedirectResponse, Response

from graphs.server.api.archive import JSON_LINES
from graphs.server.api.facts import FactEdit, NewFact, unconfirmed
from graphs.server.api.guard import RefusedRequest
from graphs.server.api.routing import StrictModel
from graphs.server.page.pages import PageRequest, PageRoutes
from graphs.server.page.rendering import HEADERS, WHY, address
from memory.archive.entries import fact_lines
from memory.config import Category
from memory.facts.fact import Fact, FactChanged, FactNotFound
from memory.facts.rows import read_confirmations
from memory.journal.journal import read_journal

pages = PageRoutes()

PAGE_SIZE = 100
UNCONFIRMED_DAYS = 180


class Filter(StrictModel):
    """Which facts to show."""

    text: str = Field("", max_length=1000)
    category: Category | None = None
    since: str = Field("", pattern=r"^(\d{4}-\d{2}-\d{2})?$")
    until: str = Field("", pattern=r"^(\d{4}-\d{2}-\d{2})?$")
    unconfirmed: bool = False
    sort: Literal["strength", "newest", "oldest"] = "strength"
    offset: int = Field(0, ge=0, le=1_000_000)


async def _admitted(asked: PageRequest, wanted: Filter, facts: Sequence[Fact]) -> list[Fact]:
    """Return those of the facts in use that a filter admits; what fits its text best stands first."""
    if wanted.text:
        question = await asked.service.recalling.vector_of(wanted.text)
        facts = await asked.facts.asearch(wanted.text, None, question=question, only_asked=True)
    admitted = [
        fact for fact in facts
        if wanted.category in (None, fact.category) and wanted.since <= fact.created_at[:10] <= (wanted.until or "9")
    ]  # fmt: skip
    return await unconfirmed(asked, admitted, UNCONFIRMED_DAYS) if wanted.unconfirmed else admitted


async def _list(asked: PageRequest, said: str = "", undo: str = "", *, wanted: Filter | None = None) -> Response:
    """Show a page of the facts that a filter admits, by default the request's."""
    wanted = wanted or asked.fields(Filter)
    everything = await asked.facts.alist()
    facts = await _admitted(asked, wanted, everything)
    if wanted.sort != "strength":  # by which they stand already, or, where something is searched, by how well they fit
        facts.sort(key=lambda fact: (fact.created_at, fact.id), reverse=wanted.sort == "newest")
    # Of a list that has become shorter, its last page.
    offset = min(wanted.offset, max(len(facts) - 1, 0) // PAGE_SIZE * PAGE_SIZE)
    return asked.show(
        "facts.html", "facts",
        wanted=wanted.model_copy(update={"offset": offset}), facts=facts[offset : offset + PAGE_SIZE],
        total=len(facts), of_all=len(everything), confirmed=await asked.run(read_confirmations(asked.owner)),
        is_learning=asked.control.learning and asked.config.enabled, is_used=asked.control.use,
        # Not what is searched for, because servers log addresses.
        page_size=PAGE_SIZE, said=said, undo=undo, seen=wanted.model_dump(exclude={"text"}, exclude_defaults=True),
    )  # fmt: skip


@pages.answers("GET facts")
@pages.answers("POST facts-list")
async def show_facts(asked: PageRequest) -> Response:
    """Show the facts that a filter admits, and the form that finds some."""
    deleted = asked.one("deleted")
    return await _list(asked, "Deleted." if deleted else "", deleted)


@pages.answers("POST fact-add")
async def add_from_form(asked: PageRequest) -> Response:
    """Add a fact; one that is known already stays as it is."""
    new = asked.fields(NewFact)
    known = {fact.id for fact in await asked.facts.alist(None)}
    fact = await asked.facts.acreate(**new.model_dump(), source="page")
    if fact.status == "quarantined":
        raise RefusedRequest(409, f"It {WHY[fact.held]}: it waits under Waiting until you release it.")
    # The list as it is without a filter: a new fact that a filter hides would seem to be lost.
    said = "This was known already." if fact.id in known else "Added."
    return await _list(asked, said, wanted=Filter.model_validate({}))


@pages.answers("GET fact")
async def show_fact(asked: PageRequest, template: str = "fact_row.html", mine: FactEdit | None = None) -> Response:
    """Show one fact as it is, or with another template."""
    fact, confirmed = await asked.facts.aget(asked.one("id")), await asked.run(read_confirmations(asked.owner))
    return asked.show(template, "facts", fact=fact, confirmed=confirmed, mine=mine)


@pages.answers("GET fact-edit")
async def show_form(asked: PageRequest) -> Response:
    """Show the form that changes a fact."""
    return await show_fact(asked, "fact_edit.html")


@pages.answers("POST fact-save")
async def save_fact(asked: PageRequest) -> Response:
    """Change a fact; what it said before goes to its history. Where it was changed meanwhile, show both texts."""
    edit = asked.fields(FactEdit)
    try:
        await asked.facts.aupdate(asked.one("id"), **edit.model_dump(exclude={"status"}), source="page")
    except FactChanged:
        return await show_fact(asked, "fact_edit.html", mine=edit)
    return await (show_fact(asked) if asked.is_fragment else _list(asked, "Saved.", wanted=Filter.model_validate({})))


@pages.answers("POST facts-delete")
async def delete_facts(asked: PageRequest) -> Response:
    """Stop using those that are chosen, or all that the filter finds, or one, from its row; one undo brings it back."""
    chosen = await _chosen(asked)
    if len(chosen) > 1:
        asked.ask(f"Delete {len(chosen)} facts?")
    at = await asked.facts.aretire(*(fact.id for fact in chosen))
    if asked.is_fragment and asked.one("row"):
        return asked.show("fact_gone.html", "facts", fact=chosen[0], at=at)
    return await _list(asked, f"{len(chosen)} deleted.", at)


@pages.answers("POST facts-export")
async def export_facts(asked: PageRequest) -> Response:
    """Give those that are chosen, or all that the filter finds, as an export that an import takes."""
    lines = "".join(fact_lines(asked.owner, await _chosen(asked), asked.now))
    name = {"Content-Disposition": 'attachment; filename="palimpsest-facts.jsonl"'}
    return Response(lines.encode("utf-8", "replace"), media_type=JSON_LINES, headers={**HEADERS, **name})


async def _chosen(asked: PageRequest) -> Sequence[Fact]:
    """Return the facts whose boxes are ticked; with `all`, all that the filter admits, on whatever page."""
    everything = await asked.facts.alist()
    ids = set(asked.all("id"))
    if asked.one("all"):
        ids = {fact.id for fact in await _admitted(asked, asked.fields(Filter), everything)}
    if chosen := [fact for fact in everything if fact.id in ids]:
        return chosen
    raise RefusedRequest(422, "None is chosen that is there: choose a fact first.")


@pages.answers("POST facts-undo")
async def undo_change(asked: PageRequest) -> Response:
    """Take a change back, by its time; one fact comes back in its own place."""
    done = await asked.facts.aundo(asked.one("at"))
    if done is None:
        raise RefusedRequest(409, "There is nothing to undo any more: the facts have changed since.")
    if not asked.is_fragment:  # a reload would send the form again, and undo the undo
        return RedirectResponse(address(asked.request, "facts"), 303, HEADERS)
    if asked.one("id") in [fact.id for fact in done.restored]:
        return await show_fact(asked)
    said = f"{len(done.restored)} restored." if done.restored else "Taken back: memory is as it was before."
    answer = await _list(asked, said)
    if asked.one("card"):  # beside the chat
        answer.headers["HX-Trigger"] = "facts-changed"
    return answer


@pages.answers("GET fact-history")
async def show_history(asked: PageRequest) -> Response:
    """Show what a fact said before, and when it was said again."""
    fact_id = asked.one("id")
    said = await asked.facts.ahistory(fact_id)
    try:
        again = (await asked.facts.aconfirmations(fact_id)).said
    except FactNotFound:  # it is history itself
        again = ()
    return asked.show("fact_history.html", "facts", revisions=said[::-1], again=again[::-1])


@pages.answers("GET source")
async def show_source(asked: PageRequest) -> Response:
    """Show what was said where a fact comes from, as the journal has it."""
    thread, marked = asked.one("thread"), set(asked.one("messages").split(","))
    journal = await asked.run(read_journal(asked.owner, asked.control.epoch))
    entries = [each for each in journal if each.thread_id == thread]
    places = [place for place, each in enumerate(entries) if marked & {said.id for said in each.messages}]
    # The exchange itself, and the one before it, which it may answer to.
    near = entries[max(places[0] - 1, 0) : places[0] + 1] if places else []
    return asked.show("source.html", "facts", entries=near, marked=marked, thread=thread)
