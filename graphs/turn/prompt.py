"""The parts of one model call: what the model is sent, how the tokens are divided among them, and how it is asked."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from graphs.process.events import TokenParts
from graphs.process.model_failures import explain, is_context_overflow, refuses_content, says_it_all
from graphs.process.models import ainvoke
from graphs.turn.answers import Pieces, check_text
from graphs.turn.calls import paired
from graphs.turn.content import (
    NOTHING,
    Refused,
    refused_more,
    remembering,
    standard,
    without_refused,
)
from graphs.turn.context import Context
from memory import prompts, text
from memory.context.budget import fit, shorten_text
from memory.context.running_summary import summary_text
from memory.context.tokens import TokenCounter
from memory.context.turns import in_turns, one_after_another
from memory.facts.rows import MemorySnapshot
from memory.injection.injected import Injected, render_block, render_deltas
from memory.provider_reason import origin, provider_reason

logger = logging.getLogger(__name__)

Message = TypeVar("Message", bound=BaseMessage)

LEAST_MESSAGE_TOKENS = 64
"""The messages' share where everything else takes the whole budget: a short question still fits."""

MEMORY_SHARE = 4
"""What of a prompt memory may take at most, and what was recalled for single messages, together: a quarter each."""
_JOINT_TOKENS = 8
"""Two texts joined can count a token more than apart; there are at most four joints, and a new line at each."""
_RECALL_JOINT_TOKENS = 2
"""What joins a delta to its message: an empty line, and one token that may be cut otherwise."""
_SIZES = 3
_SMALLER = 0.7
"""A next try after a provider found a view too long: its tokenizer counts more than ours."""


class Shares(NamedTuple):
    """How many tokens each part of a model call has; `messages` is the budget for messages and their summary."""

    system: int
    memory: int
    recalled: int
    tools: int
    reply: int
    messages: int


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What one model call is made of.

    Attributes:
        max_tokens: Tokens of the whole, reply and tool schemas included.
        reply_tokens: Tokens kept free for the reply, a quarter of all at most.
        memory_budget: Tokens of the memory block.
        system_prompt: The assistant's instructions, and those that a client put into the thread.
        summary: The running summary's text, or nothing.
        messages: The messages that no summary stands for, their content in standard form.
        tools: What the model may call.
        counter: Counts tokens.
        block: The memory block, as quoted text.
        recalled: What was recalled for single messages, as quoted text, by the messages' ids, oldest first.
    """

    max_tokens: int
    reply_tokens: int = 0
    memory_budget: int = 0
    system_prompt: str = ""
    summary: str = ""
    messages: Sequence[BaseMessage]
    tools: Sequence[BaseTool | dict[str, Any]] = ()
    counter: TokenCounter
    block: str = ""
    recalled: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def shares(self) -> Shares:
        """The tokens of each part.

        What is left when the fixed parts are counted belongs to the messages, and is `LEAST_MESSAGE_TOKENS` at least: a
        budget that small cannot hold otherwise.
        """
        count = self.counter.text
        # With a summary's note and quotes: the messages' share must not change when the first summary comes.
        frame = self.counter.message(SystemMessage(system_text(self.system_prompt, "", " ")))
        memory, recalled = count(self.block), sum(map(count, self.recalled.values()))
        # Their schemas in OpenAI's form, as they are sent with every call.
        tools = sum(count(json.dumps(convert_to_openai_tool(tool))) for tool in self.tools)
        reply = min(self.reply_tokens, self.max_tokens // 4)
        left = self.max_tokens - reply - frame - memory - recalled - tools - _JOINT_TOKENS
        return Shares(frame, memory, recalled, tools, reply, max(left, LEAST_MESSAGE_TOKENS))

    def showing(self, injected: Injected | None, snapshot: MemorySnapshot | None) -> Self:
        """Return the prompt with this memory in it: the texts of what was chosen, as they are now."""
        if injected is None or snapshot is None:
            return replace(self, block="", recalled={})
        block = render_block(injected, snapshot, self.memory_budget, self.counter.text)
        return replace(self, block=block, recalled=render_deltas(injected, snapshot))

    def without(self, refused: Refused) -> Self:
        """Return the prompt with a note in the place of what a model could not read."""
        if not refused:
            return self
        return replace(self, messages=[standard(without_refused(message, refused)) for message in self.messages])

    def exceeds(self) -> bool:
        """Return whether messages and summary no longer fit their share, so that a summary is due."""
        summary = self.counter.message(SystemMessage(summary_text(self.summary))) if self.summary else 0
        return self.counter(self.messages) + summary > self.shares.messages

    def tokens(self) -> TokenParts:
        """Return the tokens of each part, for receipts and events."""
        return TokenParts(
            system=self.shares.system + self.shares.tools,
            memory=self.shares.memory,
            recalled=self.shares.recalled,
            summary=self.counter.text(self.summary),
            messages=self.counter(self.messages),
            budget=self.max_tokens,
        )

    def view(self, max_tokens: int, *, drop: bool = True) -> list[BaseMessage]:
        """Return what the model is sent, in at most `max_tokens` tokens without tool schemas and reply.

        Everything that is no message stands in one system message at the beginning, because some providers refuse a
        later one. Behind it, user and assistant speak in turn, the user first, as chat templates of open models ask.
        The messages themselves are not changed: what was recalled is put before a copy of its user message. Of one that
        is no longer there nothing is sent, and the oldest give way before the messages do.

        Args:
            max_tokens: Tokens of the whole.
            drop: Whether the oldest messages are left out to keep it, before any is shortened.
        """
        counter, spoken = self.counter, paired(self.messages)
        system = self._system(max_tokens - LEAST_MESSAGE_TOKENS)
        room = max_tokens - counter.message(system)
        there, shown = {message.id for message in spoken}, dict[str | None, str]()
        # The newest first: it belongs to the question that is asked now.
        for message_id, told in reversed([*self.recalled.items()]):
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

    def _system(self, limit: int) -> SystemMessage:
        """Return the system message within a limit: the summary gives way first, then memory, then the prompt."""
        # Each once: with no summary, or no block, there are fewer.
        for block, summary in dict.fromkeys(((self.block, self.summary), (self.block, ""), ("", ""))):
            message = SystemMessage(system_text(self.system_prompt, block, summary))
            if self.counter.message(message) <= limit:
                return message
            logger.warning("system prompt, memory and summary take more than %d tokens: one gives way", limit)
        return SystemMessage(shorten_text(self.system_prompt, limit, self.counter))


def system_text(system_prompt: str, memory_block: str, summary: str) -> str:
    """Return the text of the system message: what changes least comes first, for the provider's prompt cache."""
    record = f"{prompts.SUMMARY_NOTE}\n{text.fenced('summary', summary)}" if summary else ""
    return "\n\n".join(part for part in (system_prompt, memory_block, record) if part)


def with_recalled(message: Message, recalled: str) -> Message:
    """Return the message with what was recalled for it before what it says; the message itself is not changed."""
    if not recalled:
        return message
    return message.model_copy(update={"content": one_after_another(recalled, message.content)})


def memory_share(context: Context) -> int:
    """Return the tokens of the memory block: what was asked for, but a quarter of the whole prompt at most."""
    return min(context.memory_tokens, context.max_tokens // MEMORY_SHARE)


async def ask_to_chat(model: Runnable[LanguageModelInput, AIMessage], prompt: Prompt, name: str) -> AIMessage:
    """Return the model's answer; it says what of the prompt the model could not read.

    A provider that finds the prompt too long, or cannot read what is in it, is asked again with less.

    Args:
        model: The model, with its tools.
        prompt: What it is asked.
        name: The model's name, for errors and for later turns.

    Raises:
        ModelUnavailable: If it refuses, fails otherwise, or answers what is no text; the sentence says what to do.
    """
    room, refused, sizes = prompt.max_tokens - prompt.shares.reply - prompt.shares.tools, NOTHING, 1
    while True:
        pieces = Pieces(name)
        try:
            sent = prompt.without(refused).view(room)
            answer = pieces.without_completed(await ainvoke(model, sent, pieces.config()))
        except Exception as error:  # each provider's package has exceptions of its own
            before = room, refused
            if not is_context_overflow(error):
                refused = (refuses_content(error) and refused_more(prompt.messages, refused)) or refused
            elif sizes < _SIZES:
                room, sizes = int(room * _SMALLER), sizes + 1
            if (room, refused) == before:
                why = explain(error, name)
                # Who runs the graph logs the sentence of the error.
                level = logging.INFO if says_it_all(why) else logging.WARNING
                logger.log(level, "%s failed: %s (%s)", name, provider_reason(error), origin(error))
                raise why from error
            logger.warning(
                "%s refused a prompt (%s): it is asked again with %d tokens at most, left out: %s",
                name, type(error).__name__, room, ", ".join(sorted({kind for _, kind in refused})) or "nothing",
            )  # fmt: skip
        else:
            check_text(answer, name)
            return remembering(answer, name, refused)
