"""What waits: facts and messages for a person's yes or no; updates to be learned, or that failed."""

import json
from dataclasses import replace

from starlette.responses import Response

from graphs.server.api import updates
from graphs.server.api.approval import ApprovalChoice, approval_of, put_approval
from graphs.server.api.facts import FactEdit, edit_fact
from graphs.server.api.guard import RefusedRequest
from graphs.server.api.journal import answer, known_of
from graphs.server.api.routing import Empty
from graphs.server.page.facts import said_at
from graphs.server.page.pages import PageRequest, PageRoutes
from graphs.server.page.rendering import SAID
from memory.archive.entries import read_fact
from memory.facts.fact import HELD, Fact, to_item
from memory.facts.store import FactEffects
from memory.message import iso_time
from memory.updates.receipts import read_receipts

pages = PageRoutes()

_LAST_UPDATES = 10


@pages.answers("GET updates")
async def show_updates(asked: PageRequest, **done: object) -> Response:
    """Show what waits, what failed, and what was learned last."""
    known = await known_of(asked)
    held, lines = known.held, known.asked_about(asked)
    last = (await asked.run(read_receipts(asked.owner)))[::-1][:_LAST_UPDATES]
    entries = [updates.Update.model_validate(entry) for entry in await updates.updates_of(asked)]
    opened = asked.all("source")
    return await asked.show(
        "updates.html", "updates", known, lines=lines, approval=approval_of(asked, known, len(lines)), held=held,
        waiting=len(held) + len(lines), said_at=said_at(known.journal, [fact for fact in held if fact.id in opened]),
        entries=entries, last=last, facts={fact.id: fact for fact in known.facts.every}, seen=asked.control, **done,
    )  # fmt: skip


@pages.answers("POST held-yes")
async def say_yes(asked: PageRequest) -> Response:
    """Use a fact that waits for a person, in its own words or in others."""
    yes = asked.fields(FactEdit).model_copy(update={"status": "active"})
    await edit_fact(asked, asked.one("id"), yes)
    return asked.lead("updates", "remembered")


@pages.answers("POST held-no")
async def say_no(asked: PageRequest) -> Response:
    """Throw facts that wait for a person away; they do not come back from what was said."""
    facts = [fact for fact in await asked.facts.alist(None) if fact.status in HELD and fact.id in asked.all("id")]
    if not facts:
        raise RefusedRequest(409, "This fact does not wait any more.")
    if (count := len(facts)) > 1:
        asked.ask(f"Say no to all {count} that wait for your yes? Nothing brings them back.")
    await asked.facts.aretire(*(fact.id for fact in facts))
    if count > 1:
        return asked.lead("updates", "refused-all", n=count)
    # No address may hold its words, and memory keeps nothing of it: only this answer can bring it back.
    undo = ("held-again", "fact", json.dumps(to_item(facts[0]), ensure_ascii=False))
    return await show_updates(asked, said=SAID["refused"], undo=undo)


@pages.answers("POST held-again")
async def take_no_back(asked: PageRequest) -> Response:
    """Let a fact wait again that somebody said no to, checked as an import is."""
    now = asked.now
    try:
        fact = read_fact(json.loads(asked.one("fact")), iso_time(now), "replaces")
    except ValueError:
        fact = "malformed"
    if not isinstance(fact, Fact):
        raise RefusedRequest(422, "This cannot come back.")
    held = fact if fact.status in HELD else replace(fact, status="waiting")
    await asked.run(FactEffects(asked.owner, asked.config, lambda: now).insert([held]))
    return asked.lead("updates", "again")


@pages.answers("POST line-answer")
async def answer_lines(asked: PageRequest) -> Response:
    """Let messages that wait be told again, or not; without a word take back what was said to one."""
    keys, said = asked.all("key"), asked.one("recall")
    if len(keys) > 1:
        all_of = f"all {len(keys)}"
        asked.ask(f"Let {all_of} be recalled?" if said == "yes" else f"Say no to {all_of}? The Journal keeps them.")
    await answer(asked, keys, {"yes": True, "no": False}.get(said))
    if asked.one("view") == "journal":
        return asked.lead("journal", said, until=asked.one("until"))
    if len(keys) > 1:
        return asked.lead("updates", f"{said}-all", n=len(keys))
    return asked.lead("updates", said or "again", key=said and asked.one("key"))


@pages.answers("POST approval-save")
async def save_approval(asked: PageRequest) -> Response:
    """Choose about what to be asked."""
    await put_approval(asked, asked.fields(ApprovalChoice))
    return asked.lead("updates", "asked")


@pages.answers("POST update-retry")
async def retry_from_list(asked: PageRequest) -> Response:
    """Give a dead update another chance."""
    await updates.retry_update(asked, asked.one("key"), Empty())
    return asked.lead("updates")


@pages.answers("POST update-discard")
async def discard_from_list(asked: PageRequest) -> Response:
    """Throw a dead update away."""
    asked.ask("Throw it away? What it holds is then never learned.")
    await updates.discard_update(asked, asked.one("key"))
    return asked.lead("updates")
