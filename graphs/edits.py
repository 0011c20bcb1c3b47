"""Edits of a thread from outside: where one stands that names no node, though two have run side by side."""

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import InvalidUpdateError
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateUpdate

from graphs.context import Context
from graphs.state import InputState, State

LAST_OF_TWO = "summarize"
"""After `inject_memory` and `summarize`, which run in one superstep, the thread stands as this one left it."""

Compiled = CompiledStateGraph[State, Context, InputState, State]
Supersteps = Sequence[Sequence[StateUpdate]]


class ChatGraph(StateGraph[State, Context, InputState, State]):
    """The builder of a chat graph, whose state may be edited at any checkpoint without `as_node`.

    LangGraph takes an edit for one of the node that ran last, and refuses it as ambiguous where two did.
    """

    def compile(self, *args: Any, **options: Any) -> Compiled:
        """Compile as a `StateGraph` does, with the same arguments."""
        return _Editable(**vars(super().compile(*args, **options)))


class _Editable(Compiled):
    def bulk_update_state(self, config: RunnableConfig, supersteps: Supersteps) -> RunnableConfig:
        try:
            return super().bulk_update_state(config, supersteps)
        except InvalidUpdateError:
            if not _names_no_node(supersteps):
                raise
            return super().bulk_update_state(config, _named(supersteps))

    async def abulk_update_state(self, config: RunnableConfig, supersteps: Supersteps) -> RunnableConfig:
        try:
            return await super().abulk_update_state(config, supersteps)
        except InvalidUpdateError:
            if not _names_no_node(supersteps):
                raise
            return await super().abulk_update_state(config, _named(supersteps))


def _names_no_node(supersteps: Supersteps) -> bool:
    return [len(updates) for updates in supersteps] == [1] and supersteps[0][0].as_node is None


def _named(supersteps: Supersteps) -> Supersteps:
    ((update,),) = supersteps
    return [[update._replace(as_node=LAST_OF_TWO)]]
