"""What waits: facts and messages for a person's yes, other words or no; updates to be learned, or that failed."""

import json
from dataclasses import replace

from starlette.responses import Response

from graphs.server.api import overview, updates
from graphs.server.api.approval import ApprovalChoice, approval_of, put_approval
from graphs.server.api.facts import FactEdit
from graphs.server.api.guard import RefusedRequest, invalid
from graphs.server.api.journal import answer, asked_about
from graphs.server.api.routing import Empty
from graphs.server.page.pages import PageRequest, PageRoutes
from graphs.server.page.parts import facts_named, show_journal
from memory.archive.entries import read_fact
from memory.control import read_control
from memory.facts.fact import HELD, Fact, to_item
from memory.facts.store import FactEffects
from memory.message import iso_time
from memory.updates.receipts import read_receipts

pages = PageRoutes()

_LAST_UPDATES = 10


@pages.answers("GET updates")
async def show_updates(asked: PageRequest, said: str = "", undo: str = "", answered: str = "") -> Response:
    """Show what waits for a person, what waits to be learned, what failed, and what was learned last.

    Args:
        asked: The request.
        said: What a form has done.
        undo: The fact that comes back if that is undone.
        answered: The key of the message that waits again if that is undone.
    """
    control = await asked.run(read_control(asked.owner))  # as it is now: the form may have changed it
    lines = await asked_about(asked)
    there = {fact.id: fact for fact in await asked.facts.alist(None)}
    held = [fact for fact in there.values() if fact.status in HELD]
    waiting = sum(fact.status == "waiting" for fact in held)
    approval = approval_of(asked, control, waiting, len(lines))
    done = (await asked.run(read_receipts(asked.owner)))[::-1][:_LAST_UPDATES]
    entries = [updates.Update.model_validate(entry) for entry in await updates.updates_of(asked)]
    return asked.show(
        "updates.html", "updates", said=said, undo=undo, answered=answered, lines=lines, approval=approval,
        held=sorted(held, key=lambda fact: (fact.updated_at, fact.id), reverse=True),
        replaced={fact.id: there[fact.replaces].content for fact in held if fact.replaces in there},
        pending=[each for each in entries if each.state != "dead"],
        dead=[each for each in entries if each.state == "dead"],
        done=done, facts=await facts_named(asked, done), seen=await overview.overview(asked),
    )  # fmt: skip


@pages.answers("POST held-yes")
async def say_yes(asked: PageRequest) -> Response:
    """Use a fact that waits for a person, in its own words or in others."""
    words = asked.fields(FactEdit).content
    fact = await asked.facts.aget(asked.one("id"))
    if fact.status == "waiting":
        await asked.facts.aapprove(fact.id, source="page", content=words)
    elif fact.status == "quarantined":
        await asked.facts.arelease(fact.id, content=words)
    return await show_updates(asked, "It is remembered.")


@pages.answers("POST held-no")
async def say_no(asked: PageRequest) -> Response:
    """Throw a fact that waits for a person away; it does not come back from what was said."""
    fact = await asked.facts.aget(asked.one("id"))
    if fact.status not in HELD:
        raise RefusedRequest(409, "This fact does not wait any more.")
    await asked.facts.aretire(fact.id)
    return await show_updates(asked, "It is not remembered.", undo=json.dumps(to_item(fact), ensure_ascii=False))


@pages.answers("POST held-no-all")
async def say_no_to_all(asked: PageRequest) -> Response:
    """Throw away all that waits for a yes."""
    waiting = await asked.facts.alist("waiting")
    if not waiting:
        raise RefusedRequest(409, "Nothing waits any more.")
    asked.ask(f"Say no to all {len(waiting)} that wait for your yes? Nothing brings them back.")
    await asked.facts.aretire(*(fact.id for fact in waiting))
    return await show_updates(asked, f"{len(waiting)} are not remembered.")


@pages.answers("POST held-again")
async def take_no_back(asked: PageRequest) -> Response:
    """Let a fact wait again that somebody has just said no to; what the form says of it is checked as an import is."""
    now = asked.now
    try:
        fact = read_fact(json.loads(asked.one("fact")), epoch=asked.control.epoch, now=iso_time(now))
    except ValueError:
        fact = "malformed"
    if not isinstance(fact, Fact):
        raise invalid("fact", f"it cannot come back: {fact}")
    held = fact if fact.status in HELD else replace(fact, status="waiting")
    await asked.run(FactEffects(asked.owner, asked.config, lambda: now).insert([held]))
    return await show_updates(asked, "It waits again.")


@pages.answers("POST line-answer")
async def answer_line(asked: PageRequest) -> Response:
    """Let a message that waits be told again, or not; without a word take back what was said to it."""
    key, yes = asked.one("key"), {"yes": True, "no": False}.get(asked.one("recall"))
    await answer(asked, [key], yes)
    if asked.one("view") == "journal":
        return await show_journal(asked)
    said = {True: "It may be recalled.", False: "It is not recalled.", None: "It waits again."}[yes]
    return await show_updates(asked, said, answered=key if yes is not None else "")


@pages.answers("POST lines-answer")
async def answer_all_lines(asked: PageRequest) -> Response:
    """Say yes or no to all messages that wait."""
    yes = asked.one("recall") == "yes"
    keys = [line.entry.key for line in await asked_about(asked)]
    if not keys:
        raise RefusedRequest(409, "Nothing waits any more.")
    count = len(keys)
    asked.ask(f"Let all {count} be recalled?" if yes else f"Say no to all {count}? The Journal keeps them.")
    await answer(asked, keys, yes)
    return await show_updates(asked, f"{count} {'may be' if yes else 'are not'} recalled.")


@pages.answers("POST approval-save")
async def save_approval(asked: PageRequest) -> Response:
    """Choose about what to be asked."""
    await put_approval(asked, asked.fields(ApprovalChoice))
    return await show_updates(asked, "Saved. What is in use already stays so.")


@pages.answers("POST update-retry")
async def retry_from_list(asked: PageRequest) -> Response:
    """Give a dead update another chance."""
    await updates.retry_update(asked, asked.one("key"), Empty())
    return await show_updates(asked)


@pages.answers("POST update-discard")
async def discard_from_list(asked: PageRequest) -> Response:
    """Throw a dead update away."""
    asked.ask("Throw it away? What it holds is then never learned.")
    await updates.discard_update(asked, asked.one("key"))
    return await show_updates(asked)
