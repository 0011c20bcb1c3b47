"""Facts on the page: find, add, edit, pin, delete; their history, where they come from, and the bin."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field
from starlette.responses import Response

from graphs.server.api.archive import JSON_LINES
from graphs.server.api.facts import FactEdit, NewFact, unconfirmed
from graphs.server.api.guard import RefusedRequest
from graphs.server.api.journal import Day, known_of
from graphs.server.api.routing import PageQuery, StrictModel
from graphs.server.page.pages import PageRequest, PageRoutes
from graphs.server.page.rendering import HEADERS, WHY
from memory.archive.entries import fact_lines
from memory.config import Category
from memory.facts.fact import Fact, FactChanged
from memory.facts.fact_set import FactSet
from memory.facts.rows import read_fact_set
from memory.journal.entry import JournalEntry
from memory.message import day_of

pages = PageRoutes()

PAGE_SIZE = 100
UNCONFIRMED_DAYS = 180
OPENED = ("edit", "history", "source")
"""What may be open in rows of the list, by their facts' ids."""


class Filter(StrictModel):
    """Which facts to show. No form of a fact has a field of these names."""

    text: str = Field("", max_length=1000)
    kind: Category | None = None
    since: Day = ""
    until: Day = ""
    unconfirmed: bool = False
    sort: Literal["", "newest", "oldest"] = ""
    offset: int = Field(0, ge=0, le=1_000_000)


def seen_of(asked: PageRequest, *closed: str) -> dict[str, Any]:
    """Return what the address of the list says, but for the rows of one fact."""
    seen = asked.fields(Filter).model_dump(exclude={"text"}, exclude_defaults=True)
    return {**seen, **{name: [each for each in asked.all(name) if each not in closed] for name in OPENED}}


async def _admitted(asked: PageRequest, wanted: Filter, there: FactSet) -> list[Fact]:
    """Return those of the facts in use that a filter admits, in its order."""
    facts = there.listed()
    if wanted.text:
        facts = await asked.find(wanted.text, facts)
    admitted = [
        fact for fact in facts
        if wanted.kind in (None, fact.category)
        and wanted.since <= day_of(fact.created_at, there.control.zone) <= (wanted.until or "9")
    ]  # fmt: skip
    if wanted.unconfirmed:
        admitted = unconfirmed(asked, admitted, there.said, UNCONFIRMED_DAYS)
    if wanted.sort:  # else by strength, or, where something is searched, by how well they fit
        admitted.sort(key=lambda fact: (fact.created_at, fact.id), reverse=wanted.sort == "newest")
    return admitted


@pages.answers("GET facts")
@pages.answers("POST facts")
async def show_facts(asked: PageRequest, mine: Mapping[str, FactEdit] | None = None) -> Response:
    """Show the facts that a filter admits, with what is open in their rows; `mine` is what came too late, by id."""
    wanted, state = asked.fields(Filter), seen_of(asked)
    known = await known_of(asked)
    there, every = known.facts, known.facts.listed()
    facts = await _admitted(asked, wanted, there)
    # Of a list that has become shorter, its last page; before it what is open, and not on this page by now.
    offset = min(wanted.offset, max(len(facts) - 1, 0) // PAGE_SIZE * PAGE_SIZE)
    page, opened = facts[offset : offset + PAGE_SIZE], {each for name in OPENED for each in state[name]}
    shown = [*(fact for fact in every if fact.id in opened and fact not in page), *page]
    return await asked.show(
        "facts.html", "facts", known,
        wanted=wanted.model_copy(update={"offset": offset}), state=state, facts=shown, mine=mine or {},
        total=len(facts), of_all=len(every), page_size=PAGE_SIZE,
        confirmed=there.said,
        is_learning=asked.control.learning and asked.config.enabled, is_used=asked.control.use,
        said_at=said_at(known.journal, [fact for fact in shown if fact.id in state["source"]]),
        revisions={fact.id: there.revisions_of(fact.id) for fact in shown if fact.id in state["history"]},
    )  # fmt: skip


def said_at(journal: Sequence[JournalEntry], facts: Sequence[Fact]) -> dict[str, list[JournalEntry]]:
    """Return where facts were said: the exchange, and the one before, which it may answer to."""
    found = {}
    for fact in facts:
        entries, marked = [each for each in journal if each.thread_id == fact.thread_id], {*fact.message_ids}
        told = (place for place, each in enumerate(entries) if marked & {said.id for said in each.messages})
        place = next(told, -1)
        found[fact.id] = entries[max(place - 1, 0) : place + 1]
    return found


@pages.answers("POST fact-add")
async def add_from_form(asked: PageRequest) -> Response:
    """Add a fact; a known one only takes over pin and end."""
    new = asked.fields(NewFact)
    known = {fact.id for fact in await asked.facts.alist(None)}
    fact = await asked.facts.acreate(**new.model_dump(), source="page")
    if fact.status == "quarantined":
        raise RefusedRequest(409, f"It {WHY[fact.held]}: it waits under Waiting until you release it.")
    # The list as it is without a filter: a new fact that a filter hides would seem to be lost.
    opened = {name: asked.all(name) for name in OPENED}
    return asked.lead("facts", "known" if fact.id in known else "added", **opened)


@pages.answers("POST fact-save")
async def save_fact(asked: PageRequest) -> Response:
    """Change a fact. Where it was changed meanwhile, show both texts."""
    edit, fact_id = asked.fields(FactEdit), asked.one("id")
    try:
        await asked.facts.aupdate(fact_id, **edit.model_dump(exclude={"status"}), source="page")
    except FactChanged:
        return await show_facts(asked, mine={fact_id: edit})
    is_edit = edit.content is not None
    return asked.lead("facts", "saved" if is_edit else "", **seen_of(asked, *[fact_id] * is_edit))


@pages.answers("POST facts-delete")
async def delete_facts(asked: PageRequest) -> Response:
    """Stop using those that are chosen; one undo brings them back."""
    chosen = await _chosen(asked)
    if len(chosen) > 1:
        asked.ask(f"Delete {len(chosen)} facts?")
    at = await asked.facts.aretire(*(fact.id for fact in chosen))
    return asked.lead("facts", "deleted", n=len(chosen), at=at, **seen_of(asked, *(fact.id for fact in chosen)))


@pages.answers("POST facts-export")
async def export_facts(asked: PageRequest) -> Response:
    """Give those that are chosen as an export that an import takes."""
    lines = "".join(fact_lines(asked.owner, await _chosen(asked), asked.now))
    headers = HEADERS | {"Content-Disposition": 'attachment; filename="palimpsest-facts.jsonl"'}
    return Response(lines.encode("utf-8", "replace"), media_type=JSON_LINES, headers=headers)


async def _chosen(asked: PageRequest) -> Sequence[Fact]:
    """Return the facts whose boxes are ticked; with `all`, all that the filter admits, on whatever page."""
    there = await asked.run(read_fact_set(asked.owner))
    ids = set(asked.all("id"))
    if asked.one("all"):
        ids = {fact.id for fact in await _admitted(asked, asked.fields(Filter), there)}
    if chosen := [fact for fact in there.listed() if fact.id in ids]:
        return chosen
    raise RefusedRequest(422, "None is chosen that is there: choose a fact first.")


@pages.answers("POST facts-undo")
async def undo_change(asked: PageRequest) -> Response:
    """Take a change back, by its time."""
    done = await asked.facts.aundo(asked.one("at"))
    if done is None:
        raise RefusedRequest(409, "There is nothing to undo any more: the facts have changed since.")
    count = len(done.restored)
    return asked.lead("facts", "restored" if count else "undone", n=count, **seen_of(asked))


@pages.answers("GET bin")
async def show_bin(asked: PageRequest) -> Response:
    """Show what is history, the newest first."""
    known = await known_of(asked)
    gone = sorted(known.facts.gone(), key=lambda fact: (fact.updated_at, fact.id), reverse=True)
    asked_for = PageQuery.model_validate({"limit": PAGE_SIZE, "offset": asked.one("offset") or 0})
    return await asked.show(
        "bin.html", "bin", known, facts=asked_for.cut(gone), total=len(gone), offset=asked_for.offset,
        page_size=PAGE_SIZE, there=known.facts.rows,
    )  # fmt: skip


@pages.answers("POST fact-back")
async def bring_back(asked: PageRequest) -> Response:
    """Bring a fact back from the bin."""
    await asked.facts.arestore(asked.one("id"))
    return asked.lead("bin", "back")
