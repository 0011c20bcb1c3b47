"""The `memory` graph: work that no turn waits for. It takes a command and reads all else from the store."""

from collections.abc import Mapping
from typing import Literal

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from graphs.deployment import service_of_process
from graphs.events import MemoryUpdated, aemit
from graphs.service import MemoryService
from graphs.streaming import stream_transformers
from memory.namespaces import Owner
from memory.worker.update import Drained

__all__ = ["DUE", "Command", "Done", "build_memory_graph", "graph", "parse", "stream_transformers"]

DUE = "due"


class Command(TypedDict, total=False):
    """What the memory graph can be told; exactly one of them."""

    drain: str
    """`due`, or the owner as `user segment` or `user segment.agent`: apply pending updates."""
    rollup: str
    """The same: fold days of the journal that are over into the history."""


class Done(TypedDict, total=False):
    """What a command came to."""

    updates: int
    """Updates that were applied."""
    cancelled: int
    """Entries that an erase cancelled."""
    failed: int
    """Entries that are tried again later, or became dead letters."""
    rolled_up: int
    """Owners whose history was rolled up."""


def parse(command: Mapping[str, object]) -> tuple[Literal["drain", "rollup"], Owner | None]:
    """Return what to do, and for whom (`None`: for everyone for whom it is due).

    Raises:
        ValueError: If it is no command; the message says what would be one.
    """
    given = {name: value for name, value in command.items() if value is not None}
    if len(given) == 1 and isinstance(target := next(iter(given.values())), str):
        for name in ("drain", "rollup"):
            if name in given:
                if target == DUE:
                    return name, None
                try:
                    # A user segment alone is their default agent's.
                    return name, Owner.from_due_key(target if "." in target else f"{target}.default")
                except ValueError as error:
                    raise ValueError(f'{name} must be "due" or "<user segment>.<agent>": {error}') from None
    raise ValueError(
        'the memory graph takes exactly one command, {"drain": "due"}, {"drain": "<user segment>.<agent>"} '
        f'or the same with "rollup", not {sorted(given)}'
    )


def build_memory_graph(service: MemoryService | None = None) -> CompiledStateGraph[Command, None, Command, Done]:
    """Return the graph of one node that carries out a command.

    Args:
        service: Does the work; by default that of this process.
    """

    async def work(state: Command, runtime: Runtime) -> Done:
        # A user may look at the thread of these runs, never start one: a client could put the drains off for good.
        if runtime.server_info is not None and runtime.server_info.user is not None:
            raise PermissionError("the memory graph takes commands from the server only")
        action, owner = parse(state)
        if runtime.store is None:
            raise ValueError("store must be configured: without one there is no memory to work on")
        worker = service or service_of_process()
        if action == "rollup":
            return Done(rolled_up=await worker.arollup(runtime.store, owner))
        if owner is None:
            return await _report(await worker.asweep(runtime.store))
        return await _report([await worker.adrain(runtime.store, owner)])

    builder = StateGraph(Command, input_schema=Command, output_schema=Done)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    return builder.compile(name="memory")


async def _report(drained: list[Drained]) -> Done:
    """Tell whoever listens what was learned, and return the counts."""
    receipts = [receipt for one in drained for receipt in one.receipts]
    for receipt in receipts:
        await aemit(MemoryUpdated.name, MemoryUpdated.of(receipt))
    return Done(
        updates=len(receipts),
        cancelled=sum(one.cancelled for one in drained),
        failed=sum(one.failed for one in drained),
    )


graph = build_memory_graph()
