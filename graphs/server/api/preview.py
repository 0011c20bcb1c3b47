"""The preview: what a new conversation would be shown of memory."""

import asyncio
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, Field

from graphs.models import fit_to_profile, profile
from graphs.server.api.routing import AgentCall, Call, MemoryRouter, StrictModel
from graphs.turn.context import Context
from graphs.turn.prompt import memory_share
from memory.context.tokens import TokenCounter
from memory.effects import StoreEffects, side_by_side
from memory.injection.injected import render_block, render_deltas
from memory.injection.selection import TurnConditions, inject, told
from memory.journal.journal import JournalView
from memory.recall.past import read_tellable_view
from memory.recall.user_index import Asked, Recalled, UserIndex
from memory.recall.vectors import read_vectors
from memory.turn import Opening, open_turn

router = MemoryRouter()

_MESSAGE = "preview"


class NewThread(StrictModel):
    """How a new conversation would begin."""

    message: str = Field("Hello", min_length=1, max_length=2000)


class Preview(BaseModel):
    """What a model would be shown of memory, word for word."""

    block: str = Field(description="In the system prompt; empty: nothing.")
    recalled: str = Field(description="Before the message: what was said in past conversations; empty: nothing.")
    used: bool = Field(description="false: you switched off that memory is used, so nothing is shown.")
    tokens: int
    budget: int = Field(description="Tokens that it may take.")


@router.post("/preview", summary="See what a new conversation would be shown")
async def preview(call: AgentCall, asked: NewThread) -> Preview:
    """Return what a new thread that begins with this message would be shown, as the graph would choose it now."""
    return await preview_of(call, asked.message)


async def preview_of(call: Call, message: str) -> Preview:
    """Return what a new thread would be shown: the graph's own choice, made for a thread that there is not."""
    settings, now = call.service.settings, call.service.clock()
    context = fit_to_profile(Context(), profile("", settings))
    budget, counter = memory_share(context), TokenCounter()
    opening, view = await call.run(_read_all(call))
    snapshot = opening.snapshot
    if snapshot is None or not snapshot.is_used:
        return Preview(block="", recalled="", used=False, tokens=0, budget=budget)
    question = await call.service.embed(message)
    kept = await call.run(read_vectors(call.owner, snapshot.epoch, question.embedder)) if question else {}
    local = datetime.fromtimestamp(now, opening.zone or UTC).isoformat()

    def recall() -> Recalled:
        index = UserIndex()
        index.follow_facts(snapshot.facts)
        index.follow_journal(view)
        if question:
            index.follow_vectors(question.embedder, kept)
        return index.recall(Asked(message, "", local, question), snapshot.epoch, view.revision, view.edit)

    conditions = TurnConditions(
        thread_id="", message_id=_MESSAGE, window=(), now=now, cache_ttl_seconds=context.cache_ttl_seconds,
        will_summarize=False, budget=budget, protected_categories=settings.memory.protected_categories,
        recalled=await asyncio.to_thread(recall), count=counter.text,
    )  # fmt: skip
    injected = inject(None, snapshot, conditions)
    shown = told(injected, snapshot, conditions.recalled)
    block, recalled = render_block(injected, shown, budget, counter.text), render_deltas(injected, shown)
    text = recalled.get(_MESSAGE, "")
    return Preview(
        block=block, recalled=text, used=True, tokens=counter.text(block) + counter.text(text), budget=budget
    )


def _read_all(call: Call) -> StoreEffects[tuple[Opening, JournalView]]:
    mode: Literal["read_only"] = "read_only"
    return side_by_side(open_turn(call.owner, "", mode, None), read_tellable_view(call.owner))
