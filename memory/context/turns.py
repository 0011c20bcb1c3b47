"""Messages as any server takes them: one system message, then user and assistant in turn, none empty. Pure."""

import re
import unicodedata
from collections.abc import Iterable
from itertools import count
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from memory import prompts

Content = str | list[str | dict[str, Any]]
Message = TypeVar("Message", bound=BaseMessage)

_SPEAKERS = (HumanMessage, AIMessage)
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST_NAME = 64


def in_turns(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return the messages as any server takes them; the messages themselves are not changed.

    System messages become one, at the beginning. What says nothing is left out. Neighbours of one role are joined, and
    names are fit. A line stands for what no result says, for the question of an answer that comes first, for the answer
    to a user who went on behind results of tools, and for the question where the last word is an answer. Each call of a
    tool is to have its result already.
    """
    system: list[BaseMessage] = []
    turns: list[BaseMessage] = []
    names: dict[str, str] = {}
    for message in (_with_fit_name(said, names) for said in map(_without_blanks, messages) if _says(said)):
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
    return not _says(_without_blanks(message))


def fit_name(name: str) -> str:
    """Return a name as every provider takes it."""
    return _UNFIT.sub("_", name)[:_LONGEST_NAME]


def _with_fit_name(message: Message, names: dict[str, str]) -> Message:
    """Return the message with a name that is fit, or with one that cannot be before what it says.

    Args:
        message: What was said.
        names: Whose each fit name is; the message's own is added.
    """
    if message.name is None or isinstance(message, ToolMessage):
        return message
    letters = unicodedata.normalize("NFKD", message.name.strip())
    fit = fit_name(letters.encode("ascii", "ignore").decode())
    if not fit or any(each.isalpha() and not each.isascii() for each in letters):
        return message.model_copy(update={"content": _named(message), "name": None})
    different = (fit if at == 1 else f"{fit[: _LONGEST_NAME - 4]}_{at}" for at in count(1))
    own = next(name for name in different if names.setdefault(name, message.name) == message.name)
    return message.model_copy(update={"name": own})


def _without_blanks(message: Message) -> Message:
    said = message.content
    kept = [block for block in said if not _is_blank(block)] if isinstance(said, list) else said if said.strip() else ""
    if not kept and isinstance(message, ToolMessage):
        kept = prompts.NO_RESULT
    return message if kept == said else message.model_copy(update={"content": kept})


def _is_blank(block: str | dict[str, Any]) -> bool:
    text = block if isinstance(block, str) else block.get("text")
    return isinstance(text, str) and not text.strip()


def _says(message: BaseMessage) -> bool:
    """Say whether anything is left of a message without its blanks: words, media or calls, and not thoughts alone."""
    if isinstance(message, AIMessage) and message.tool_calls:
        return True
    return any(isinstance(block, str) or block.get("type") not in _THOUGHTS for block in message.content)


def _joined(first: BaseMessage, second: Message) -> Message:
    """Return the second message with what the first one says before it; of two people, each with their name."""
    if first.name == second.name:
        return second.model_copy(update={"content": _one_after_another(first.content, second.content)})
    content = _one_after_another(_named(first), _named(second))
    return second.model_copy(update={"content": content, "name": None})


def _named(message: BaseMessage) -> Content:
    if not (message.name or "").strip() or not message.content:
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
