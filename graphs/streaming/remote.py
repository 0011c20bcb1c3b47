"""The event stream of a run on a server, read through the SDK."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol, cast

from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import (
    All,
    Checkpoint,
    Command,
    Config,
    Context,
    DisconnectMode,
    Durability,
    MultitaskStrategy,
)
from langgraph_sdk.schema import StreamMode as ServerMode
from typing_extensions import TypedDict, Unpack

from graphs.streaming.envelopes import REQUIRED_MODES, EnvelopePairing, PlainEvent, StreamEvent, StreamMode


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


class RunOptions(TypedDict, total=False):
    """What `client.runs.stream` takes, but for the stream modes."""

    input: Mapping[str, object] | None
    command: Command | None
    config: Config | None
    context: Context | None
    checkpoint: Checkpoint | None
    checkpoint_id: str | None
    metadata: Mapping[str, object] | None
    interrupt_before: All | Sequence[str] | None
    interrupt_after: All | Sequence[str] | None
    multitask_strategy: MultitaskStrategy | None
    on_disconnect: DisconnectMode | None
    stream_resumable: bool
    durability: Durability | None


class StreamPart(Protocol):
    """One part of a stream as the SDK yields it."""

    @property
    def event(self) -> str:
        """The stream mode, with the namespace behind it: `updates|researcher:5c1f…`."""

    @property
    def data(self) -> Any:
        """What LangGraph streams in that mode, as JSON."""


def server_modes(stream_mode: Sequence[StreamMode] = ("values", "updates")) -> list[ServerMode]:
    """Return the modes that a run must be created with, for `pair_run_events` to read its stream."""
    modes = ["messages-tuple" if mode == "messages" else mode for mode in (*stream_mode, *REQUIRED_MODES)]
    return cast("list[ServerMode]", ["events", *dict.fromkeys(modes)])


async def stream_run_events(
    client: LangGraphClient,
    thread_id: str | None,
    assistant_id: str,
    *,
    stream_mode: Sequence[StreamMode] = ("values", "updates"),
    **options: Unpack[RunOptions],
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
    parts: AsyncIterator[StreamPart], *, stream_mode: Sequence[StreamMode] = ("values", "updates")
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
