"""Tool calls and their results as every provider accepts them. Pure."""

from collections.abc import Iterable, Sequence

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

_NOT_CARRIED_OUT = "This call was not carried out."


def paired(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with each tool call followed by its result, which providers refuse to go without.

    A call that has none gets one that says so: a user may go on instead of resuming an interrupted tool. A result
    whose call is gone is left out, and so is a call that the model garbled, which nobody could carry out.
    """
    groups: list[list[BaseMessage]] = []
    waiting: dict[str | None, list[BaseMessage]] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            waiting.pop(message.tool_call_id, []).append(message)
            continue
        said = _without_garbled_calls(message) if isinstance(message, AIMessage) else message
        groups.append([said] if said else [])
        if isinstance(said, AIMessage):
            waiting.update((call["id"], groups[-1]) for call in said.tool_calls)
    return [message for group in groups for message in _complete(group)]


def _complete(group: list[BaseMessage]) -> Iterable[BaseMessage]:
    yield from group
    if group and isinstance(asked := group[0], AIMessage):
        answered = {message.tool_call_id for message in group if isinstance(message, ToolMessage)}
        missing = [str(call["id"]) for call in asked.tool_calls if call["id"] not in answered]
        yield from (ToolMessage(_NOT_CARRIED_OUT, tool_call_id=call_id) for call_id in missing)


def _without_garbled_calls(message: AIMessage) -> AIMessage | None:
    """Return the message without calls whose arguments are no JSON; `None` if nothing else is in it."""
    if not message.invalid_tool_calls:
        return message
    raw = {name: value for name, value in message.additional_kwargs.items() if name != "tool_calls"}
    said = message.model_copy(update={"invalid_tool_calls": [], "additional_kwargs": raw})
    return said if said.content or said.tool_calls else None
