"""The preview: what a new conversation would be shown of memory."""

from dataclasses import replace
from datetime import UTC, date, datetime

from pydantic import Field

from graphs.process.models import fit_to_profile, profile
from graphs.server.api.routing import AgentCall, ApiModel, Call, MemoryRouter, StrictModel
from graphs.turn.context import Context
from graphs.turn.prompt import memory_share
from memory.context.tokens import TokenCounter
from memory.facts.fact import may_be_used
from memory.injection.injected import render_block, render_deltas
from memory.injection.selection import TurnConditions, inject, told
from memory.journal.journal import JournalRevision
from memory.recall.user_index import Asked, UserIndex
from memory.turn import open_turn

router = MemoryRouter()

_MESSAGE = "preview"


class NewThread(StrictModel):
    """How a new conversation would begin."""

    message: str = Field(default="Hello", min_length=1, max_length=2000)
    as_of: date | None = None
    """As at that day's end, by facts alone."""


class Preview(ApiModel):
    """What a model would be shown of memory, word for word."""

    block: str = ""
    """In the system prompt; empty: nothing."""
    recalled: str = ""
    """Before the message: what was said in past conversations; empty: nothing."""
    used: bool
    """false: you switched off that memory is used, so nothing is shown."""
    tokens: int = 0
    budget: int
    """Tokens that it may take."""


@router.answers("POST /preview")
async def preview(call: AgentCall, asked: NewThread) -> Preview:
    """Return what a new thread that begins with this message would be shown, as the graph would choose it now."""
    return await preview_of(call, asked.message, asked.as_of)


async def preview_of(call: Call, message: str, as_of: date | None = None) -> Preview:
    """Return what a new thread would be shown, by the graph's own choice."""
    settings, now = call.service.settings, call.now
    context = fit_to_profile(Context(), profile("", settings))
    budget, counter = memory_share(context), TokenCounter.of(None)
    await counter.awarm_up()
    opening = await call.run(open_turn(call.owner, "", "read_only", None))
    snapshot = opening.snapshot
    if snapshot is None or not snapshot.control.use:
        return Preview(used=False, budget=budget)
    local = datetime.fromtimestamp(now, snapshot.control.zone or UTC).isoformat()
    if as_of:
        used = filter(may_be_used, await call.facts.alist(as_of=as_of))
        snapshot = replace(snapshot, facts=tuple(replace(fact, status="active", valid_to="") for fact in used))
        index = UserIndex()
        index.follow_facts(snapshot.facts)
        recalled = index.recall(Asked(message, now=as_of.isoformat()), JournalRevision())
    else:
        recalled = await call.service.recalling.search(call.store, call.owner, snapshot.facts, message, local)
    conditions = TurnConditions(
        thread_id="", message_id=_MESSAGE, window=(), now=now, cache_ttl_seconds=context.cache_ttl_seconds,
        will_summarize=False, budget=budget, protected_categories=settings.memory.protected_categories,
        recalled=recalled, count=counter.text,
    )  # fmt: skip
    injected = inject(None, snapshot, conditions)
    shown = told(injected, snapshot, recalled)
    block = render_block(injected, shown, budget, counter.text)
    text = render_deltas(injected, shown).get(_MESSAGE, "")
    tokens = counter.text(block) + counter.text(text)
    return Preview(block=block, recalled=text, used=True, tokens=tokens, budget=budget)
