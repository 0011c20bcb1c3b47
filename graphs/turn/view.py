"""What the model is sent: system prompt, memory block, summary, and messages with what was recalled for them. Pure."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from graphs.turn.calls import UNKNOWN, with_calls, with_own_ids
from memory import prompts, text
from memory.context.budget import fit, shorten_text
from memory.context.tokens import TokenCounter
from memory.context.turns import UNFIT_IN_TOOLS, in_turns, one_after_another, sent_name

logger = logging.getLogger(__name__)

Message = TypeVar("Message", bound=BaseMessage)

LEAST_MESSAGE_TOKENS = 64
"""The messages' share where everything else takes the whole budget: a short question still fits."""

_JOINT_TOKENS = 8
"""Two texts joined can count a token more than apart; there are at most four joints, and a new line at each."""

_RECALL_JOINT_TOKENS = 2
"""What joins a delta to its message: an empty line, and one token that may be cut otherwise."""

_SMALLER = 0.7


def paired(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with each tool call followed by its result, which providers refuse to go without.

    A call that has none gets one that says so; one that has no id, or that of an earlier call, gets one of its own. A
    result whose call is gone is left out, and so is a call that the model garbled.
    """
    sent: list[BaseMessage] = []
    # By the ids that the thread has for calls: where their results go, and under which id.
    waiting: dict[str, list[tuple[int, str]]] = {}
    taken = set[str | None]()
    for message in messages:
        if isinstance(message, ToolMessage):
            if places := waiting.get(message.tool_call_id):
                at, own = places.pop(0)
                fit = {"tool_call_id": own, "name": message.name and sent_name(message.name, UNFIT_IN_TOOLS)}
                sent[at] = message.model_copy(update=fit)
            continue
        if not isinstance(message, AIMessage):
            sent.append(message)
            continue
        read = with_calls(message, message.tool_calls) if message.invalid_tool_calls else message
        answer = with_own_ids(read, taken)
        sent.append(answer)
        # Not what is left from before: some models number their calls anew in each message.
        waiting.update((str(call["id"] or ""), []) for call in message.tool_calls)
        for call, own_call in zip(message.tool_calls, answer.tool_calls, strict=True):
            waiting[str(call["id"] or "")].append((len(sent), str(own_call["id"])))
            sent.append(ToolMessage(UNKNOWN, tool_call_id=own_call["id"]))
    return sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How many tokens each part of a model call has; `messages` is the budget for messages and their summary."""

    system: int
    memory: int
    recalled: int
    tools: int
    reply: int
    messages: int


def shares(
    *,
    max_tokens: int,
    reply_tokens: int,
    system_prompt: str,
    memory_block: str,
    recalled: Mapping[str, str],
    tools: Sequence[BaseTool | Mapping[str, object]],
    counter: TokenCounter,
) -> Shares:
    """Divide the tokens of one model call among its parts.

    The reply's share is a quarter of all at most. What is left when the fixed parts are counted belongs to the
    messages, and is `LEAST_MESSAGE_TOKENS` at least: a budget that small cannot hold otherwise.
    """
    # With a summary's note and quotes: the messages' share must not change when the first summary comes.
    frame = counter.message(SystemMessage(system_text(system_prompt, "", " ")))
    memory = counter.text(memory_block)
    recalled_tokens = sum(map(counter.text, recalled.values()))
    tool_tokens = count_tools(tools, counter)
    reply = min(reply_tokens, max_tokens // 4)
    left = max_tokens - reply - frame - memory - recalled_tokens - tool_tokens - _JOINT_TOKENS
    return Shares(
        system=frame,
        memory=memory,
        recalled=recalled_tokens,
        tools=tool_tokens,
        reply=reply,
        messages=max(left, LEAST_MESSAGE_TOKENS),
    )


def view(
    *,
    system_prompt: str,
    memory_block: str,
    summary: str,
    messages: Sequence[BaseMessage],
    recalled: Mapping[str, str],
    max_tokens: int,
    counter: TokenCounter,
    drop: bool = True,
) -> list[BaseMessage]:
    """Return what the model is sent, in at most `max_tokens` tokens.

    Everything that is no message stands in one system message at the beginning, because some providers refuse a
    later one. Behind it, user and assistant speak in turn, the user first, as chat templates of open models ask. The
    messages themselves are not changed: what was recalled is put before a copy of its user message.

    Args:
        system_prompt: The assistant's instructions.
        memory_block: What memory holds of the user, as quoted text; may be empty.
        summary: The running summary's text; may be empty.
        messages: The messages that no summary stands for.
        recalled: What was recalled for user messages, by their ids, oldest first; of one that is no longer there
            nothing is sent, and the oldest give way before the messages do.
        max_tokens: Tokens of the whole, without tool schemas and reply.
        counter: Counts messages.
        drop: Whether the oldest messages are left out to keep it, before any is shortened.
    """
    system = _fitting_system(system_prompt, memory_block, summary, max_tokens, counter)
    spoken = paired(messages)
    room = max_tokens - counter.message(system)
    there, shown = {message.id for message in spoken}, dict[str | None, str]()
    # The newest first: it belongs to the question that is asked now.
    for message_id, told in reversed([*recalled.items()]):
        tokens = counter.text(told) + _RECALL_JOINT_TOKENS
        if message_id in there and tokens <= room - LEAST_MESSAGE_TOKENS:
            shown[message_id] = told
            room -= tokens
    while True:
        fitting = fit(spoken, max(room, LEAST_MESSAGE_TOKENS), counter, drop=drop)
        sent = in_turns([system, *(with_recalled(message, shown.get(message.id, "")) for message in fitting)])
        over = counter(sent) - max_tokens
        if over <= 0 or room <= LEAST_MESSAGE_TOKENS:
            return sent
        room -= over


def system_text(system_prompt: str, memory_block: str, summary: str) -> str:
    """Return the text of the system message: what changes least comes first, for the provider's prompt cache."""
    record = f"{prompts.SUMMARY_NOTE}\n{text.fenced('summary', summary)}" if summary else ""
    return "\n\n".join(part for part in (system_prompt, memory_block, record) if part)


def _fitting_system(
    system_prompt: str, memory_block: str, summary: str, max_tokens: int, counter: TokenCounter
) -> SystemMessage:
    """Return the system message within the budget: the summary gives way first, then memory, then the prompt."""
    limit = max_tokens - LEAST_MESSAGE_TOKENS
    full = SystemMessage(system_text(system_prompt, memory_block, summary))
    if counter.message(full) <= limit:
        return full
    logger.warning("system prompt, memory and summary take more than %d tokens: they are shortened", limit)
    # A summary of a few tokens would tell less than its note and quotes cost.
    frame = counter.message(SystemMessage(system_text(system_prompt, memory_block, " ")))
    if summary and limit - frame >= LEAST_MESSAGE_TOKENS:
        return SystemMessage(system_text(system_prompt, memory_block, shorten_text(summary, limit - frame, counter)))
    bare = SystemMessage(system_text(system_prompt, memory_block, ""))
    return bare if counter.message(bare) <= limit else SystemMessage(shorten_text(system_prompt, limit, counter))


def count_tools(tools: Sequence[BaseTool | Mapping[str, object]], counter: TokenCounter) -> int:
    """Return the tokens of the tools' schemas, in OpenAI's form, as they are sent with every call."""
    schemas = (convert_to_openai_tool(tool if isinstance(tool, BaseTool) else dict(tool)) for tool in tools)
    return sum(counter.text(json.dumps(schema)) for schema in schemas)


def smaller(max_tokens: int) -> int:
    """Return the budget of the next try after a provider found a view too long: its tokenizer counts more than ours."""
    return int(max_tokens * _SMALLER)


def with_recalled(message: Message, recalled: str) -> Message:
    """Return the message with what was recalled for it before what it says; the message itself is not changed."""
    if not recalled:
        return message
    return message.model_copy(update={"content": one_after_another(recalled, message.content)})
