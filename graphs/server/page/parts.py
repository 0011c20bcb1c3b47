"""The page's other parts: profile, journal, preview, switches and all data; and what stands beside the chat."""

from collections.abc import AsyncIterator
from datetime import UTC
from itertools import groupby

from starlette.responses import Response

from graphs.server.api import overview, profile
from graphs.server.api.archive import take_lines
from graphs.server.api.guard import RefusedRequest
from graphs.server.api.journal import known_of
from graphs.server.api.preview import NewThread, preview_of
from graphs.server.page.pages import PageRequest, PageRoutes
from graphs.server.page.rendering import NO_PAGE
from memory.facts.profile import MAX_SECTION_CHARS
from memory.facts.rows import read_fact_set
from memory.journal.journal import read_journal_entries
from memory.updates.receipts import read_receipts

pages = PageRoutes()

SECTIONS = {
    "user.topOfMind": ("On your mind", "What you are busy with these weeks"),
    "user.work": ("Work", "What you do, with whom, and with which tools"),
    "user.personal": ("Personal", "Who you are besides: family, home, what you like"),
    "history.recent": ("Lately", "What the last weeks' conversations were about"),
    "history.earlier": ("Before", "What the months before were about"),
    "history.background": ("Long ago", "What stays true of earlier times"),
}
"""Title of each section of the profile, and what it is for."""
_DAYS = 7
_NAMED = 10  # of what a reply drew on
_TOLD = 5  # refused lines of an import
_NO_EXPORT = "This is no export. Take all of a file that “Export everything” gave, its first line too."


@pages.answers("GET profile")
async def show_profile(asked: PageRequest) -> Response:
    """Show the profile's sections, each as a form."""
    texts = (await profile.get_profile(asked)).sections
    return await asked.show("profile.html", "profile", sections=SECTIONS, texts=texts, longest=MAX_SECTION_CHARS)


@pages.answers("POST profile-save")
async def save_section(asked: PageRequest) -> Response:
    """Write a section; without a text, empty it."""
    section = asked.one("section")
    if asked.one("text").strip():
        await profile.put_section(asked, section, asked.fields(profile.SectionText))
    else:
        await profile.delete_section(asked, section)
    return asked.lead("profile", "saved")


@pages.answers("GET chat")
async def show_chat(asked: PageRequest) -> Response:
    """Show nothing beside the chat."""
    return await asked.show("chat.html", "chat")


@pages.answers("GET journal")
async def show_journal(asked: PageRequest) -> Response:
    """Show what was said, the newest days first."""
    until = asked.one("until")
    known = await known_of(asked)
    lines = [line for line in known.lines() if not until or line.entry.day <= until]
    days = [(day, list(each)) for day, each in groupby(lines, key=lambda line: line.entry.day)][::-1]
    older = days[_DAYS][0] if len(days) > _DAYS else ""
    zone = asked.control.zone or UTC
    return await asked.show("journal.html", "journal", known, days=days[:_DAYS], older=older, until=until, zone=zone)


@pages.answers("GET preview")
@pages.answers("POST preview")
async def show_preview(asked: PageRequest) -> Response:
    """Show what a new thread that begins with the form's message, else with a greeting, would see."""
    said = asked.one("text").strip()
    message = NewThread.model_validate({"message": said} if said else {}).message
    return await asked.show("preview.html", "preview", preview=await preview_of(asked, message), message=message)


@pages.answers("GET learned")
async def show_learned(asked: PageRequest) -> Response:
    """Show what memory learned of a conversation, what became of it, and what can be done about it."""
    done = await asked.run(read_receipts(asked.owner))
    here = [each for each in done if each.thread_id == asked.one("thread")]
    # Those that no longer hold as they said it last.
    every = (await asked.run(read_fact_set(asked.owner))).every if here else ()
    facts = {fact.id: fact for fact in every}
    answer = await asked.show("learned.html", "chat", updates=here, facts=facts, waiting=0)
    answer.headers["X-Last"] = done[-1].time if done else ""
    answer.headers["X-Learning"] = str(asked.control.learning and asked.config.enabled)
    return answer


@pages.answers("POST sources")
async def show_sources(asked: PageRequest) -> Response:
    """Show what of memory a message needed, as it is now; of the rest that its model was shown, how much it was."""
    wanted, profiled, recalled = (
        [*filter(None, asked.one(name).split(","))] for name in ("facts", "profile", "recalled")
    )
    message = asked.one("message")
    there = await asked.facts.alist()
    entries = await asked.run(read_journal_entries(asked.owner, recalled))
    facts = [fact for fact in await asked.find(message, there) if fact.id in wanted][:_NAMED]
    named = [*facts, *entries][:_NAMED]
    return await asked.show(
        "sources.html", "chat", waiting=0, facts=facts, entries=named[len(facts) :],
        others=sum(fact.id in wanted for fact in there) + len(profiled) + len(entries) - len(named),
    )  # fmt: skip


@pages.answers("GET data")
async def show_data(asked: PageRequest, **done: str) -> Response:
    """Show the switches, export and import, and what erasing everything takes."""
    known, is_asked = await known_of(asked), asked.one("all")
    seen = await overview.overview_of(asked, known.facts)
    return await asked.show("data.html", "data", known, seen=seen, no_export=_NO_EXPORT, is_asked=is_asked, **done)


@pages.answers("POST switch")
async def switch(asked: PageRequest) -> Response:
    """Pause learning or go on; use memory or do not."""
    if learning := asked.one("learning"):
        await overview.put_learning(asked, overview.LearningChoice(learning=learning == "on"))
    if use := asked.one("use"):
        await overview.put_use(asked, overview.UseChoice(use=use == "on"))
    return asked.lead("data")


@pages.answers("POST import")
async def take_file_in(asked: PageRequest) -> Response:
    """Take an export in that somebody pasted; a file goes to the memory API itself, whatever its size."""

    async def lines() -> AsyncIterator[bytes]:
        for line in asked.one("document").encode("utf-8", "replace").splitlines():
            yield line

    try:
        done = await take_lines(asked, lines())
    except ValueError:  # it does not begin as one
        raise RefusedRequest(422, _NO_EXPORT) from None
    said = f"Taken in: {len(done.created)} new facts; {done.known} were known already, {len(done.refused)} refused."
    said += "".join(f" Line {each.line}: {each.reason.replace('_', ' ')}." for each in done.refused[:_TOLD])
    return await show_data(asked, said=said)


@pages.answers("GET {unknown}")
async def show_nothing(_: PageRequest) -> Response:
    """Refuse an address that leads to no part."""
    raise RefusedRequest(404, NO_PAGE)
