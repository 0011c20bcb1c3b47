"""Edits of a thread from outside: what a client takes away or rewrites is not shown elsewhere in the thread's state."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.types import Overwrite

from graphs.turn.channels import merge_messages, removes_all
from memory.context.running_summary import SUMMARY_ID

Values = dict[str, object]


_CLEARED: Values = {"summarized_messages": Overwrite([]), "context": {}}


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
    is_cleared = not messages or removes_all(values["messages"])
    follows = left_of(state) if is_cleared else _view(state, messages)
    return {**follows, **values}


def _view(state: Mapping[str, Any], messages: Sequence[BaseMessage]) -> Values:
    """Return the copy with those that are left, in the client's words; nothing where it stays as it is."""
    shown: Sequence[BaseMessage] = state.get("summarized_messages") or []
    before = {message.id: message for message in state.get("messages") or ()}
    now = {message.id: message for message in messages}
    # A message that the client did not touch may be shortened in the copy.
    left = [
        one if one.id == SUMMARY_ID or now[one.id] == before.get(one.id) else now[one.id]
        for one in shown
        if one.id == SUMMARY_ID or one.id in now
    ]
    return {} if left == list(shown) else {"summarized_messages": Overwrite(left)}
