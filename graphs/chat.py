"""The chat graph: the topology, readable as a picture.

A turn writes five checkpoints, tools aside: the input, the thread with it, and one for each superstep. Chat clients
look for the place of an edit among the newest ten, so that the two newest turns can be edited and answered again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as make_tool
from langgraph.errors import InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.pregel._write import ChannelWrite, ChannelWriteTupleEntry
from langgraph.types import Send, StateUpdate

from graphs.deployment import service_of_process, tools_of_process
from graphs.service import MemoryService
from graphs.streaming import stream_transformers
from graphs.tools_of_memory import memory_tools
from graphs.turn.calls import unanswered
from graphs.turn.context import Context
from graphs.turn.edits import left_of_input, with_what_follows
from graphs.turn.nodes import ChatNodes
from graphs.turn.state import InputState, State
from memory.context.tokens import TokenCounter

LAST_OF_TWO = "summarize"
"""After `inject_memory` and `summarize`, which run in one superstep, the thread stands as this one left it."""

Compiled = CompiledStateGraph[State, Context, InputState, State]
Supersteps = Sequence[Sequence[StateUpdate]]
Seen = tuple[Mapping[str, Any], tuple[str, ...]]


class ChatGraph(StateGraph[State, Context, InputState, State]):
    """The builder of a chat graph, whose state may be edited at any checkpoint without `as_node`.

    LangGraph takes an edit for one of the node that ran last, and refuses it as ambiguous where two did.
    """

    def compile(self, *args: Any, **options: Any) -> Compiled:
        """Compile as a `StateGraph` does, with the same arguments."""
        # LangGraph's `compile` makes objects of its own class only; their attributes are its arguments.
        compiled = _Editable(**vars(super().compile(*args, **options)))
        # Only here is it known that a client removes messages, and not a tool or a graph above.
        compiled.nodes[START].writers.append(ChannelWrite((ChannelWriteTupleEntry(left_of_input),)))
        return compiled


class _Editable(Compiled):
    def bulk_update_state(self, config: RunnableConfig, supersteps: Supersteps) -> RunnableConfig:
        if _is_one(supersteps):
            supersteps = _edited(*self._seen(config), supersteps)
        try:
            return super().bulk_update_state(config, supersteps)
        except InvalidUpdateError:
            if not _names_no_node(supersteps):
                raise
            return super().bulk_update_state(config, _named(supersteps))

    async def abulk_update_state(self, config: RunnableConfig, supersteps: Supersteps) -> RunnableConfig:
        if _is_one(supersteps):
            supersteps = _edited(*await self._aseen(config), supersteps)
        try:
            return await super().abulk_update_state(config, supersteps)
        except InvalidUpdateError:
            if not _names_no_node(supersteps):
                raise
            return await super().abulk_update_state(config, _named(supersteps))

    # What a client sent last may be no message: the state with it cannot be read, what was saved before can.
    def _seen(self, config: RunnableConfig) -> Seen:
        try:
            state = self.get_state(config)
        except Exception:
            return next((saved.values for saved in self.get_state_history(config, limit=1)), {}), ()
        return state.values, state.next

    async def _aseen(self, config: RunnableConfig) -> Seen:
        try:
            state = await self.aget_state(config)
        except Exception:
            async for saved in self.aget_state_history(config, limit=1):
                return saved.values, ()
            return {}, ()
        return state.values, state.next


def _is_one(supersteps: Supersteps) -> bool:
    return [len(updates) for updates in supersteps] == [1]


def _names_no_node(supersteps: Supersteps) -> bool:
    return _is_one(supersteps) and supersteps[0][0].as_node is None


def _edited(state: Mapping[str, Any], following: tuple[str, ...], supersteps: Supersteps) -> Supersteps:
    ((update,),) = supersteps
    if update.as_node is None and following == ("summarize",):
        # LangGraph does not count the tasks of `Send`: it would take `call_model` for the node that ran last.
        update = update._replace(as_node="tools")
    return [[update._replace(values=with_what_follows(state, update.values))]]


def _named(supersteps: Supersteps) -> Supersteps:
    ((update,),) = supersteps
    return [[update._replace(as_node=LAST_OF_TWO)]]


__all__ = ["ChatGraph", "after_model", "build_graph", "graph", "stream_transformers"]


def build_graph(
    *,
    service: MemoryService | None = None,
    tools: Sequence[BaseTool | Callable[..., object]] | None = None,
    counter: TokenCounter | None = None,
) -> ChatGraph:
    """Return the chat graph, not yet compiled: `build_graph().compile(checkpointer=..., store=...)`.

    A server compiles it with its own checkpointer and store. Nodes are asynchronous: use `ainvoke` and `astream`.

    Args:
        service: Settings, models and the update queue; by default those of this process, which
            the HTTP app and the persistence of a server share. On a server, introduce an own one to all of them by
            `palimpsest.Deployment`.
        tools: What the model may call: LangChain's tools, or functions with a docstring; by default the tools of this
            process's deployment. The tools of memory, which an assistant's context names, come on top.
        counter: Counts tokens; by default that of this process.
    """
    wanted = tools_of_process() if tools is None else tools
    ready = [each if isinstance(each, BaseTool) else make_tool(each) for each in wanted]
    taken = {each.name for each in ready}
    of_memory = [
        each for each in memory_tools(service=lambda: service or service_of_process()) if each.name not in taken
    ]
    nodes = ChatNodes(service, ready, of_memory, counter=counter)
    return (
        ChatGraph(State, context_schema=Context, input_schema=InputState)
        .add_node("inject_memory", nodes.inject_memory)
        .add_node("summarize", nodes.summarize)
        .add_node("call_model", nodes.call_model)
        .add_node("tools", ToolNode([*ready, *of_memory], handle_tool_errors=True, awrap_tool_call=nodes.carry_out))
        .add_node("flush_memory", nodes.flush_memory)
        .add_edge(START, "inject_memory")
        .add_edge(START, "summarize")
        .add_edge("inject_memory", "call_model")
        .add_edge("summarize", "call_model")
        .add_conditional_edges("call_model", after_model, ["tools", "flush_memory"])
        .add_edge("tools", "summarize")
        .add_edge("flush_memory", END)
    )


# `async` although it awaits nothing: LangGraph runs synchronous routers in threads that hanging stores may occupy.
async def after_model(state: State) -> list[Send] | Literal["flush_memory"]:
    """Choose a task of its own for each call of the answer, else the end of the turn."""
    calls = unanswered(state["messages"])  # which a client may have removed
    return [Send("tools", [call]) for call in calls] or "flush_memory"


graph = build_graph().compile(name="chat")
