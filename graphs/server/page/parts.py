"""The page's other parts: profile, journal by day, what waits or failed, the switches, and all data."""

from collections.abc import Sequence
from datetime import UTC
from itertools import groupby
from typing import Any

from starlette.responses import Response

from graphs.server.api import overview, profile, updates
from graphs.server.api.erase import Erasure, erase_everything
from graphs.server.api.guard import RefusedRequest, invalid
from graphs.server.api.journal import journal_of
from graphs.server.api.routing import Empty
from graphs.server.page.held import held_facts
from graphs.server.page.pages import PageRequest, PageRoutes
from memory.archive.importing import Importer
from memory.facts.fact import Fact
from memory.facts.profile import MAX_SECTION_CHARS
from memory.updates.receipts import UpdateReceipt, read_receipts

pages = PageRoutes()

SECTIONS = {
    "user.topOfMind": "On your mind",
    "user.work": "Work",
    "user.personal": "Personal",
    "history.recent": "Lately",
    "history.earlier": "Before",
    "history.background": "Long ago",
}
_DAYS = 7
_LAST_UPDATES = 10
_TOLD = 5  # refused lines of an import
_NO_EXPORT = "This is no export. Take all of a file that “Export everything” gave, its first line too."


@pages.get("profile")
async def show_profile(asked: PageRequest, said: str = "") -> Response:
    """Show the profile's sections, each as a form."""
    texts = (await profile.get_profile(asked.call)).sections
    return asked.show("profile.html", "profile", titles=SECTIONS, texts=texts, longest=MAX_SECTION_CHARS, said=said)


@pages.post("profile-save")
async def save_section(asked: PageRequest) -> Response:
    """Write a section; without a text, empty it."""
    section = asked.one("section")
    if asked.one("text").strip():
        await profile.put_section(asked.call, section, asked.fields(profile.SectionText))
    else:
        await profile.delete_section(asked.call, section)
    if not asked.is_fragment:
        return asked.go("profile")
    return await show_profile(asked, f"{SECTIONS.get(section, section)}: saved.")


@pages.get("journal")
async def show_journal(asked: PageRequest) -> Response:
    """Show what was said, the newest days first; so many days at once."""
    until = asked.one("until")
    found = await journal_of(asked.call)
    lines = [line for line in found if not until or line.entry.day <= until]
    days = [(day, list(each)) for day, each in groupby(lines, key=lambda line: line.entry.day)][::-1]
    older = days[_DAYS][0] if len(days) > _DAYS else ""
    zone = asked.control.zone or UTC
    return asked.show("journal.html", "journal", days=days[:_DAYS], older=older, until=until, zone=zone)


async def facts_named(asked: PageRequest, receipts: Sequence[UpdateReceipt]) -> dict[str, Fact]:
    """Return the facts that receipts may name, by id; those that no longer hold as they said it last."""
    over = {each for receipt in receipts for each in receipt.superseded}
    gone = [*await asked.facts.alist("superseded"), *await asked.facts.alist("ended")] if over else []
    last = sorted((fact for fact in gone if fact.id in over), key=lambda fact: fact.revision)
    return {fact.id: fact for fact in (*last, *await asked.facts.alist(None))}


async def _show_waiting(asked: PageRequest, template: str, **more: Any) -> Response:
    done = (await asked.call.run(read_receipts(asked.call.owner, asked.control.epoch)))[::-1][:_LAST_UPDATES]
    entries = [updates.Update.model_validate(entry) for entry in await updates.updates_of(asked.call)]
    return asked.show(
        template, "updates", pending=[each for each in entries if each.state != "dead"],
        dead=[each for each in entries if each.state == "dead"], facts=await facts_named(asked, done),
        done=done, seen=await overview.overview(asked.call), **more,
    )  # fmt: skip


@pages.get("updates")
async def show_updates(asked: PageRequest) -> Response:
    """Show what waits for a person, what waits to be learned, what failed, and what was learned last."""
    return await _show_waiting(asked, "updates.html", **await held_facts(asked))


@pages.get("updates-list")
async def refresh_updates(asked: PageRequest) -> Response:
    """Show the same without its frame: the page asks for it again and again."""
    return await _show_waiting(asked, "updates_list.html") if asked.is_fragment else asked.go("updates")


@pages.post("update-retry")
async def retry_from_list(asked: PageRequest) -> Response:
    """Give a dead update another chance."""
    await updates.retry_update(asked.call, asked.one("key"), Empty())
    return await show_updates(asked)


@pages.post("update-discard")
async def discard_from_list(asked: PageRequest) -> Response:
    """Throw a dead update away."""
    asked.ask("Throw it away? What it holds is then never learned.")
    await updates.discard_update(asked.call, asked.one("key"))
    return await show_updates(asked)


@pages.get("data")
async def show_data(asked: PageRequest, said: str = "") -> Response:
    """Show the switches, export and import, and the erase of everything."""
    seen = await overview.overview(asked.call)
    return asked.show("data.html", "data", seen=seen, said=said, no_export=_NO_EXPORT)


@pages.post("switch")
async def switch(asked: PageRequest) -> Response:
    """Pause learning or go on; use memory or do not."""
    if learning := asked.one("learning"):
        await overview.put_learning(asked.call, overview.LearningChoice(learning=learning == "on"))
    if use := asked.one("use"):
        await overview.put_use(asked.call, overview.UseChoice(use=use == "on"))
    return await show_data(asked) if asked.is_fragment else asked.go("data")


@pages.post("import")
async def take_file_in(asked: PageRequest) -> Response:
    """Take an export in that somebody pasted; a file goes to the memory API itself, whatever its size."""
    importer = Importer(asked.call.owner, asked.call.service.settings.memory, asked.now)
    try:
        for line in asked.one("document").encode("utf-8", "replace").splitlines():
            importer.take(line)
        done = await asked.call.run(importer.finish())
    except ValueError:  # it does not begin as one
        raise RefusedRequest(422, _NO_EXPORT) from None
    for thread_id in importer.waiting_threads:
        asked.call.service.wake(asked.call.owner, thread_id)
    said = f"Taken in: {len(done.created)} new facts; {done.known} were known already, {len(done.refused)} refused."
    said += "".join(f" Line {each.line}: {each.reason.replace('_', ' ')}." for each in done.refused[:_TOLD])
    return await show_data(asked, said=said)


@pages.get("erase")
async def ask_erase(asked: PageRequest) -> Response:
    """Say what an erase of everything takes along, before it is done."""
    server, user_id = asked.call.service.threads, asked.call.user_id
    threads, crons = await server.all_of(user_id), await server.crons_of(user_id)
    return asked.show(
        "erase.html", "data", seen=await overview.overview(asked.call), threads=len(threads), crons=len(crons)
    )


@pages.post("erase-everything")
async def erase_all(asked: PageRequest) -> Response:
    """Erase everything, if the word was typed."""
    if asked.one("erase").strip().casefold() != "everything":
        raise invalid("erase", "type the word everything")
    gone = await erase_everything(asked.call, Erasure(erase="everything"))
    said = f"Erased: {gone.items} items of memory and {gone.threads} conversations. {gone.note}"
    answer = await show_data(asked, said=said.strip())
    answer.headers["HX-Trigger"] = "erased"  # the chat beside it still shows words that are gone
    return answer
