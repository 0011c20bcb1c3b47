"""One emitter for every stream, and the events that memory itself emits.

What a node emits arrives exactly once wherever a client listens: as `on_custom_event` in `astream_events` and in
`graphs.streaming`, and as `{"name": ..., "payload": ...}` in the `custom` stream mode and in the newest protocol's
custom channels. LangChain's dispatch feeds only the former and LangGraph's writer only the latter.
"""

import contextvars
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Self, TypedDict, Union

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.runnables.config import get_callback_manager_for_config, set_config_context
from langgraph.runtime import get_runtime
from pydantic import BaseModel, ConfigDict, Field, JsonValue, NonNegativeInt, TypeAdapter
from pydantic.dataclasses import dataclass as pydantic_dataclass

from memory.context.summarizer import Cut, SummarizationResult
from memory.forms import plain
from memory.updates.receipts import UpdateReceipt

logger = logging.getLogger(__name__)

Json = Union[Mapping[str, "Json"], Sequence["Json"], str, int, float, bool, None]  # noqa: UP007 - it names itself


class CustomChunk(TypedDict):
    """What an emitted event looks like in the `custom` stream mode.

    These are the names that the protocol's `CustomData` has, so that a client can subscribe to `custom:<name>`.
    """

    name: str
    payload: Json


def emit(name: str, data: Json | BaseModel, *, config: RunnableConfig | None = None) -> None:
    """Send an event to whoever streams the current run. Outside a run nothing happens.

    In asynchronous code use `aemit`: here an asynchronous callback handler is waited for in a thread.

    Args:
        name: The event's name, such as `memory.queued`.
        data: JSON, or a pydantic model that is sent as JSON.
        config: The run's config. Needed only where context variables do not reach, as in a thread that the
            node started itself; the run is found by itself in nodes, tools and their asyncio tasks.
    """
    if sent := _sent_in_run(name, data, config):
        context, chunk = sent
        context.run(dispatch_custom_event, name, chunk["payload"])
        context.run(_write_chunk, chunk)


async def aemit(name: str, data: Json | BaseModel, *, config: RunnableConfig | None = None) -> None:
    """Send an event as `emit` does, without blocking the event loop for asynchronous callback handlers."""
    if sent := _sent_in_run(name, data, config):
        context, chunk = sent
        await adispatch_custom_event(name, chunk["payload"], config=context.run(ensure_config))
        context.run(_write_chunk, chunk)


def _sent_in_run(
    name: str, data: Json | BaseModel, config: RunnableConfig | None
) -> tuple[contextvars.Context, CustomChunk] | None:
    """Return an event, and the context variables under which it is sent; `None` outside a run."""
    context = contextvars.copy_context()
    if config is not None:
        with set_config_context(config) as given:
            context = given.run(contextvars.copy_context)  # `given` is reset on leaving; a copy keeps the config
    if context.run(lambda: get_callback_manager_for_config(ensure_config()).parent_run_id) is None:
        logger.debug("event %s emitted outside a run", name)
        return None
    return context, CustomChunk(
        name=name, payload=data.model_dump(mode="json") if isinstance(data, BaseModel) else data
    )


def _write_chunk(chunk: CustomChunk) -> None:
    # A runnable that is not part of a graph has a run but no runtime: only its callbacks listen.
    if runtime := get_runtime():
        runtime.stream_writer(chunk)


class Payload(BaseModel):
    """What an event tells, or a part of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MemoryEvent(Payload):
    """An event about memory: ids and counts, never texts. Emit it as `emit(event.name, event)`.

    A field is only ever added; when one changes its meaning or goes, `v` rises.
    """

    name: ClassVar[str]
    v: Literal[1] = 1


class TokenParts(Payload):
    """How many tokens each part of the prompt takes, and how many it may take together."""

    system: NonNegativeInt
    memory: NonNegativeInt
    recalled: NonNegativeInt
    summary: NonNegativeInt
    messages: NonNegativeInt
    budget: NonNegativeInt


class MemoryInjected(MemoryEvent):
    """The model is about to see these facts and past turns."""

    name: ClassVar[str] = "memory.injected"
    facts: tuple[str, ...] = Field(description="Ids of the facts in the prompt.")
    recalled: tuple[str, ...] = Field(
        default=(), description="Keys of the journal entries of which the prompt shows lines."
    )
    tokens: TokenParts

    @classmethod
    def of(cls, receipt: Mapping[str, Any], tokens: TokenParts) -> Self:
        """Return the event of a turn that begins with this receipt."""
        return cls(facts=tuple(receipt.get("facts", ())), recalled=tuple(receipt.get("recalled", ())), tokens=tokens)


_CLOSED: Final = ConfigDict(extra="forbid")


@pydantic_dataclass(frozen=True, config=_CLOSED)
class MemorySummarized(Cut):
    """The oldest messages were replaced by a summary."""

    name: ClassVar[str] = "memory.summarized"
    v: Literal[1] = 1


class MemoryLeftOut(MemoryEvent):
    """The model is about to answer without these messages: they do not fit, and no summary stands for them yet."""

    name: ClassVar[str] = "memory.left_out"
    messages: NonNegativeInt = Field(description="How many messages the model is not shown.")
    ids: tuple[str, ...] = Field(description="Ids of the newest 32 of them, oldest first.")


def payload_of(told: Cut | UpdateReceipt) -> Json:
    """Return the payload that tells of a value, with its version."""
    return {"v": 1, **plain(told)}


def summary_events(result: SummarizationResult) -> Iterator[tuple[str, Json | BaseModel]]:
    """Yield the events, with their names, that tell what became of a conversation that was too long."""
    if result.cut is not None:
        yield MemorySummarized.name, payload_of(result.cut)
    if result.left_out.messages:
        yield MemoryLeftOut.name, MemoryLeftOut(messages=result.left_out.messages, ids=result.left_out.ids)


class MemoryQueued(MemoryEvent):
    """What was said is written down, and memory will be updated from it after the turn."""

    name: ClassVar[str] = "memory.queued"
    entry: str = Field(description="Key of the pending update.")
    due: str = Field(description="When it runs at the latest, ISO 8601 with an offset.")


@pydantic_dataclass(frozen=True, config=_CLOSED)
class MemoryUpdated(UpdateReceipt):
    """An update has run; the next turn's receipt tells it again."""

    name: ClassVar[str] = "memory.updated"
    v: Literal[1] = 1


MEMORY_EVENTS = (
    MemoryInjected,
    MemorySummarized,
    MemoryLeftOut,
    MemoryQueued,
    MemoryUpdated,
)


def memory_event_schemas() -> dict[str, dict[str, JsonValue]]:
    """Return the JSON schema of every memory event's payload by the event's name."""
    return {event.name: TypeAdapter(event).json_schema() for event in MEMORY_EVENTS}
