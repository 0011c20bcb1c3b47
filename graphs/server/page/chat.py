"""What stands beside the chat: what a reply drew on, and what memory learned since."""

from typing import Final

from starlette.responses import Response

from graphs.server.api.facts import facts_of
from graphs.server.api.guard import RefusedRequest
from graphs.server.api.profile import get_profile
from graphs.server.page.pages import PageRequest, PageRoutes
from graphs.server.page.parts import SECTIONS, facts_named, listed
from memory.control import read_epoch
from memory.journal.journal import read_entries
from memory.outbox.receipts import read_receipts

pages = PageRoutes()

# More than any prompt shows of memory, and no more than an address should hold.
_MOST = 200
_CHANGES: Final = (
    ("New", "created"), ("Said again", "confirmed"), ("No longer holds", "superseded"),
    ("Waits for your yes", "waiting"),
)  # fmt: skip


def _ids(text: str) -> list[str]:
    return [each for each in text.split(",") if each][:_MOST]


@pages.get("sources")
async def show_sources(asked: PageRequest) -> Response:
    """Show what a reply drew on, as it is now: what is gone since is not told."""
    call = asked.call
    wanted = _ids(asked.one("facts"))
    there = {fact.id: fact for fact in await facts_of(call).alist()}
    epoch = await call.run(read_epoch(call.owner))
    texts = (await get_profile(call)).sections
    return asked.show(
        "sources.html", "facts",
        facts=[there[each] for each in wanted if each in there],
        gone=sum(each not in there for each in wanted),
        sections=[(SECTIONS[each], texts[each]) for each in _ids(asked.one("profile")) if each in texts],
        entries=await call.run(read_entries(call.owner, epoch, _ids(asked.one("recalled")))),
    )  # fmt: skip


@pages.get("learned")
async def show_learned(asked: PageRequest) -> Response:
    """Show what memory learned after a time, with the undo of each update; nothing where that is nothing."""
    call = asked.call
    epoch = await call.run(read_epoch(call.owner))
    done = await call.run(read_receipts(call.owner, epoch, asked.one("since")))
    receipts = [each.to_json() for each in done]
    facts = await facts_named(asked, receipts)
    shown = []
    for receipt in receipts:
        changes = [
            (word, facts[fact_id])
            for word, name in _CHANGES
            for fact_id in listed(receipt.get(name))
            if fact_id in facts
        ]
        gone = sum(each not in facts for each in listed(receipt.get("superseded")))
        # All that one update wrote has one time, by which an undo finds it.
        written = [fact.updated_at for word, fact in changes if word in ("New", "No longer holds")]
        shown.append({"changes": changes, "gone": gone, "at": max(written, default="")})
    newest = str(done[-1].to_json().get("time", "")) if done else asked.one("since")
    answer = asked.show("learned.html", "facts", updates=[each for each in shown if each["changes"] or each["gone"]])
    answer.headers["X-Since"] = newest
    return answer


@pages.post("learned-undo")
async def undo_learned(asked: PageRequest) -> Response:
    """Take back what an update learned."""
    done = await facts_of(asked.call).aundo(asked.one("at"))
    if done is None:
        raise RefusedRequest(409, "There is nothing to undo any more: the facts have changed since.")
    answer = asked.show("undone.html", "facts") if asked.is_fragment else asked.go("facts")
    answer.headers["HX-Trigger"] = "facts-changed"
    return answer
