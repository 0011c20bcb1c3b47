"""What stands beside the chat: what a reply drew on, and what memory learned since."""

from starlette.responses import Response

from graphs.server.api.profile import get_profile
from graphs.server.page.pages import PageRequest, PageRoutes
from graphs.server.page.parts import SECTIONS, facts_named
from memory.journal.journal import read_entries
from memory.updates.receipts import read_receipts

pages = PageRoutes()


def _listed_ids(text: str) -> list[str]:
    return [each for each in text.split(",") if each]


@pages.get("sources")
async def show_sources(asked: PageRequest) -> Response:
    """Show what a reply drew on, as it is now: what is gone since is not told."""
    call = asked.call
    wanted = _listed_ids(asked.one("facts"))
    there = {fact.id: fact for fact in await call.facts.alist()}
    texts = (await get_profile(call)).sections
    return asked.show(
        "sources.html", "facts",
        facts=[there[each] for each in wanted if each in there],
        gone=sum(each not in there for each in wanted),
        sections=[(SECTIONS[each], texts[each]) for each in _listed_ids(asked.one("profile")) if each in texts],
        entries=await call.run(read_entries(call.owner, asked.control.epoch, _listed_ids(asked.one("recalled")))),
    )  # fmt: skip


@pages.get("learned")
async def show_learned(asked: PageRequest) -> Response:
    """Show what memory learned after a time, with the undo of each update; nothing where that is nothing."""
    since = asked.one("since")
    done = await asked.call.run(read_receipts(asked.call.owner, asked.control.epoch, since))
    facts = await facts_named(asked, done) if done else {}
    answer = asked.show("learned.html", "facts", updates=done, facts=facts)
    answer.headers["X-Since"] = done[-1].time if done else since
    return answer
