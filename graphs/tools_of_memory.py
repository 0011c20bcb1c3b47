"""Tools with which the chat model uses memory itself: each on or off per assistant, for the run's own user only.

Whose memory it is, in which mode, and where it is kept says the run, never an argument. What a tool returns is quoted
data, and is never learned from, as no tool's output is. What cannot be done is told in words that the model can act on.
What each does is in `memory/tools.py`.
"""

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, get_args, get_type_hints

from langchain.tools import ToolRuntime
from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import create_model

from graphs.process.deployment import service_of_process
from graphs.process.events import MemoryUpdated, aemit
from graphs.process.service import MemoryService
from graphs.process.synchronous import finished
from graphs.turn.context import MemoryToolName
from graphs.turn.run import Run
from graphs.turn.stores import StoreAway
from memory.door import arun
from memory.recall.user_index import Recalled
from memory.tools import LEARNING, TOOLS, WRITING, Search, ToolCall, carried_out
from memory.turn import TurnEpochs, effective_mode, may_learn, may_read, mode_of_newest

logger = logging.getLogger(__name__)

NAMES: tuple[MemoryToolName, ...] = get_args(MemoryToolName)

Runtime = ToolRuntime[Any, Any]
InWhoseName = tuple[Run, Mapping[str, Any]]
"""The run in which a tool is called, and what the thread's state keeps of memory."""


def memory_tools(
    names: Sequence[MemoryToolName] = NAMES,
    *,
    service: Callable[[], MemoryService] = service_of_process,
    asked_by: Callable[[Runtime], InWhoseName] | None = None,
) -> tuple[BaseTool, ...]:
    """Return tools for a chat graph, or for any agent whose tools are given a `ToolRuntime`, such as `create_agent`.

    Args:
        names: Which ones.
        service: Returns the service whose settings and clock they use; called when a tool is.
        asked_by: Returns in whose name a tool is called; by default as the chat graph sees its own run.

    Raises:
        ValueError: If there is no tool of a name.
    """
    if unknown := sorted(set(names) - set(NAMES)):
        raise ValueError(f"tools: there is no {', '.join(map(repr, unknown))}; there are {', '.join(NAMES)}")

    def asked_by_graph(runtime: Runtime) -> InWhoseName:
        kept = runtime.state.get("memory") if isinstance(runtime.state, Mapping) else None
        run = Run.of(runtime.config, runtime, service().settings)
        return run, kept if isinstance(kept, Mapping) else {}

    return tuple(_tool(name, service, asked_by or asked_by_graph) for name in names)


def _tool(
    name: MemoryToolName, service: Callable[[], MemoryService], asked_by: Callable[[Runtime], InWhoseName]
) -> BaseTool:
    async def answer(runtime: Runtime, arguments: Mapping[str, Any]) -> str:
        """Carry out a call in the time for which a turn waits for memory; `TimeoutError` past it."""
        process = service()
        state = runtime.state if isinstance(runtime.state, Mapping) else {}
        messages = [message for message in state.get("messages", ()) if isinstance(message, BaseMessage)]
        run, kept = asked_by(runtime)
        if run.place is None:
            return "There is no memory in this conversation: nobody is logged in, or nothing is stored."
        store, owner = run.place
        declared = await run.mode(process.stores.seconds["read"])
        mode = effective_mode(declared, kept.get("mode"), mode_of_newest(messages))
        if not may_read(mode):
            return "This conversation is incognito: memory is neither used nor changed in it."
        if name in LEARNING and not may_learn(mode):
            return "Not remembered: nothing is learned in this conversation (read-only mode)."
        call = ToolCall(
            owner=owner,
            thread_id=run.thread_id,
            messages=messages,
            epochs=TurnEpochs.from_state(kept),
            now=process.clock(),
            call_id=str(runtime.tool_call_id),
            config=process.settings.memory,
        )

        async def search(wanted: Search) -> Recalled:
            return await process.recalling.search(store, owner, wanted.facts, wanted.query, wanted.now)

        told = await process.stores.ask(
            store,
            "write" if name in WRITING else "read",
            lambda: arun(store, carried_out(name, call, arguments), others={Search: search}, aside=True),
        )
        if told.receipt is not None:
            await aemit(MemoryUpdated.name, MemoryUpdated.of(told.receipt), config=runtime.config)
        return told.text

    async def told(runtime: Runtime, **arguments: Any) -> str:
        try:
            return await answer(runtime, arguments)
        except Exception as error:  # a store's failure is no reason to fail the turn
            # Of a store that is away the log says when that began and when it ends.
            level = logging.DEBUG if isinstance(error, StoreAway) else logging.WARNING
            logger.log(level, "the tool %s failed: %s", name, type(error).__name__)
            return f"{name} does not work at the moment. Go on without it."

    def told_in_thread(runtime: Runtime, **arguments: Any) -> str:
        # An agent that is invoked synchronously runs its tools on threads without an event loop.
        return finished(told(runtime, **arguments))

    description, schema = TOOLS[name].__doc__, _arguments(name)
    return StructuredTool.from_function(told_in_thread, told, name, description, args_schema=schema)


@functools.cache
def _arguments(name: MemoryToolName) -> Any:
    """Return the schema of a tool's arguments, which takes most of the time in which a graph is made."""
    hints, (_, *wanted) = get_type_hints(TOOLS[name], include_extras=True), signature(TOOLS[name]).parameters.values()
    fields: dict[str, Any] = {
        each.name: (hints[each.name], ... if each.default is each.empty else each.default) for each in wanted
    }
    return create_model(name, **fields)
