"""Edits of a thread from outside: what a client takes away or rewrites is not shown elsewhere in the thread's state."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel._write import ChannelWrite, ChannelWriteTupleEntry
from langgraph.types import Overwrite, StateSnapshot, StateUpdate

from graphs.turn.context import Context
from graphs.turn.state import InputState, State, merge_messages, removes_all
from memory.context.running_summary import SUMMARY_ID

Values = dict[str, object]

_CLEARED: Values = {"summarized_messages": Overwrite([]), "context": {}}
_RAN_LAST = {"call_model": "summarize", "summarize": "tools"}
"""By the only node that follows, whose edit it is if nobody says: LangGraph refuses it as ambiguous where two nodes ran
side by side, and does not count the tasks of `Send`."""


def left_of(state: Mapping[str, Any]) -> Values:
    """Return the update that takes away what a thread without messages still shows of them, its summary too."""
    return {key: nothing for key, nothing in _CLEARED.items() if state.get(key)}


def left_of_input(given: object) -> list[tuple[str, object]]:
    """Return what a client's input that removes all messages takes away with them; of nodes', that is not known."""
    is_cleared = isinstance(given, Mapping) and removes_all(given.get("messages"))
    return [*_CLEARED.items()] if is_cleared else []


def with_what_follows(state: Mapping[str, Any], values: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an edit of a thread with what follows from it for the rest of the state.

    What the model sees of the conversation is a copy, which the next turn writes anew; until then it would show what
    the client has removed. A summary of messages that are all gone would be told to the model for good.

    Args:
        state: The state that is edited.
        values: What the client writes; without messages it is handed back as it is.
    """
    if not isinstance(values, dict) or "messages" not in values:
        return values
    messages = merge_messages(state.get("messages") or [], [values["messages"]])
    if not messages or removes_all(values["messages"]):
        return {**left_of(state), **values}
    shown: Sequence[BaseMessage] = state.get("summarized_messages") or []
    before = {message.id: message for message in state.get("messages") or ()}
    now = {message.id: message for message in messages}
    # A message that the client did not touch may be shortened in the copy.
    left = [
        one if one.id == SUMMARY_ID or now[one.id] == before.get(one.id) else now[one.id]
        for one in shown
        if one.id == SUMMARY_ID or one.id in now
    ]
    return values if left == list(shown) else {"summarized_messages": Overwrite(left), **values}


_Compiled = CompiledStateGraph[State, Context, InputState, State]
Supersteps = Sequence[Sequence[StateUpdate]]


class ChatGraph(StateGraph[State, Context, InputState, State]):
    """The builder of a chat graph, whose state may be edited at any checkpoint without `as_node`."""

    def compile(self, *args: Any, **options: Any) -> _Compiled:
        """Compile as a `StateGraph` does, with the same arguments."""
        # LangGraph's `compile` makes objects of its own class only; their attributes are its arguments.
        compiled = _Editable(**vars(super().compile(*args, **options)))
        # Only here is it known that a client removes messages, and not a tool or a graph above.
        compiled.nodes[START].writers.append(ChannelWrite((ChannelWriteTupleEntry(left_of_input),)))
        return compiled


class _Editable(_Compiled):
    # What a client sent last may be no message. The writes of a run's input are saved before the channel refuses them:
    # `get_state` without a checkpoint's id adds them to the newest checkpoint, and fails as that run did, until there
    # is another (langgraph 1.2.22). A history can be read.
    def bulk_update_state(self, config: RunnableConfig, supersteps: Supersteps) -> RunnableConfig:
        saved = next(self.get_state_history(config, limit=1), None)
        return super().bulk_update_state(config, _edited(saved, supersteps))

    async def abulk_update_state(self, config: RunnableConfig, supersteps: Supersteps) -> RunnableConfig:
        saved = [one async for one in self.aget_state_history(config, limit=1)]
        return await super().abulk_update_state(config, _edited(next(iter(saved), None), supersteps))


def _edited(saved: StateSnapshot | None, supersteps: Supersteps) -> Supersteps:
    if [len(updates) for updates in supersteps] != [1]:
        return supersteps
    ((update,),), state, following = supersteps, saved.values if saved else {}, saved.next if saved else ()
    if update.as_node is None and update.values is not None and len(following) == 1:
        update = update._replace(as_node=_RAN_LAST.get(following[0]))
    return [[update._replace(values=with_what_follows(state, update.values))]]
