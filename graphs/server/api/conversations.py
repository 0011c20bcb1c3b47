"""What memory does in one thread: its mode, and what was put before the model in a turn."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field, JsonValue

from graphs.server.api.endpoint import Call, Endpoint, Form, Query
from graphs.server.api.facts import fact_set_of
from graphs.server.api.guard import RefusedRequest
from memory.injection.selection import Injected
from memory.turn import MODE_KEY, MemoryMode, effective_mode

Json = Mapping[str, Any]


class ThreadMode(BaseModel):
    """The mode of a thread; an assistant's own may be stricter."""

    thread_id: str
    mode: MemoryMode


class ModeChoice(Form):
    """The mode to switch to."""

    mode: MemoryMode = Field(description="normal, read_only (nothing is learned) or incognito (nor is memory used).")


class TurnFilter(Query):
    """Which turn to look at."""

    checkpoint: str | None = Field(
        None, pattern=r"^[0-9a-fA-F-]{1,64}$", description="Any checkpoint of the turn; the latest turn by default."
    )


class Shown(BaseModel):
    """A fact that the model was shown."""

    id: str
    content: str | None = Field(description="What it says now; empty if it is gone.")


class Turn(BaseModel):
    """What the model was shown in a turn, and how many tokens each part took."""

    thread_id: str
    facts: list[Shown]
    tokens: dict[str, int] = Field(description="system, memory, recalled, summary, messages; and the budget of all.")
    receipt: dict[str, JsonValue] = Field(description="The turn's whole receipt.")


async def get_mode(call: Call, _: Query) -> ThreadMode:
    """Read a thread's mode."""
    thread_id, metadata = await _thread(call)
    return ThreadMode(thread_id=thread_id, mode=effective_mode(metadata.get(MODE_KEY)))


async def put_mode(call: Call, choice: ModeChoice) -> ThreadMode:
    """Switch a thread's mode; it holds from the next turn on, for what is said from then on."""
    thread_id, _ = await _thread(call)
    await call.service.threads.set_mode(thread_id, choice.mode)
    return ThreadMode(thread_id=thread_id, mode=choice.mode)


async def get_turn(call: Call, asked: TurnFilter) -> Turn:
    """Read what the model was shown in a turn."""
    thread_id, _ = await _thread(call)
    memory = await call.service.threads.memory_of_turn(thread_id, asked.checkpoint)
    receipt = memory.get("receipt")
    if not isinstance(receipt, dict):
        raise RefusedRequest(404, "no turn with a receipt is there")
    shown = Injected.from_state(memory) or Injected()
    contents = {fact.id: fact.content for fact in await fact_set_of(call).alist()}
    return Turn(
        thread_id=thread_id,
        facts=[Shown(id=fact_id, content=contents.get(fact_id)) for fact_id in shown.fact_ids()],
        tokens=_tokens(receipt),
        receipt=receipt,
    )


def _tokens(receipt: Json) -> dict[str, int]:
    tokens = receipt.get("tokens")
    counts = tokens if isinstance(tokens, Mapping) else {}  # a client may have written anything into the state
    return {str(part): count for part, count in counts.items() if isinstance(count, int)}


async def _thread(call: Call) -> tuple[str, Json]:
    """Return id and metadata of the path's thread; 404 unless it is a thread of this user."""
    try:
        thread_id = str(UUID(call.path["thread_id"]))
    except ValueError:
        raise RefusedRequest(404, "thread ids are UUIDs") from None
    metadata = await call.service.threads.metadata(call.user_id, thread_id)
    if metadata is None:
        raise RefusedRequest(404, "you have no thread with this id")
    return thread_id, metadata


ENDPOINTS = (
    Endpoint(
        method="GET", path="/threads/{thread_id}/mode", handler=get_mode, takes=Query, answers=ThreadMode,
        summary="Read a thread's mode", refusals=(404,),
    ),
    Endpoint(
        method="PUT", path="/threads/{thread_id}/mode", handler=put_mode, takes=ModeChoice, answers=ThreadMode,
        summary="Switch a thread's mode", refusals=(404,),
    ),
    Endpoint(
        method="GET", path="/threads/{thread_id}/turn", handler=get_turn, takes=TurnFilter, answers=Turn,
        summary="See what the model was shown in a turn, and the tokens of each part", refusals=(404,),
    ),
)  # fmt: skip
