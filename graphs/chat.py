"""The chat graph: the topology, readable as a picture.

A turn writes five checkpoints, tools aside: the input, the thread with it, and one for each superstep. Chat clients
look for the place of an edit among the newest ten, so that the two newest turns can be edited and answered again.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from langchain_core.tools import BaseTool
from langchain_core.tools import tool as make_tool
from langgraph.graph import END, START
from langgraph.prebuilt import ToolNode
from langgraph.types import Send

from graphs.process.deployment import load_deployment, service_of_process
from graphs.process.service import MemoryService
from graphs.settings import Settings
from graphs.streaming import stream_transformers
from graphs.tools_of_memory import memory_tools
from graphs.turn.calls import unanswered
from graphs.turn.context import Context
from graphs.turn.nodes import ChatNodes
from graphs.turn.state import ChatGraph, InputState, State
from memory.context.tokens import TokenCounter

__all__ = ["ChatGraph", "after_model", "build_graph", "graph", "stream_transformers"]


def _picture(nodes: ChatNodes, tools: Sequence[BaseTool]) -> ChatGraph:
    return (
        ChatGraph(State, context_schema=Context, input_schema=InputState)
        .add_node("inject_memory", nodes.inject_memory)
        .add_node("summarize", nodes.summarize)
        .add_node("call_model", nodes.call_model)
        .add_node("tools", ToolNode(tools, handle_tool_errors=True, awrap_tool_call=nodes.carry_out))
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
    wanted = load_deployment(Settings.from_environment().deployment).tools if tools is None else tools
    ready = [each if isinstance(each, BaseTool) else make_tool(each) for each in wanted]
    taken = {each.name for each in ready}
    all_of_memory = memory_tools(service=lambda: service or service_of_process())
    of_memory = [each for each in all_of_memory if each.name not in taken]
    return _picture(ChatNodes(service, ready, of_memory, counter=counter), [*ready, *of_memory])


graph = build_graph().compile(name="chat")
