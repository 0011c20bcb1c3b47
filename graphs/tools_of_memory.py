"""Tools with which the chat model uses memory itself: each on or off per assistant, for the run's own user only.

Whose memory it is, in which mode, and where it is kept says the run, never an argument. What a tool returns is quoted
data, and is never learned from, as no tool's output is. What cannot be done is told in words that the model can act on.
"""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple, TypeVar, get_args

from langchain.tools import ToolRuntime
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.store.base import BaseStore

from graphs.deployment import service_of_process
from graphs.events import MemoryUpdated, aemit
from graphs.service import MemoryService
from graphs.synchronous import ThreadedStore, finished
from graphs.turn.context import MemoryToolName
from graphs.turn.deadlines import Access, StoreAway
from graphs.turn.run import Run, mode_of_run
from memory.config import Category
from memory.control import read_control
from memory.effects import StoreEffects, arun, in_daemon_thread
from memory.tool_calls import Told, ToolCall, forget, receipt_key, remember, restore
from memory.tool_lookups import find, list_facts, read_around, tell_found
from memory.turn import MemoryMode, TurnEpochs, effective_mode, may_learn, may_read, mode_of_newest

logger = logging.getLogger(__name__)

T = TypeVar("T")

NAMES: tuple[MemoryToolName, ...] = get_args(MemoryToolName)

Runtime = ToolRuntime[Any, Any]
Answer = Coroutine[Any, Any, str]
InWhoseName = tuple[Run, Mapping[str, Any]]
"""The run in which a tool is called, and what the thread's state keeps of memory."""


class _RefusedCall(Exception):
    """The tool cannot be used in this run; the message tells the model why."""


def memory_tools(
    names: Sequence[MemoryToolName] = NAMES,
    *,
    service: Callable[[], MemoryService] = service_of_process,
    asked_by: Callable[[Runtime, str], InWhoseName] | None = None,
) -> tuple[BaseTool, ...]:
    """Return tools for a chat graph, or for any agent whose tools are given a `ToolRuntime`, such as `create_agent`.

    Args:
        names: Which ones.
        service: Returns the service whose settings and clock they use; called when a tool is.
        asked_by: Returns in whose name a tool is called, given the id of the question; by default as the chat graph
            sees its own run.

    Raises:
        ValueError: If there is no tool of a name.
    """
    if unknown := sorted(set(names) - set(NAMES)):
        raise ValueError(f"tools: there is no {', '.join(map(repr, unknown))}; there are {', '.join(NAMES)}")
    tools = _MemoryTools(service, asked_by)
    return tuple(_tool(name, getattr(tools, name)) for name in names)


def _tool(name: MemoryToolName, answer: Callable[..., Answer]) -> BaseTool:
    @functools.wraps(answer)
    async def told(runtime: Runtime, **arguments: Any) -> str:
        try:
            return await answer(runtime=runtime, **arguments)
        except _RefusedCall as refused:
            return str(refused)
        except Exception as error:  # a store's failure is no reason to fail the turn
            # Of a store that is away the log says when that began and when it ends.
            level = logging.DEBUG if isinstance(error, StoreAway) else logging.WARNING
            logger.log(level, "the tool %s failed: %s", name, type(error).__name__)
            return f"{name} does not work at the moment. Go on without it."

    @functools.wraps(answer)
    def told_in_thread(**arguments: Any) -> str:
        # An agent that is invoked synchronously runs its tools on threads without an event loop.
        runtime = arguments.pop("runtime")
        store = ThreadedStore(runtime.store) if runtime.store is not None else None
        return finished(told(runtime=replace(runtime, store=store), **arguments))

    return StructuredTool.from_function(func=told_in_thread, coroutine=told, name=name, args_schema=_arguments(name))


@functools.cache
def _arguments(name: MemoryToolName) -> Any:
    """Return the schema of a tool's arguments, which takes most of the time in which a graph is made."""
    body = getattr(_MemoryTools(service_of_process), name)
    return StructuredTool.from_function(coroutine=body, name=name).args_schema


class _Opened(NamedTuple):
    """In which turn, on which store and in which mode a tool is called."""

    call: ToolCall
    store: BaseStore
    mode: MemoryMode
    turn: Hashable


class _MemoryTools:
    """The tools' bodies, each under its name; their docstrings are what the model reads of them."""

    def __init__(
        self, service: Callable[[], MemoryService], asked_by: Callable[[Runtime, str], InWhoseName] | None = None
    ) -> None:
        self._service = service
        self._asked_by = asked_by or self._asked_by_graph
        # The loop itself holds tasks weakly.
        self._working: set[asyncio.Task[Told]] = set()

    async def search_memory(
        self,
        query: Annotated[str, "Words or a question."],
        runtime: Runtime,
        limit: Annotated[int, "How many facts and how many passages, at most 10."] = 5,
    ) -> str:
        """Search what is remembered of the user and of earlier conversations, with dates."""
        opened = await self._open(runtime)
        question = await self._service().aembed(query)
        finding = find(opened.call, query, limit, question)
        found = await self._ask(opened, "read", lambda: arun(opened.store, finding, aside=True))
        return await asyncio.wrap_future(in_daemon_thread(lambda: tell_found(found, query, limit)))

    async def read_conversation(self, source: Annotated[str, "As search_memory names it."], runtime: Runtime) -> str:
        """Read what was said around a passage of an earlier conversation."""
        return await self._tell(runtime, lambda call: read_around(call, source), access="read")

    async def list_memories(
        self,
        runtime: Runtime,
        category: Annotated[Category | None, "Only this one."] = None,
        page: int = 1,
    ) -> str:
        """List the facts that are remembered about the user, with their ids."""
        return await self._tell(runtime, lambda call: list_facts(call, page, category), access="read")

    async def remember(
        self,
        content: Annotated[str, "One short sentence about the user, in their words."],
        category: Annotated[
            Category, "knowledge: who they are. preference: likes, how to answer. context: current work."
        ],
        runtime: Runtime,
        corrects: Annotated[str | None, "Id of the fact that it takes the place of."] = None,
    ) -> str:
        """Remember one fact that the user just told, at once. What they say is learned later anyway."""
        return await self._tell(runtime, lambda call: remember(call, content, category, corrects), needs=may_learn)

    async def forget(
        self, fact_id: Annotated[str, "As list_memories or search_memory name it."], runtime: Runtime
    ) -> str:
        """Forget a fact because the user asks for it; they can undo it."""
        return await self._tell(runtime, lambda call: forget(call, fact_id))

    async def restore(self, fact_id: Annotated[str, "As search_memory names it."], runtime: Runtime) -> str:
        """Bring back a fact that is no longer in use, because the user asks about it."""
        return await self._tell(runtime, lambda call: restore(call, fact_id), needs=may_learn)

    async def _tell(
        self,
        runtime: Runtime,
        effects: Callable[[ToolCall], StoreEffects[Told]],
        needs: Callable[[MemoryMode], bool] = may_read,
        *,
        access: Access = "write",
    ) -> str:
        opened = await self._open(runtime)
        if not needs(opened.mode):
            raise _RefusedCall("Not remembered: nothing is learned in this conversation (read-only mode).")
        asking = functools.partial(arun, opened.store, read_control(opened.call.owner))
        if needs is may_read and not (await self._ask(opened, "read", asking)).use:
            raise _RefusedCall("The user has switched off that memory is used: answer without it.")

        async def work() -> Told:
            # A user who stops the run, or the deadline, must not stop a change half way.
            task = asyncio.create_task(arun(opened.store, effects(opened.call), aside=True))
            self._working.add(task)
            task.add_done_callback(self._working.discard)
            return await asyncio.shield(task)

        told = await self._ask(opened, access, work)
        if told.receipt is not None:
            await aemit(MemoryUpdated.name, MemoryUpdated.of(told.receipt), config=runtime.config)
        return told.text

    async def _ask(self, opened: _Opened, access: Access, work: Callable[[], Awaitable[T]]) -> T:
        """Do what a tool does within the time that its turn has for memory in all, unless the store is away."""
        return await self._service().deadlines.ask(opened.turn, opened.store, access, work)

    async def _open(self, runtime: Runtime) -> _Opened:
        """Return how a tool is called, as the run says it; `TimeoutError` if its mode is not known in time."""
        service = self._service()
        state = runtime.state if isinstance(runtime.state, Mapping) else {}
        messages = [message for message in state.get("messages", ()) if isinstance(message, BaseMessage)]
        asked = next((str(one.id) for one in reversed(messages) if isinstance(one, HumanMessage)), "")
        run, kept = self._asked_by(runtime, asked)
        if run.owner is None or runtime.store is None:
            raise _RefusedCall("There is no memory in this conversation: nobody is logged in, or nothing is stored.")
        async with service.deadlines.within(run.turn, "read"):
            declared = await mode_of_run(runtime.config, run.context.memory_mode, on_server=run.on_server)
        mode = effective_mode(declared, kept.get("mode"), mode_of_newest(messages))
        if not may_read(mode):
            raise _RefusedCall("This conversation is incognito: memory is neither used nor changed in it.")
        call = ToolCall(
            owner=run.owner,
            thread_id=run.thread_id,
            messages=messages,
            epochs=TurnEpochs.from_state(kept),
            now=service.clock(),
            key=receipt_key(run.thread_id, str(runtime.tool_call_id)),
            config=service.settings.memory,
        )
        return _Opened(call, runtime.store, mode, run.turn)

    def _asked_by_graph(self, runtime: Runtime, asked: str) -> InWhoseName:
        kept = runtime.state.get("memory") if isinstance(runtime.state, Mapping) else None
        run = Run.of(runtime.config, runtime, self._service().settings, asked)
        return run, kept if isinstance(kept, Mapping) else {}
