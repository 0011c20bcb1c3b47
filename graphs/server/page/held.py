"""What waits for a person: yes, other words, or no; and of which topics they want to be asked."""

import json
from typing import Any

from starlette.responses import Response

from graphs.server.api.approval import ApprovalChoice, approval_of, put_approval
from graphs.server.api.facts import facts_of
from graphs.server.api.guard import RefusedRequest, invalid
from graphs.server.page.pages import Asked, Pages
from memory.archive.entries import read_fact
from memory.config import NAMED_TOPICS, TOPICS
from memory.control import read_epoch
from memory.facts.effects import FactEffects
from memory.facts.fact import HELD, Fact, moment, timestamp, to_item

pages = Pages()

TITLES = {"health": "Health", "money": "Money", "people": "Other people", "everything": "Everything"}
_DAY = 86_400.0


async def held_facts(asked: Asked) -> dict[str, Any]:
    """Return what the part of the page that decides shows: what waits, until when, and what is asked about."""
    facts, approval = facts_of(asked.call), await approval_of(asked.call)
    there = {fact.id: fact for fact in await facts.alist(None)}
    held = [fact for fact in there.values() if fact.status in HELD]
    return {
        "held": sorted(held, key=lambda fact: (fact.updated_at, fact.id), reverse=True),
        "until": {fact.id: _until(fact, approval.days) for fact in held},
        "replaced": {fact.id: there[fact.replaces].content for fact in held if fact.replaces in there},
        "approval": approval, "topics": TOPICS, "named": NAMED_TOPICS, "topic_titles": TITLES,
    }  # fmt: skip


def _until(fact: Fact, days: int) -> str:
    since = moment(fact.updated_at)
    stays = not days or since is None or (fact.status == "quarantined" and fact.edited_at)
    return "" if stays or since is None else timestamp(since.timestamp() + days * _DAY)


async def _list(asked: Asked, said: str = "", undo: str = "") -> Response:
    if not asked.is_fragment:
        return asked.go("updates")
    return asked.show("held.html", "updates", **await held_facts(asked), said=said, undo=undo)


@pages.get("held")
async def show_held(asked: Asked) -> Response:
    """Show what waits for a person."""
    return asked.show("held.html", "updates", **await held_facts(asked), said="", undo="")


@pages.post("held-yes")
async def say_yes(asked: Asked) -> Response:
    """Use a fact that waits for a person, in its own words or in others."""
    facts, fact_id = facts_of(asked.call), asked.one("id")
    words = asked.one("content").strip() or None
    fact = await facts.aget(fact_id)
    if fact.status == "waiting":
        await facts.aapprove(fact_id, source="page", content=words)
    elif fact.status == "quarantined":
        await facts.arelease(fact_id, content=words)
    return await _list(asked, "It is remembered.")


@pages.post("held-no")
async def say_no(asked: Asked) -> Response:
    """Throw a fact that waits for a person away; it does not come back from what was said."""
    fact = await facts_of(asked.call).aget(asked.one("id"))
    if fact.status not in HELD:
        raise RefusedRequest(409, "This fact does not wait any more.")
    await facts_of(asked.call).aretire(fact.id)
    return await _list(asked, "It is not remembered.", json.dumps(to_item(fact), ensure_ascii=False))


@pages.post("held-no-all")
async def say_no_to_all(asked: Asked) -> Response:
    """Throw away all that waits for a yes."""
    waiting = await facts_of(asked.call).alist("waiting")
    if not waiting:
        raise RefusedRequest(409, "Nothing waits any more.")
    await facts_of(asked.call).aretire(*(fact.id for fact in waiting))
    return await _list(asked, f"{len(waiting)} are not remembered.")


@pages.post("held-again")
async def take_no_back(asked: Asked) -> Response:
    """Let a fact wait again that somebody has just said no to; what the form says of it is checked as an import is."""
    call = asked.call
    epoch = await call.run(read_epoch(call.owner))
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


@pages.post("approval-save")
async def save_approval(asked: Asked) -> Response:
    """Choose the topics about which to be asked."""
    chosen = [topic for topic in TOPICS if topic in asked.all("topic")]
    await put_approval(asked.call, ApprovalChoice(topics=chosen))
    return await _list(asked, "Saved. What is in use already stays so.")
