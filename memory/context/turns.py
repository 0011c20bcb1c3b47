"""Messages as any server takes them: one system message, then user and assistant in turn, none empty. Pure."""

import re
from collections.abc import Callable, Iterable
from itertools import chain, count
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from memory import prompts

Content = str | list[str | dict[str, Any]]
Message = TypeVar("Message", bound=BaseMessage)

_SPEAKERS = (HumanMessage, AIMessage)
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
_LONGEST_NAME = 64
_UNFIT = re.compile(r"[^\w-]+")
UNFIT_IN_TOOLS = re.compile(r"[^\w-]+", re.ASCII)


def in_turns(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return the messages as any server takes them; the messages themselves are not changed.

    System messages become one, at the beginning. Empty messages are left out, neighbours of one role joined, and names
    made fit. A line of ours stands where servers want words and there are none: in an empty result, as the user before
    an answer that comes first and behind one that comes last, and as an answer between results of tools and the user.
    Each tool call must have its result already.
    """
    system: list[BaseMessage] = []
    turns: list[BaseMessage] = []
    names: dict[str, str] = {}
    for given in messages:
        if (message := _fit(given, names)) is None:
            continue
        if isinstance(message, SystemMessage):
            system = [_joined(system[0], message) if system else message]
            continue
        if not turns and not isinstance(message, HumanMessage):
            turns.append(HumanMessage(prompts.NO_QUESTION))
        if turns and isinstance(turns[-1], ToolMessage) and isinstance(message, HumanMessage):
            turns.append(AIMessage(prompts.NO_ANSWER))
        is_same = turns and any(isinstance(turns[-1], role) and isinstance(message, role) for role in _SPEAKERS)
        turns.append(_joined(turns.pop(), message) if is_same else message)
    if not turns or isinstance(turns[-1], AIMessage):
        turns.append(HumanMessage(prompts.NO_QUESTION))
    return [*system, *turns]


def is_empty(message: BaseMessage) -> bool:
    """Say whether a message has neither words nor calls nor media."""
    return _fit(message, {}) is None


def sent_name(name: str, unfit: re.Pattern[str] = _UNFIT) -> str:
    """Return a name as providers take it; one of a tool, with `UNFIT_IN_TOOLS`."""
    return unfit.sub("_", name)[:_LONGEST_NAME] or "_"


def own_name(name: str, is_own: Callable[[str], bool]) -> str:
    """Return a name, with a number behind it if it is not one's own."""
    return next(filter(is_own, chain([name], (f"{name[: _LONGEST_NAME - 4]}_{at}" for at in count(2)))))


def _fit(message: Message, names: dict[str, str]) -> Message | None:
    """Return the message without blanks, its name fit and nobody else's; `None` if it says nothing but thoughts.

    Args:
        message: What was said.
        names: Whose each name is; the message's own is added.
    """
    said, name = message.content, message.name
    kept: Content = [block for block in said if not _is_blank(block)] if isinstance(said, list) else said
    if isinstance(kept, str) and kept[:1].isspace() and kept.isspace():
        kept = ""
    if isinstance(message, ToolMessage):
        kept = kept or prompts.NO_RESULT
    else:
        calls = isinstance(message, AIMessage) and message.tool_calls
        if not calls and (not kept or (isinstance(kept, list) and _thinks_only(kept))):
            return None
        if name:
            name = own_name(sent_name(name), lambda one: names.setdefault(one, str(message.name)) == message.name)
    if kept == said and name == message.name:
        return message
    return message.model_copy(update={"content": kept, "name": name})


def _thinks_only(said: list[str | dict[str, Any]]) -> bool:
    return all(block.get("type") in _THOUGHTS for block in blocks_of(said))


def _is_blank(block: str | dict[str, Any]) -> bool:
    return not str(block if isinstance(block, str) else block.get("text", block)).strip()


def _joined(first: BaseMessage, second: Message) -> Message:
    """Return the second message with what the first one says before it; of two people, each with their name."""
    is_one = first.name == second.name
    said = (each.content if is_one else _with_speaker(each) for each in (first, second))
    return second.model_copy(update={"content": one_after_another(*said), "name": second.name if is_one else None})


def _with_speaker(message: BaseMessage) -> Content:
    if not message.name or not message.content:
        return message.content
    if isinstance(message.content, str):
        return f"{message.name}: {message.content}"
    return [f"{message.name}: ", *message.content]


def one_after_another(first: Content, second: Content) -> Content:
    """Return what two contents say, with an empty line between texts."""
    if not first or not second:
        return first or second
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    # Templates put the texts of blocks together as they are.
    begin, *rest = blocks_of(second)
    if begin.get("type") == "text":
        begin = {**begin, "text": f"\n\n{begin['text']}"}
    return [*blocks_of(first), begin, *rest]


def blocks_of(content: Content) -> list[dict[str, Any]]:
    """Return a content as blocks."""
    blocks = [content] if isinstance(content, str) else content
    return [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
