"""The page's other parts: profile, journal by day, what waits or failed, the switches, and all data."""

from itertools import groupby
from typing import Any

from starlette.responses import Response

from graphs.server.api import overview, profile, updates
from graphs.server.api.erase import Erasure, erase_everything
from graphs.server.api.facts import facts_of
from graphs.server.api.guard import invalid
from graphs.server.api.routing import Empty
from graphs.server.page.held import held_facts
from graphs.server.page.pages import Asked, Pages
from memory.archive.importing import Importer
from memory.archive.json_parts import PartsReader
from memory.control import read_epoch
from memory.facts.profile import MAX_SECTION_CHARS
from memory.journal.journal import read_journal
from memory.outbox.receipts import read_receipts

pages = Pages()

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


@pages.get("profile")
async def show_profile(asked: Asked) -> Response:
    """Show the profile's sections, each as a form."""
    sections = (await profile.get_profile(asked.call)).sections
    return asked.show("profile.html", "profile", titles=SECTIONS, texts=sections, longest=MAX_SECTION_CHARS, said="")


@pages.post("profile-save")
async def save_section(asked: Asked) -> Response:
    """Write a section; without a text, empty it."""
    section, text = asked.one("section"), asked.one("text").strip()
    if text:
        await profile.put_section(asked.call, section, asked.fields(profile.SectionText, "text"))
    else:
        await profile.delete_section(asked.call, section)
    if not asked.is_fragment:
        return asked.go("profile")
    sections = (await profile.get_profile(asked.call)).sections
    said = f"{SECTIONS.get(section, section)}: saved."
    return asked.show("profile.html", "profile", titles=SECTIONS, texts=sections, longest=MAX_SECTION_CHARS, said=said)


@pages.get("journal")
async def show_journal(asked: Asked) -> Response:
    """Show what was said, the newest days first; so many days at once."""
    until = asked.one("until")
    epoch = await asked.call.run(read_epoch(asked.call.owner))
    journal = await asked.call.run(read_journal(asked.call.owner, epoch))
    entries = [entry for entry in journal if not until or entry.day <= until]
    days = [(day, list(each)) for day, each in groupby(entries, key=lambda entry: entry.day)][::-1]
    older = days[_DAYS][0] if len(days) > _DAYS else ""
    return asked.show("journal.html", "journal", days=days[:_DAYS], older=older, until=until)


async def _waiting(asked: Asked, template: str, **more: Any) -> Response:
    call = asked.call
    epoch = await call.run(read_epoch(call.owner))
    done = await call.run(read_receipts(call.owner, epoch, ""))
    contents = {fact.id: fact.content for fact in await facts_of(call).alist(None)}
    entries = [updates.view_of(entry) for entry in await updates.entries_of(call)]
    return asked.show(
        template, "updates", pending=[each for each in entries if each.state != "dead"],
        dead=[each for each in entries if each.state == "dead"], contents=contents,
        done=[receipt.to_json() for receipt in done[::-1][:_LAST_UPDATES]], seen=await overview.overview(call), **more,
    )  # fmt: skip


@pages.get("updates")
async def show_updates(asked: Asked) -> Response:
    """Show what waits for a person, what waits to be learned, what failed, and what was learned last."""
    return await _waiting(asked, "updates.html", **await held_facts(asked), said="", undo="")


@pages.get("updates-list")
async def list_updates(asked: Asked) -> Response:
    """Show the same without its frame: the page asks for it again and again."""
    return await _waiting(asked, "updates_list.html")


@pages.post("update-retry")
async def retry_update(asked: Asked) -> Response:
    """Give a dead update another chance."""
    await updates.retry_update(asked.call, asked.one("key"), Empty())
    return await _waiting(asked, "updates_list.html") if asked.is_fragment else asked.go("updates")


@pages.post("update-discard")
async def discard_update(asked: Asked) -> Response:
    """Throw a dead update away."""
    await updates.discard_update(asked.call, asked.one("key"))
    return await _waiting(asked, "updates_list.html") if asked.is_fragment else asked.go("updates")


async def _data(asked: Asked, said: str = "", status: int = 200) -> Response:
    return asked.show("data.html", "data", status, seen=await overview.overview(asked.call), said=said)


@pages.get("data")
async def show_data(asked: Asked) -> Response:
    """Show the switches, export and import, and the erase of everything."""
    return await _data(asked)


@pages.post("switch")
async def switch(asked: Asked) -> Response:
    """Pause learning or go on; use memory or do not."""
    if learning := asked.one("learning"):
        await overview.put_learning(asked.call, overview.LearningChoice(learning=learning == "on"))
    if use := asked.one("use"):
        await overview.put_use(asked.call, overview.UseChoice(use=use == "on"))
    return await _data(asked) if asked.is_fragment else asked.go("data")


@pages.post("import")
async def take_in(asked: Asked) -> Response:
    """Take a document in that somebody pasted; a file goes to the memory API itself, whatever its size."""
    importer, reader = Importer(asked.call.owner, asked.call.service.settings.memory, asked.now), PartsReader()
    for part in (*reader.feed(asked.one("document").encode()), *reader.close()):
        importer.take(part)
    done = await asked.call.run(importer.finish())
    for thread_id in importer.waiting_threads:
        asked.call.service.wake(asked.call.owner, thread_id)
    said = f"Taken in: {len(done.created)} new facts; {done.known} were known already, {len(done.rejected)} refused."
    return await _data(asked, said=said)


@pages.get("erase")
async def ask_erase(asked: Asked) -> Response:
    """Say what an erase of everything takes along, before it is done."""
    threads = [each async for each in asked.call.service.threads.all_of(asked.call.user_id)]
    crons = [each async for each, _ in asked.call.service.crons.all_of(asked.call.user_id)]
    return asked.show(
        "erase.html", "data", seen=await overview.overview(asked.call), threads=len(threads), crons=len(crons)
    )


@pages.post("erase-everything")
async def erase_all(asked: Asked) -> Response:
    """Erase everything, if the word was typed."""
    if asked.one("erase").strip().casefold() != "everything":
        raise invalid("erase", "type the word everything")
    gone = await erase_everything(asked.call, Erasure(erase="everything"))
    said = f"Erased: {gone.items} items of memory and {gone.threads} conversations. {gone.note}"
    answer = await _data(asked, said=said.strip())
    answer.headers["HX-Trigger"] = "erased"  # the chat beside it still shows words that are gone
    return answer
