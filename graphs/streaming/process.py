"""The event stream of a graph that runs in this process."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel
from langgraph.types import All, Command, Durability
from langgraph.typing import ContextT, InputT, OutputT, StateT

from graphs.streaming.envelopes import REQUIRED_MODES, EnvelopePairing, PlainEvent, StreamEvent, StreamMode


async def stream_events(
    graph: Pregel[StateT, ContextT, InputT, OutputT],
    input: InputT | Command[Any] | None,  # noqa: A002 - named as in every LangGraph entry point
    config: RunnableConfig | None = None,
    *,
    context: ContextT | None = None,
    stream_mode: Sequence[StreamMode] = ("values", "updates"),
    interrupt_before: All | Sequence[str] | None = None,
    interrupt_after: All | Sequence[str] | None = None,
    durability: Durability | None = None,
) -> AsyncGenerator[StreamEvent, None]:
    """Run a graph and yield its events, each with the checkpoint it belongs to, as soon as that is known.

    The pairing rule is in `graphs.streaming.envelopes`. With `durability="exit"` only the last checkpoint is
    kept: the others carry the ids that LangGraph gave them, which the history does not know.

    Args:
        graph: A compiled graph. Without a checkpointer, `checkpoint` is `None` everywhere.
        input: The graph's input, a `Command` to resume with, or `None` to go on from a checkpoint.
        config: With the thread, and the checkpoint to fork from.
        context: The run's static context.
        stream_mode: Which chunks the root's `on_chain_stream` events bring, subgraphs included.
        interrupt_before: Nodes to stop before.
        interrupt_after: Nodes to stop after.
        durability: When checkpoints are written.

    Raises:
        Exception: What a node raises, after every event that came before it.
    """
    pairing = EnvelopePairing(stream_mode)
    events = graph.astream_events(
        input,
        config,
        version="v2",
        context=context,
        stream_mode=list(dict.fromkeys([*stream_mode, *REQUIRED_MODES])),
        interrupt_before=interrupt_before,
        interrupt_after=interrupt_after,
        durability=durability,
        subgraphs=True,
    )
    async with aclosing(cast("AsyncGenerator[PlainEvent, None]", events)) as plain:
        try:
            async for event in plain:
                for ready in pairing.feed(event):
                    yield ready
        except Exception:  # a node's own: it comes after all that happened before it
            for ready in pairing.finish():
                yield ready
            raise
    for ready in pairing.finish():
        yield ready
