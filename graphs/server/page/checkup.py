"""The check-up on the page: what in the facts may want a look, each with its remedy; what a new thread would see."""

from typing import Any, Final

from starlette.responses import Response

from graphs.server.api.checkup import MOST, NewThread, findings_of, preview_of
from graphs.server.api.erase import FactErasure, erase_fact
from graphs.server.api.facts import facts_of
from graphs.server.api.guard import RefusedRequest
from graphs.server.page.pages import PageRequest, PageRoutes
from memory.facts.checkup import KINDS, STALE_DAYS
from memory.facts.fact import timestamp
from memory.facts.merging import merge

pages = PageRoutes()

TITLES: Final = {
    "secret": ("Secrets", "Memory keeps no keys or card numbers. No prompt shows these."),
    "order": ("Orders", "These read as orders to the assistant. No prompt shows them."),
    "over": ("Over", "The day until which these hold has passed. No prompt shows them as current."),
    "contradiction": ("Contradictions", "These cannot all be true. Keep the one that is."),
    "repeat": (
        "Repeats",
        "These say nearly the same. Keep the one that says it best: it takes over where and how often they were said.",
    ),
    "stale": ("Not heard for long", f"Nobody said these again for {STALE_DAYS} days."),
}
_HELLO: Final = "Hello"


async def _shown(asked: PageRequest, message: str, said: str = "", undo: str = "") -> dict[str, Any]:
    findings = await findings_of(asked.call)
    groups = [
        (kind, *TITLES[kind], [each for each in findings if each.kind == kind])
        for kind in KINDS
        if any(each.kind == kind for each in findings)
    ]
    preview = await preview_of(asked.call, message)
    return {"groups": groups, "most": MOST, "preview": preview, "message": message, "said": said, "undo": undo}


async def _show(asked: PageRequest, said: str = "", undo: str = "") -> Response:
    # A browser without htmx gets the part as an answer to its form, as only that can offer the undo.
    return asked.show("checkup.html", "checkup", **await _shown(asked, _HELLO, said, undo))


@pages.get("checkup")
async def show_checkup(asked: PageRequest) -> Response:
    """Show what may want a look, and what a new thread would see."""
    return await _show(asked)


@pages.post("checkup-preview")
async def show_preview(asked: PageRequest) -> Response:
    """Show what a new thread that begins with a message would see."""
    message = asked.fields(NewThread, "message").message
    if not asked.is_fragment:
        return asked.show("checkup.html", "checkup", **await _shown(asked, message))
    preview = await preview_of(asked.call, message)
    return asked.show("preview.html", "checkup", preview=preview, message=message)


@pages.post("checkup-keep")
async def keep_one(asked: PageRequest) -> Response:
    """Keep one of several facts, and stop using the others: one change, which one undo takes back."""
    kept = await facts_of(asked.call).aget(asked.one("id"))
    others = [each for each in asked.all("other") if each != kept.id]
    if not others:
        raise RefusedRequest(422, "Name the facts that go.")
    at = await facts_of(asked.call).aretire(*others)
    return await _show(asked, f"Kept. {'The other one is' if len(others) == 1 else 'The others are'} deleted.", at)


@pages.post("checkup-merge")
async def merge_into_one(asked: PageRequest) -> Response:
    """Keep one of several facts that say the same, with what said the others: one change, which one undo takes back."""
    call, others = asked.call, [each for each in asked.all("other") if each != asked.one("id")]
    if not others:
        raise RefusedRequest(422, "Name the facts that are merged into it.")
    at = await call.run(
        merge(call.owner, call.service.settings.memory, asked.one("id"), others, timestamp(call.service.clock()))
    )
    return await _show(asked, f"Merged into one: it was said where {'both' if len(others) == 1 else 'all'} were.", at)


@pages.post("checkup-confirm")
async def confirm(asked: PageRequest) -> Response:
    """Note that a fact is still true, now and by the person's own word."""
    facts = facts_of(asked.call)
    fact = await facts.aget(asked.one("id"))
    if fact.status != "active":
        raise RefusedRequest(409, "This fact is not in use.")
    await facts.acreate(fact.content, fact.category, fact.confidence, source="page")
    return await _show(asked, "Noted: it is still true.")


@pages.post("checkup-delete")
async def delete(asked: PageRequest) -> Response:
    """Stop using a fact; the answer offers to undo that."""
    return await _show(asked, "Deleted.", await facts_of(asked.call).aretire(asked.one("id")))


@pages.post("checkup-undo")
async def undo(asked: PageRequest) -> Response:
    """Take a change back, by its time."""
    if await facts_of(asked.call).aundo(asked.one("at")) is None:
        raise RefusedRequest(409, "There is nothing to undo any more: the facts have changed since.")
    return await _show(asked, "Taken back.")


@pages.post("checkup-erase")
async def erase(asked: PageRequest) -> Response:
    """Erase a fact for good, once that was asked for: no undo brings it back."""
    fact = await facts_of(asked.call).aget(asked.one("id"))
    if not asked.is_fragment and asked.one("sure") != "yes":  # htmx has asked already
        return asked.show("checkup_erase.html", "checkup", fact=fact)
    done = await erase_fact(asked.call, FactErasure(fact_id=fact.id))
    return await _show(asked, f"Erased. {done.note}".strip())
