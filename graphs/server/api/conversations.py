"""What memory does in one thread: its mode, and what was put before the model in a turn."""

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from pydantic import Field, JsonValue

from graphs.server.api.guard import RefusedRequest
from graphs.server.api.routing import AgentCall, ApiModel, Call, MemoryRouter, StrictModel
from memory.context.running_summary import state_of
from memory.injection.injected import Injected
from memory.turn import MODE_KEY, MemoryMode, effective_mode

router = MemoryRouter()

Json = Mapping[str, Any]


class ThreadMode(ApiModel):
    """The mode of a thread; an assistant's own may be stricter."""

    thread_id: str
    mode: MemoryMode


class ModeChoice(StrictModel):
    """The mode to switch to."""

    mode: MemoryMode
    """normal, read_only (nothing is learned) or incognito (nor is memory used)."""


class TurnFilter(ApiModel):
    """Which turn to look at."""

    checkpoint: str | None = Field(default=None, pattern=r"^[0-9a-fA-F-]{1,64}$")
    """Any checkpoint of the turn; the latest turn by default."""


class Shown(ApiModel):
    """A fact that the model was shown."""

    id: str
    content: str | None
    """What it says now; empty if it is gone."""


class Turn(ApiModel):
    """What the model was shown in a turn, and how many tokens each part took."""

    thread_id: str
    facts: list[Shown]
    tokens: dict[str, int]
    """system, memory, recalled, summary, messages; and the budget of all."""
    receipt: dict[str, JsonValue]
    """The turn's whole receipt."""


@router.answers("GET /threads/{thread_id}/mode", 404)
async def get_mode(call: AgentCall, thread_id: str) -> ThreadMode:
    """Read a thread's mode."""
    thread_id, metadata = await _own_thread(call, thread_id)
    return ThreadMode(thread_id=thread_id, mode=effective_mode(metadata.get(MODE_KEY)))


@router.answers("PUT /threads/{thread_id}/mode", 404)
async def put_mode(call: AgentCall, thread_id: str, choice: ModeChoice) -> ThreadMode:
    """Switch a thread's mode; it holds from the next turn on, for what is said from then on."""
    thread_id, _ = await _own_thread(call, thread_id)
    await call.service.threads.set_mode(thread_id, choice.mode)
    return ThreadMode(thread_id=thread_id, mode=choice.mode)


@router.answers("GET /threads/{thread_id}/turn", 404)
async def get_turn(call: AgentCall, thread_id: str, asked: Annotated[TurnFilter, Query()]) -> Turn:
    """Read what the model was shown in a turn."""
    thread_id, _ = await _own_thread(call, thread_id)
    memory = await call.service.threads.memory_of_turn(thread_id, asked.checkpoint)
    receipt = memory.get("receipt")
    if not isinstance(receipt, dict):
        raise RefusedRequest(404, "no turn with a receipt is there")
    counts = state_of(receipt.get("tokens"))  # a client may have written anything into the state
    shown = Injected.from_state(memory) or Injected()
    contents = {fact.id: fact.content for fact in await call.facts.alist()}
    return Turn(
        thread_id=thread_id,
        facts=[Shown(id=fact_id, content=contents.get(fact_id)) for fact_id in shown.fact_ids()],
        tokens={str(part): count for part, count in counts.items() if isinstance(count, int)},
        receipt=receipt,
    )


async def _own_thread(call: Call, given: str) -> tuple[str, Json]:
    """Return id and metadata of a thread; 404 unless it is a thread of this user."""
    try:
        thread_id = str(UUID(given))
    except ValueError:
        raise RefusedRequest(404, "thread ids are UUIDs") from None
    metadata = await call.service.threads.metadata(call.user_id, thread_id)
    # The same answer for another user's thread and for none: nobody learns which ids are taken.
    if metadata is None:
        raise RefusedRequest(404, "you have no thread with this id")
    return thread_id, metadata
