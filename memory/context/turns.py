"""Messages as strict chat templates take them: one system message, then user and assistant in turn. Pure."""

from collections.abc import Iterable
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from memory import prompts

Content = str | list[str | dict[str, Any]]
Message = TypeVar("Message", bound=BaseMessage)

_SPEAKERS = (HumanMessage, AIMessage)


def in_turns(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return the messages as strict chat templates take them; the messages themselves are not changed.

    System messages become one, at the beginning. Neighbours of one role are joined. A line stands for the question of
    an answer that comes first, and for the answer to a user who went on behind results of tools. Each call of a tool is
    to have its result already.
    """
    system: list[BaseMessage] = []
    turns: list[BaseMessage] = []
    for message in messages:
        if isinstance(message, SystemMessage):
            system = [_joined(system[0], message) if system else message]
            continue
        if not turns and not isinstance(message, HumanMessage):
            turns.append(HumanMessage(prompts.NO_QUESTION))
        if turns and isinstance(turns[-1], ToolMessage) and isinstance(message, HumanMessage):
            turns.append(AIMessage(prompts.NO_ANSWER))
        is_same = turns and any(isinstance(turns[-1], role) and isinstance(message, role) for role in _SPEAKERS)
        turns.append(_joined(turns.pop(), message) if is_same else message)
    return [*system, *turns]


def _joined(first: BaseMessage, second: Message) -> Message:
    """Return the second message with what the first one says before it; of two people, each with their name."""
    if first.name == second.name:
        return second.model_copy(update={"content": _one_after_another(first.content, second.content)})
    content = _one_after_another(_named(first), _named(second))
    return second.model_copy(update={"content": content, "name": None})


def _named(message: BaseMessage) -> Content:
    if not message.name or not message.content:
        return message.content
    if isinstance(message.content, str):
        return f"{message.name}: {message.content}"
    return [f"{message.name}: ", *message.content]


def _one_after_another(first: Content, second: Content) -> Content:
    if not first or not second:
        return first or second
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    # Templates put the texts of blocks together as they are.
    begin, *rest = _blocks(second)
    if begin.get("type") == "text":
        begin = {**begin, "text": f"\n\n{begin['text']}"}
    return [*_blocks(first), begin, *rest]


def _blocks(content: Content) -> list[dict[str, Any]]:
    blocks = [content] if isinstance(content, str) else content
    return [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
