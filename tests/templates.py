"""What the chat templates of Gemma and Mistral take, which servers of open models answer with a 400 otherwise.

One system message may come first. Then user and assistant speak in turn, the user first. An assistant's calls are
followed by one result each, and those by the assistant. Every stub of a model keeps to it.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_openai_messages

REFUSED: list[str] = []
"""What stubs refused in this process: a test that is the cause of it fails at its end."""


class TemplateRefused(Exception):
    """What a server answers to a prompt that its template refuses."""

    status_code = 400


def template_refuses(messages: Sequence[BaseMessage | dict[str, Any]]) -> str:
    """Return why a strict chat template refuses these messages; nothing if it takes them."""
    said = [convert_to_openai_messages(each) if isinstance(each, BaseMessage) else each for each in messages]
    shape = " ".join(str(one["role"]) for one in said)
    may_come, waiting = {"system", "user"}, set[str]()
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
    return f"A call without its result: {shape}" if waiting else ""


def refuse(messages: Sequence[BaseMessage | dict[str, Any]]) -> str:
    """Return what `template_refuses` does, and keep it for the end of the test."""
    if reason := template_refuses(messages):
        REFUSED.append(reason)
    return reason
