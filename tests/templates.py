"""What any server takes: a prompt that one of them answers with a 400 is refused by every stub of a model.

One system message may come first. Then user and assistant speak in turn, the user first. An assistant's calls are
followed by one result each, and those by the assistant: so have it the chat templates of Gemma and Mistral. Each
message says something (Anthropic, Moonshot), in blocks that all know; each call has an id that no other has
(Anthropic); names are fit (OpenAI).
"""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_openai_messages

REFUSED: list[str] = []
"""What stubs refused in this process: a test that is the cause of it fails at its end."""


_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
_NAME_OF_TOOL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# OpenAI's, and those of LangChain that the packages of providers translate.
_BLOCKS = {"text", "image_url", "input_audio", "file", "image", "audio", "video"}


class TemplateRefused(Exception):
    """What a server answers to a prompt that its template refuses."""

    status_code = 400


def template_refuses(messages: Sequence[BaseMessage | dict[str, Any]], own: Collection[str] = ()) -> str:
    """Return why some server refuses these messages; nothing if all take them.

    Args:
        messages: What it is sent.
        own: Kinds of blocks that this one knows beside those that all do.
    """
    said = [convert_to_openai_messages(each) if isinstance(each, BaseMessage) else each for each in messages]
    shape = " ".join(str(one["role"]) for one in said)
    may_come, waiting = {"system", "user"}, set[str]()
    if wrong := next(_wrong(said, messages, {*_BLOCKS, *own}), ""):
        return f"{wrong}: {shape}"
    for one in said:
        if one["role"] not in may_come:
            return f"Conversation roles must alternate user/assistant/user/assistant/...: {shape}"
        calls = [call["id"] for call in one.get("tool_calls") or ()] if one["role"] == "assistant" else []
        if one["role"] == "tool":
            if one["tool_call_id"] not in waiting:
                return f"A result without its call: {shape}"
            waiting.remove(one["tool_call_id"])
        waiting.update(calls)
        after = {"system": "user", "user": "assistant", "assistant": "user", "tool": "assistant"}
        may_come = {"tool"} if waiting else {after[one["role"]]}
    if waiting:
        return f"A call without its result: {shape}"
    return "" if may_come != {"user"} and said else f"Expected last role user or tool: {shape}"


def _wrong(
    said: Sequence[dict[str, Any]], given: Sequence[BaseMessage | dict[str, Any]], known: set[str]
) -> Iterator[str]:
    """Yield what is wrong with single messages, each as OpenAI's form has it and as it was given."""
    ids = [call["id"] for one in said for call in one.get("tool_calls") or ()]
    if not all(ids) or len({*ids}) < len(ids):
        yield f"Ids of calls must be there, and unique: {ids}"
    for at, (one, sent) in enumerate(zip(said, given, strict=True)):
        content = (sent.content if isinstance(sent, BaseMessage) else sent.get("content")) or ""
        calls = [call["function"] for call in one.get("tool_calls") or ()]
        blocks = [block if isinstance(block, dict) else _text(block) for block in _listed(content)]
        if not (blocks or calls) or not all(block["text"].strip() for block in blocks if block["type"] == "text"):
            yield f"messages[{at}] is empty"
        if unknown := {block["type"] for block in blocks} - known:
            yield f"messages[{at}] has blocks that are not known, {unknown}"
        if one.get("name") is not None and not _NAME.fullmatch(one["name"]):
            yield f"messages[{at}].name does not match {_NAME.pattern!r}, {one['name']!r}"
        for call in calls:
            if not _NAME_OF_TOOL.fullmatch(call["name"]):
                yield f"messages[{at}] calls what no tool is called, {call['name']!r}"
            if not isinstance(json.loads(call["arguments"]), dict):
                yield f"messages[{at}] calls with what is no object, {call['arguments']!r}"


def _listed(content: str | list[Any]) -> list[Any]:
    return [content] if isinstance(content, str) and content else list(content)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def refuse(messages: Sequence[BaseMessage | dict[str, Any]], own: Collection[str] = ()) -> str:
    """Return what `template_refuses` does, and keep it for the end of the test."""
    if reason := template_refuses(messages, own):
        REFUSED.append(reason)
    return reason
