"""What waits for a person, facts and messages: yes, other words, or no; and of which topics they want to be asked."""

import json
from typing import Any

from starlette.responses import Response

from graphs.server.api.approval import ApprovalChoice, approval_of, put_approval
from graphs.server.api.facts import FactEdit
from graphs.server.api.guard import RefusedRequest, invalid
from graphs.server.api.journal import answer, asked_about
from graphs.server.page.pages import PageRequest, PageRoutes
from memory.archive.entries import read_fact
from memory.config import NAMED_TOPICS, TOPICS
from memory.facts.effects import FactEffects
from memory.facts.fact import HELD, Fact, moment, timestamp, to_item

pages = PageRoutes()

TITLES = {
    "health": "Health", "money": "Money", "people": "Other people", "everything": "Everything",
    "secret": "May hold a secret",
}  # fmt: skip
_DAY = 86_400.0


async def held_facts(asked: PageRequest) -> dict[str, Any]:
    """Return what the part of the page that decides shows: what waits, until when, and what is asked about."""
    facts, epoch = asked.facts, await asked.epoch()
    lines = await asked_about(asked.call, epoch)
    approval = await approval_of(asked.call, len(lines))
    there = {fact.id: fact for fact in await facts.alist(None)}
    held = [fact for fact in there.values() if fact.status in HELD]
    return {
        "held": sorted(held, key=lambda fact: (fact.updated_at, fact.id), reverse=True),
        "until": {fact.id: _until(fact, approval.days) for fact in held},
        "replaced": {fact.id: there[fact.replaces].content for fact in held if fact.replaces in there},
        "lines": lines, "approval": approval, "topics": TOPICS, "named": NAMED_TOPICS, "topic_titles": TITLES,
    }  # fmt: skip


def _until(fact: Fact, days: int) -> str:
    since = moment(fact.updated_at)
    stays = not days or since is None or fact.status == "quarantined"
    try:
        return "" if stays or since is None else timestamp(since.timestamp() + days * _DAY)
    except (ValueError, OverflowError):  # so long that no calendar has its end
        return ""


async def _list(asked: PageRequest, said: str = "", undo: str = "", answered: str = "") -> Response:
    if not asked.is_fragment:
        return asked.go("updates")
    context = await held_facts(asked)
    return asked.show("held.html", "updates", **context, said=said, undo=undo, answered=answered)


@pages.get("held")
async def show_held(asked: PageRequest) -> Response:
    """Show what waits for a person."""
    return asked.show("held.html", "updates", **await held_facts(asked), said="", undo="", answered="")


@pages.post("held-yes")
async def say_yes(asked: PageRequest) -> Response:
    """Use a fact that waits for a person, in its own words or in others."""
    facts, fact_id = asked.facts, asked.one("id")
    words = asked.fields(FactEdit).content
    fact = await facts.aget(fact_id)
    if fact.status == "waiting":
        await facts.aapprove(fact_id, source="page", content=words)
    elif fact.status == "quarantined":
        await facts.arelease(fact_id, content=words)
    return await _list(asked, "It is remembered.")


@pages.post("held-no")
async def say_no(asked: PageRequest) -> Response:
    """Throw a fact that waits for a person away; it does not come back from what was said."""
    fact = await asked.facts.aget(asked.one("id"))
    if fact.status not in HELD:
        raise RefusedRequest(409, "This fact does not wait any more.")
    await asked.facts.aretire(fact.id)
    return await _list(asked, "It is not remembered.", json.dumps(to_item(fact), ensure_ascii=False))


@pages.post("held-no-all")
async def say_no_to_all(asked: PageRequest) -> Response:
    """Throw away all that waits for a yes."""
    waiting = await asked.facts.alist("waiting")
    if not waiting:
        raise RefusedRequest(409, "Nothing waits any more.")
    asked.ask(f"Say no to all {len(waiting)} that wait for your yes? Nothing brings them back.", "updates")
    await asked.facts.aretire(*(fact.id for fact in waiting))
    return await _list(asked, f"{len(waiting)} are not remembered.")


@pages.post("held-again")
async def take_no_back(asked: PageRequest) -> Response:
    """Let a fact wait again that somebody has just said no to; what the form says of it is checked as an import is."""
    call = asked.call
    epoch = await asked.epoch()
    try:
        raw = json.loads(asked.one("fact"))
    except ValueError:
        raise invalid("fact", "it must be what the page offered") from None
    status = raw.get("status") if isinstance(raw, dict) else None
    held = {**raw, "status": status if status in HELD else "waiting"} if isinstance(raw, dict) else raw
    fact = read_fact(held, epoch=epoch, now=timestamp(asked.now))
    if not isinstance(fact, Fact):
        raise invalid("fact", f"it cannot come back: {fact}")
    again = FactEffects(call.owner, call.service.settings.memory, lambda: asked.now)
    await call.run(again.insert(epoch, [fact], frozenset()))
    return await _list(asked, "It waits again.")


@pages.post("line-answer")
async def answer_line(asked: PageRequest) -> Response:
    """Let a message that waits be told again, or not; without a word take back what was said to it."""
    key, word = asked.one("key"), asked.one("recall")
    yes = {"yes": True, "no": False}.get(word)
    await answer(asked.call, [key], yes)
    if asked.one("view") == "journal":
        return asked.go("journal") if not asked.is_fragment else asked.show("line_answered.html", "journal", said=yes)
    said = {True: "It may be recalled.", False: "It is not recalled.", None: "It waits again."}[yes]
    return await _list(asked, said, answered=key if yes is not None else "")


@pages.post("lines-answer")
async def answer_all_lines(asked: PageRequest) -> Response:
    """Say yes or no to all messages that wait."""
    yes = asked.one("recall") == "yes"
    lines = await asked_about(asked.call, await asked.epoch())
    if not lines:
        raise RefusedRequest(409, "Nothing waits any more.")
    count = len(lines)
    asked.ask(f"Let all {count} be recalled?" if yes else f"Say no to all {count}? The Journal keeps them.", "updates")
    await answer(asked.call, [line.entry.key for line in lines], yes)
    return await _list(asked, f"{count} {'may be' if yes else 'are not'} recalled.")


@pages.post("approval-save")
async def save_approval(asked: PageRequest) -> Response:
    """Choose the topics about which to be asked."""
    chosen = [topic for topic in TOPICS if topic in asked.all("topic")]
    await put_approval(asked.call, ApprovalChoice(topics=chosen))
    return await _list(asked, "Saved. What is in use already stays so.")
