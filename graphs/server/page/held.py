"""What waits for a person, facts and messages: yes, other words, or no; and about what they want to be asked."""

import json
from contextlib import suppress
from typing import Any

from starlette.responses import Response

from graphs.server.api.approval import ApprovalChoice, approval_of, put_approval
from graphs.server.api.facts import FactEdit
from graphs.server.api.guard import RefusedRequest, invalid
from graphs.server.api.journal import answer, asked_about
from graphs.server.page.pages import PageRequest, PageRoutes
from memory.archive.entries import read_fact
from memory.control import read_control
from memory.facts.effects import FactEffects
from memory.facts.fact import HELD, Fact, moment, timestamp, to_item

pages = PageRoutes()


async def held_facts(asked: PageRequest) -> dict[str, Any]:
    """Return what the part of the page that decides shows: what waits, until when, and what is asked about."""
    control = await asked.call.run(read_control(asked.call.owner))  # as it is now: the form may have changed it
    lines = await asked_about(asked.call)
    there = {fact.id: fact for fact in await asked.facts.alist(None)}
    held = [fact for fact in there.values() if fact.status in HELD]
    waiting = sum(fact.status == "waiting" for fact in held)
    approval = approval_of(asked.call, control, waiting, len(lines))
    return {
        "held": sorted(held, key=lambda fact: (fact.updated_at, fact.id), reverse=True),
        "until": {fact.id: _until(fact, approval.days) for fact in held},
        "replaced": {fact.id: there[fact.replaces].content for fact in held if fact.replaces in there},
        "lines": lines, "approval": approval, "said": "", "undo": "", "answered": "",
    }  # fmt: skip


def _until(fact: Fact, days: int) -> str:
    since = moment(fact.updated_at)
    if not days or since is None or fact.status == "quarantined":
        return ""
    with suppress(ValueError, OverflowError):  # so long that no calendar has its end
        return timestamp(since.timestamp() + days * 86_400)
    return ""


@pages.get("held")
async def show_held(asked: PageRequest, said: str = "", **more: str) -> Response:
    """Show what waits for a person."""
    if not asked.is_fragment:
        return asked.go("updates")
    return asked.show("held.html", "updates", **{**await held_facts(asked), "said": said, **more})


@pages.post("held-yes")
async def say_yes(asked: PageRequest) -> Response:
    """Use a fact that waits for a person, in its own words or in others."""
    words = asked.fields(FactEdit).content
    fact = await asked.facts.aget(asked.one("id"))
    if fact.status == "waiting":
        await asked.facts.aapprove(fact.id, source="page", content=words)
    elif fact.status == "quarantined":
        await asked.facts.arelease(fact.id, content=words)
    return await show_held(asked, "It is remembered.")


@pages.post("held-no")
async def say_no(asked: PageRequest) -> Response:
    """Throw a fact that waits for a person away; it does not come back from what was said."""
    fact = await asked.facts.aget(asked.one("id"))
    if fact.status not in HELD:
        raise RefusedRequest(409, "This fact does not wait any more.")
    await asked.facts.aretire(fact.id)
    return await show_held(asked, "It is not remembered.", undo=json.dumps(to_item(fact), ensure_ascii=False))


@pages.post("held-no-all")
async def say_no_to_all(asked: PageRequest) -> Response:
    """Throw away all that waits for a yes."""
    waiting = await asked.facts.alist("waiting")
    if not waiting:
        raise RefusedRequest(409, "Nothing waits any more.")
    asked.ask(f"Say no to all {len(waiting)} that wait for your yes? Nothing brings them back.")
    await asked.facts.aretire(*(fact.id for fact in waiting))
    return await show_held(asked, f"{len(waiting)} are not remembered.")


@pages.post("held-again")
async def take_no_back(asked: PageRequest) -> Response:
    """Let a fact wait again that somebody has just said no to; what the form says of it is checked as an import is."""
    epoch, now = asked.control.epoch, asked.now
    try:
        raw = json.loads(asked.one("fact"))
        held = {**raw, "status": raw["status"] if raw["status"] in HELD else "waiting"}
    except (ValueError, TypeError, KeyError):
        raise invalid("fact", "it must be what the page offered") from None
    fact = read_fact(held, epoch=epoch, now=timestamp(now))
    if not isinstance(fact, Fact):
        raise invalid("fact", f"it cannot come back: {fact}")
    again = FactEffects(asked.call.owner, asked.call.service.settings.memory, lambda: now)
    await asked.call.run(again.insert([fact]))
    return await show_held(asked, "It waits again.")


@pages.post("line-answer")
async def answer_line(asked: PageRequest) -> Response:
    """Let a message that waits be told again, or not; without a word take back what was said to it."""
    key, yes = asked.one("key"), {"yes": True, "no": False}.get(asked.one("recall"))
    await answer(asked.call, [key], yes)
    if asked.one("view") == "journal":
        return asked.go("journal") if not asked.is_fragment else asked.show("line_answered.html", "journal", said=yes)
    said = {True: "It may be recalled.", False: "It is not recalled.", None: "It waits again."}[yes]
    return await show_held(asked, said, answered=key if yes is not None else "")


@pages.post("lines-answer")
async def answer_all_lines(asked: PageRequest) -> Response:
    """Say yes or no to all messages that wait."""
    yes = asked.one("recall") == "yes"
    lines = await asked_about(asked.call)
    if not lines:
        raise RefusedRequest(409, "Nothing waits any more.")
    count = len(lines)
    asked.ask(f"Let all {count} be recalled?" if yes else f"Say no to all {count}? The Journal keeps them.")
    await answer(asked.call, [line.entry.key for line in lines], yes)
    return await show_held(asked, f"{count} {'may be' if yes else 'are not'} recalled.")


@pages.post("approval-save")
async def save_approval(asked: PageRequest) -> Response:
    """Choose about what to be asked."""
    await put_approval(asked.call, asked.fields(ApprovalChoice))
    return await show_held(asked, "Saved. What is in use already stays so.")
