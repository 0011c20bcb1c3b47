"""The event stream of a run: of a graph in this process, or on a server, read through the SDK."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel
from langgraph.types import All, Command, Durability
from langgraph.typing import ContextT, InputT, OutputT, StateT
from langgraph_sdk import schema
from langgraph_sdk.client import LangGraphClient

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


class RunFailed(RuntimeError):
    """A node raised on the server.

    Attributes:
        error: The name of the exception's class.
        message: Its text, or what the server lets be seen of it.
    """

    def __init__(self, error: str, message: str) -> None:
        super().__init__(f"{error}: {message}")
        self.error = error
        self.message = message


def server_modes(stream_mode: Sequence[StreamMode] = ("values", "updates")) -> list[schema.StreamMode]:
    """Return the modes that a run must be created with, for `pair_run_events` to read its stream."""
    modes = ["messages-tuple" if mode == "messages" else mode for mode in (*stream_mode, *REQUIRED_MODES)]
    return cast("list[schema.StreamMode]", ["events", *dict.fromkeys(modes)])


async def stream_run_events(
    client: LangGraphClient,
    thread_id: str | None,
    assistant_id: str,
    *,
    stream_mode: Sequence[StreamMode] = ("values", "updates"),
    **options: Any,
) -> AsyncGenerator[StreamEvent, None]:
    """Start a run on a server and yield its events as `stream_events` does in process; data is JSON.

    Args:
        client: The SDK's asynchronous client.
        thread_id: The thread, or `None` for a stateless run: `checkpoint` is `None` everywhere then.
        assistant_id: Id of the assistant, or name of the graph.
        stream_mode: Which chunks the root's `on_chain_stream` events bring, subgraphs included.
        options: Input or command, config, context and the like, as the SDK takes them.

    Raises:
        RunFailed: When a node raised, after every event that came before it.
    """
    parts = cast("Any", client.runs).stream(
        thread_id, assistant_id, stream_mode=server_modes(stream_mode), stream_subgraphs=True, **options
    )
    async with aclosing(pair_run_events(parts, stream_mode=stream_mode)) as events:
        async for event in events:
            yield event


async def pair_run_events(
    parts: AsyncIterator[Any], *, stream_mode: Sequence[StreamMode] = ("values", "updates")
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of a run whose stream is at hand: joined, resumed, or started by other means.

    Args:
        parts: Of a run created with `stream_subgraphs=True` and the modes that `server_modes(stream_mode)` names,
            from its first part on.
        stream_mode: As for `stream_run_events`.

    Raises:
        RunFailed: When a node raised, after every event that came before it.
    """
    pairing = EnvelopePairing(stream_mode)
    root: PlainEvent | None = None
    failure: RunFailed | None = None
    async for part in parts:
        mode, *namespace = part.event.split("|")
        if mode == "events":
            root = root or part.data
            ready = pairing.feed(part.data)
        elif mode == "error":
            # Raised behind what is still held: an error comes after all that happened before it.
            failure = RunFailed(str(part.data.get("error")), str(part.data.get("message")))
            break
        elif root is not None:
            # The root's own event, which the server took apart.
            data = {"chunk": (tuple(namespace), mode, part.data)}
            ready = pairing.feed({**root, "event": "on_chain_stream", "data": data})
        else:
            continue
        for event in ready:
            yield event
    for event in pairing.finish():
        yield event
    if failure:
        raise failure
