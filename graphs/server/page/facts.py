"""Facts on the page: find, add, edit, pin, delete and undo one or many, their history, and where they come from."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field
from starlette.responses import Response

from graphs.server.api.archive import JSON_LINES
from graphs.server.api.facts import FactEdit, NewFact, unconfirmed
from graphs.server.api.guard import RefusedRequest
from graphs.server.api.routing import StrictModel
from graphs.server.page.pages import PageRequest, PageRoutes
from graphs.server.page.rendering import HEADERS
from memory.archive.exporting import fact_lines
from memory.config import CATEGORIES, Category
from memory.control import LEARNING_KEY, USE_KEY, learning_in, use_in
from memory.effects import read_many
from memory.facts.confirmations import read_counts
from memory.facts.fact import Fact, FactChanged, FactNotFound
from memory.journal.entry import JournalEntry
from memory.journal.journal import read_journal

pages = PageRoutes()

PAGE_SIZE = 100
UNCONFIRMED_DAYS = 180
SORTS = {"strength": "strongest first", "newest": "newest first", "oldest": "oldest first"}
Sort = Literal["strength", "newest", "oldest"]


class Filter(StrictModel):
    """Which facts to show."""

    text: str = Field("", max_length=1000)
    category: Category | None = None
    since: str = Field("", pattern=r"^(\d{4}-\d{2}-\d{2})?$")
    until: str = Field("", pattern=r"^(\d{4}-\d{2}-\d{2})?$")
    unconfirmed: bool = False
    sort: Sort = "strength"
    offset: int = Field(0, ge=0, le=1_000_000)

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves any fact out."""
        return bool(self.text or self.category or self.since or self.until or self.unconfirmed)

    @property
    def address(self) -> dict[str, object]:
        """What of it stands in an address: not what is searched for, because servers log those."""
        return self.model_dump(exclude={"text"}, exclude_defaults=True)

    def admits(self, fact: Fact) -> bool:
        """Say whether a fact is of the category and the days; when it was confirmed it does not say."""
        day = fact.created_at[:10]
        return self.category in (None, fact.category) and self.since <= day and (not self.until or day <= self.until)


async def found(asked: PageRequest, wanted: Filter) -> dict[str, object]:
    """Return the facts that a filter admits, one page of them, and what is shown beside each."""
    everything = await asked.facts.alist()
    facts = await _admitted(asked, wanted, everything)
    if wanted.sort != "strength":  # by which they stand already, or, where something is searched, by how well they fit
        facts.sort(key=lambda fact: (fact.created_at, fact.id), reverse=wanted.sort == "newest")
    # Of a list that has become shorter, its last page.
    wanted = wanted.model_copy(update={"offset": min(wanted.offset, max(len(facts) - 1, 0) // PAGE_SIZE * PAGE_SIZE)})
    learning, use = await asked.call.run(read_many(asked.call.owner.control, [LEARNING_KEY, USE_KEY]))
    return {
        "wanted": wanted,
        "facts": facts[wanted.offset : wanted.offset + PAGE_SIZE],
        "total": len(facts),
        "of_all": len(everything),
        "confirmed": await asked.call.run(read_counts(asked.call.owner)),
        "is_learning": learning_in(learning) and asked.call.service.settings.memory.enabled,
        "is_used": use_in(use),
    }


async def _admitted(asked: PageRequest, wanted: Filter, facts: Sequence[Fact]) -> list[Fact]:
    """Return those of the facts in use that a filter admits; what fits its text best stands first."""
    if wanted.text:
        question = await asked.call.service.embed(wanted.text)
        facts = await asked.facts.asearch(wanted.text, None, question=question, only_asked=True)
    admitted = [fact for fact in facts if wanted.admits(fact)]
    return await unconfirmed(asked.call, admitted, UNCONFIRMED_DAYS) if wanted.unconfirmed else admitted


async def _list(
    asked: PageRequest, said: str = "", undo: str = "", *, whole: bool = False, afresh: bool = False
) -> Response:
    template = "facts_list.html" if asked.is_fragment and not whole else "facts.html"
    wanted = Filter.model_validate({}) if afresh else asked.fields(Filter)
    return asked.show(
        template, "facts", found=await found(asked, wanted), categories=CATEGORIES, sorts=SORTS, page_size=PAGE_SIZE,
        said=said, undo=undo, afresh=afresh,
    )  # fmt: skip


@pages.get("facts")
async def show_facts(asked: PageRequest) -> Response:
    """Show all facts, and the form that finds some."""
    deleted = asked.query.get("deleted", "")
    said = "Deleted." if deleted else "Saved." if "saved" in asked.query else ""
    return await _list(asked, said, deleted, whole=True)


@pages.post("facts-list")
async def list_facts(asked: PageRequest) -> Response:
    """Show the facts that a filter admits."""
    return await _list(asked)


@pages.post("fact-add")
async def add_fact(asked: PageRequest) -> Response:
    """Add a fact; one that is known already stays as it is."""
    new = asked.fields(NewFact)
    facts = asked.facts
    known = {fact.id for fact in await facts.alist(None)}
    fact = await facts.acreate(new.content, new.category, new.confidence, source="page", pinned=new.pinned)
    if fact.status == "quarantined":
        why = "may hold a secret" if fact.held == "secret" else "reads as an order to the assistant"
        raise RefusedRequest(409, f"It {why}: it waits under Waiting until you release it.")
    if not asked.is_fragment:
        return asked.go("facts", saved=1)
    # The list as it is without a filter: a new fact that a filter hides would seem to be lost.
    return await _list(asked, said="This was known already." if fact.id in known else "Added.", afresh=True)


async def _row(asked: PageRequest, fact_id: str, template: str = "fact_row.html") -> Response:
    fact = await asked.facts.aget(fact_id)
    counts = await asked.call.run(read_counts(asked.call.owner))
    again = counts.get(fact_id, 0)
    return asked.show(template, "facts", fact=fact, again=again, categories=CATEGORIES, mine=None)


@pages.get("fact")
async def show_fact(asked: PageRequest) -> Response:
    """Show one fact as it is."""
    return await _row(asked, asked.one("id"))


@pages.get("fact-edit")
async def edit_fact(asked: PageRequest) -> Response:
    """Show the form that changes a fact."""
    return await _row(asked, asked.one("id"), "fact_edit.html")


@pages.post("fact-save")
async def save_fact(asked: PageRequest) -> Response:
    """Change a fact; what it said before goes to its history. Where it was changed meanwhile, show both texts."""
    edit = asked.fields(FactEdit)
    try:
        await asked.facts.aupdate(
            asked.one("id"), content=edit.content, category=edit.category, confidence=edit.confidence,
            pinned=edit.pinned, source="page", revision=edit.revision,
        )  # fmt: skip
    except FactChanged as changed:
        return asked.show("fact_edit.html", "facts", fact=changed.fact, mine=edit, categories=CATEGORIES)
    return await _row(asked, asked.one("id")) if asked.is_fragment else asked.go("facts", saved=1)


@pages.post("fact-delete")
async def delete_fact(asked: PageRequest) -> Response:
    """Stop using a fact; the answer offers to undo that."""
    fact_id = asked.one("id")
    fact = await asked.facts.aget(fact_id)
    at = await asked.facts.aretire(fact_id)
    if not asked.is_fragment:
        return asked.go("facts", deleted=at)
    return asked.show("fact_gone.html", "facts", fact=fact, at=at)


@pages.post("facts-delete")
async def delete_facts(asked: PageRequest) -> Response:
    """Stop using those that are chosen, or all that the filter finds: one change, which one undo takes back."""
    chosen = await _chosen(asked)
    if len(chosen) > 1:
        asked.ask(f"Delete {len(chosen)} facts?", "facts")
    at = await asked.facts.aretire(*(fact.id for fact in chosen))
    if not asked.is_fragment:
        return asked.go("facts", deleted=at)
    return await _list(asked, said=f"{len(chosen)} deleted.", undo=at)


@pages.post("facts-export")
async def export_facts(asked: PageRequest) -> Response:
    """Give those that are chosen, or all that the filter finds, as an export that an import takes."""
    lines = "".join(fact_lines(asked.call.owner, await _chosen(asked), asked.now))
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
    raise RefusedRequest(422, "Choose at least one fact first.")


@pages.post("facts-undo")
async def undo(asked: PageRequest) -> Response:
    """Take a change back, by its time; one fact comes back in its own place."""
    done = await asked.facts.aundo(asked.one("at"))
    if done is None:
        raise RefusedRequest(409, "There is nothing to undo any more: the facts have changed since.")
    if not asked.is_fragment:
        return asked.go("facts", saved=1)
    if asked.one("row") and len(done.restored) == 1:
        return await _row(asked, done.restored[0].id)
    return await _list(asked, said=f"{len(done.restored)} restored." if done.restored else "Taken back.")


@pages.get("fact-history")
async def history(asked: PageRequest) -> Response:
    """Show what a fact said before, and when it was said again."""
    fact_id, facts = asked.one("id"), asked.facts
    said = await facts.ahistory(fact_id)
    try:
        again = (await facts.aconfirmations(fact_id)).said
    except FactNotFound:  # it is history itself
        again = ()
    return asked.show("fact_history.html", "facts", revisions=said[::-1], again=again[::-1])


@pages.get("source")
async def source(asked: PageRequest) -> Response:
    """Show what was said where a fact comes from, as the journal has it."""
    thread, messages = asked.one("thread"), set(asked.one("messages").split(","))
    epoch = await asked.epoch()
    entries = [each for each in await asked.call.run(read_journal(asked.call.owner, epoch)) if each.thread_id == thread]
    at = next((place for place, each in enumerate(entries) if _holds(each, messages)), None)
    # The exchange itself, and the one before it, which it may answer to.
    near = [] if at is None else entries[max(at - 1, 0) : at + 1]
    return asked.show("source.html", "facts", entries=near, marked=messages, thread=thread)


def _holds(entry: JournalEntry, messages: set[str]) -> bool:
    return any(message.id in messages for message in entry.messages)
