"""The `memory` graph: work that no turn waits for. It takes a command and reads all else from the store."""

from collections.abc import Mapping

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from graphs.deployment import service_of_process
from graphs.events import MemoryUpdated, aemit
from graphs.service import MemoryService
from graphs.streaming import stream_transformers
from memory.namespaces import Owner

__all__ = ["Command", "Done", "build_memory_graph", "graph", "parse", "stream_transformers"]


class Command(TypedDict, total=False):
    """What the memory graph is told."""

    drain: str
    """The owner, as `user segment.agent`, whose pending updates are to be applied."""


class Done(TypedDict, total=False):
    """What a command came to."""

    updates: int
    """Updates that were applied."""
    cancelled: int
    """Entries that an erase cancelled."""
    failed: int
    """Entries that are tried again later, or became dead letters."""


def parse(command: Mapping[str, object]) -> Owner:
    """Return whose updates are to be applied.

    Raises:
        ValueError: If it is no command; the message says what would be one.
    """
    try:
        return Owner.from_due_key(str(command.get("drain")))
    except ValueError as error:
        raise ValueError(f'the memory graph takes {{"drain": "<user segment>.<agent>"}}: {error}') from None


def build_memory_graph(service: MemoryService | None = None) -> CompiledStateGraph[Command, None, Command, Done]:
    """Return the graph of one node that carries out a command.

    Args:
        service: Does the work; by default that of this process.
    """

    async def work(state: Command, runtime: Runtime) -> Done:
        # A user may look at the thread of these runs, never start one: a client could put the drains off for good.
        if runtime.server_info is not None and runtime.server_info.user is not None:
            raise PermissionError("the memory graph takes commands from the server only")
        owner = parse(state)
        if runtime.store is None:
            raise ValueError("store must be configured: without one there is no memory to work on")
        drained = await (service or service_of_process()).adrain(runtime.store, owner)
        for receipt in drained.receipts:  # to whoever listens
            await aemit(MemoryUpdated.name, MemoryUpdated.of(receipt))
        return Done(updates=len(drained.receipts), cancelled=drained.cancelled, failed=drained.failed)

    builder = StateGraph(Command, input_schema=Command, output_schema=Done)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    return builder.compile(name="memory")


graph = build_memory_graph()
