"""One model call: what the model is sent, how the tokens are divided, how it is asked, and what of its answer is kept.

Some servers answer nothing, and some cut a character in two (a lone surrogate) where a reply breaks off, or between two
pieces of a stream: no later prompt, and no checkpoint, takes one.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar
from uuid import uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, SystemMessage
from langchain_core.runnables.config import ensure_config, get_async_callback_manager_for_config
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from typing_extensions import TypedDict

from graphs.process.events import TokenParts
from graphs.process.failures import (
    ModelUnavailable,
    explain,
    is_context_overflow,
    refuses_content,
    refuses_tools,
    says_it_all,
)
from graphs.process.models import ainvoke
from graphs.turn.calls import GARBLED, paired
from graphs.turn.content import (
    NOTHING,
    REFUSED_KEY,
    SOURCES_KEY,
    TOKENS_KEY,
    Refused,
    refused_more,
    standard,
    without_refused,
)
from graphs.turn.context import Context
from memory import prompts, text
from memory.context.budget import fit, shorten_text
from memory.context.running_summary import summary_text
from memory.context.tokens import TokenCounter
from memory.context.turns import in_turns, is_empty, one_after_another
from memory.facts.rows import MemorySnapshot
from memory.injection.injected import Injected, render_block, render_deltas
from memory.message import TOLD_KEY, spoken
from memory.model_calls import origin, provider_reason
from memory.turn import MemoryMode, with_mode

logger = logging.getLogger(__name__)

Message = TypeVar("Message", bound=BaseMessage)

LEAST_MESSAGE_TOKENS = 64
"""The least share of the messages, even where all else takes the whole budget: a short question fits."""

MEMORY_SHARE = 4
"""Memory's block may take a quarter of the prompt at most, and so may all that was recalled for single messages."""
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
        sources: What of memory that shows; `None` where it shows nothing.
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
    sources: "Sources | None" = None

    @cached_property
    def shares(self) -> Shares:
        """The tokens of each part.

        What is left when the fixed parts are counted belongs to the messages, and is `LEAST_MESSAGE_TOKENS` at least: a
        budget that small cannot hold otherwise.
        """
        count = self.counter.text
        # The tokens of a summary's frame are reserved from the start, so that the messages' share never changes.
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
            return replace(self, block="", recalled={}, sources=None)
        current = {fact.id for fact in snapshot.facts}
        sources = Sources(
            facts=[fact_id for fact_id in injected.fact_ids() if fact_id in current],
            recalled=list(dict.fromkeys(entry for entry, line in injected.lines() if line in snapshot.lines)),
            profile=[name for name, _ in injected.block if name in snapshot.profile],
        )
        block = render_block(injected, snapshot, self.memory_budget, self.counter.text)
        shown, deltas = sources if any(sources.values()) else None, render_deltas(injected, snapshot)
        return replace(self, block=block, recalled=deltas, sources=shown)

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
        counter, spoken, limit = self.counter, paired(self.messages), max_tokens - LEAST_MESSAGE_TOKENS
        # The summary gives way first, then memory, then the prompt. Each once: with no summary, or no block, there are
        # fewer.
        for block, summary in dict.fromkeys(((self.block, self.summary), (self.block, ""), ("", ""))):
            system = SystemMessage(system_text(self.system_prompt, block, summary))
            if counter.message(system) <= limit:
                break
            logger.warning("system prompt, memory and summary take more than %d tokens: one gives way", limit)
        else:
            system = SystemMessage(shorten_text(self.system_prompt, limit, counter))
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


async def ask_to_chat(model: BaseChatModel, prompt: Prompt, name: str) -> tuple[AIMessage, Prompt]:
    """Return the model's answer, which says what it could not read, and the prompt, without tools that it refused.

    A provider that finds the prompt too long, or cannot read some content, is asked again with less; one that refuses
    tools is asked again without them.

    Args:
        model: The model.
        prompt: What it is asked.
        name: The model's name, for errors and for later turns.

    Raises:
        ModelUnavailable: If it refuses, or fails otherwise; the sentence says what to do.
    """
    room, refused, sizes = prompt.max_tokens - prompt.shares.reply - prompt.shares.tools, NOTHING, 1
    while True:
        pieces = Pieces(name)
        try:
            sent = prompt.without(refused).view(room)
            asked = model.bind_tools(prompt.tools) if prompt.tools else model
            callbacks = get_async_callback_manager_for_config(ensure_config()).copy()
            callbacks.add_handler(pieces)  # the call fails with the first piece that is no text
            answer = pieces.without_completed(await ainvoke(asked, sent, {"callbacks": callbacks}))
        except Exception as error:  # each provider's package has exceptions of its own
            before = room, refused
            if not is_context_overflow(error):
                refused = (refuses_content(error) and refused_more(prompt.messages, refused)) or refused
            elif sizes < _SIZES:
                room, sizes = int(room * _SMALLER), sizes + 1
            if (room, refused) == before:
                if prompt.tools and refuses_tools(error):
                    break
                why = explain(error, name)
                # Who runs the graph logs the sentence of the error.
                level = logging.INFO if says_it_all(why) else logging.WARNING
                logger.log(level, "%s failed: %s (%s)", name, provider_reason(error), origin(error))
                raise why from error
            logger.warning(
                "%s refused a prompt (%s): it is asked again with %d tokens at most, and the text alone of %d messages",
                name, type(error).__name__, room, len(refused),
            )  # fmt: skip
        else:
            if refused:
                kept = {**answer.additional_kwargs, REFUSED_KEY: {name: sorted(refused)}}
                answer = answer.model_copy(update={"additional_kwargs": kept})
            return answer, prompt
    # Outside the handler, so that a failure now is not chained to the refusal.
    return await ask_to_chat(model, replace(prompt, tools=()), name)


class Sources(TypedDict):
    """What of memory stood before the model when it replied; ids, never a text."""

    facts: list[str]
    """Ids of facts, in the memory block and before messages."""
    recalled: list[str]
    """Keys of the journal entries of which lines were shown."""
    profile: list[str]
    """Names of the profile's sections, such as `user.work`."""


def noted(
    answer: AIMessage, name: str, mode: MemoryMode, sources: Sources | None, tokens: Mapping[str, int] | None = None
) -> AIMessage:
    """Return an answer as its thread keeps it, with what its model was shown, for any client.

    In the place of one that says nothing stands a sentence for the user, which no model is sent.

    Args:
        answer: The answer.
        name: The model's name.
        mode: The mode of its question, so that a later, looser mode does not learn it.
        sources: What of memory the model was shown.
        tokens: Of each part of its prompt.

    Raises:
        ModelUnavailable: If it is no text, which no checkpoint takes.
    """
    check_text(answer, name)
    if is_empty(spoken(answer)):
        sentence = f"{name!r} answered nothing: try again, or choose another model."
        kept = {**answer.additional_kwargs, TOLD_KEY: True}
        # Under a new id: LangGraph streams nothing more of an id that it has streamed.
        answer = answer.model_copy(update={"id": str(uuid4()), "content": sentence, "additional_kwargs": kept})
    told = {key: {**said} for key, said in ((SOURCES_KEY, sources), (TOKENS_KEY, tokens)) if said is not None}
    if told:
        answer = answer.model_copy(update={"response_metadata": {**answer.response_metadata, **told}})
    return with_mode(answer, mode)


def check_text(said: object, name: str) -> None:
    """Raise `ModelUnavailable` for what a model said if that is no text."""
    try:
        _json(said.model_dump() if isinstance(said, AIMessage) else said).encode()
    except UnicodeEncodeError:
        raise ModelUnavailable(
            f"{name!r} answered with characters that are no text: try again, or choose another model."
        ) from None


def _json(said: object) -> str:
    return json.dumps(said, ensure_ascii=False, default=str)


class Pieces(BaseCallbackHandler):
    """The pieces of a reply, if it is streamed.

    Args:
        name: The model's name, for errors.
    """

    run_inline = raise_error = True

    def __init__(self, name: str) -> None:
        self._name = name
        self._arguments: dict[object, str] = {}

    def without_completed(self, answer: AIMessage) -> AIMessage:
        """Return the answer that came of the pieces; a call whose arguments broke off is one that cannot be read."""
        garbled = [call["args"] for call in answer.invalid_tool_calls]
        told = [each for each in self._arguments.values() if each not in garbled]
        if not told or len(told) != len(answer.tool_calls):
            return answer
        calls = [*answer.tool_calls]
        for at, args in enumerate(told):
            try:
                json.loads(args or "{}")
            except ValueError:
                calls[at] = {**calls[at], "args": {GARBLED: args}}
        return answer.model_copy(update={"tool_calls": calls})

    def on_llm_new_token(self, token: object, *, chunk: Any = None, **_: Any) -> None:
        """Look at one piece; of one that is no text, those who are told of it too see what is."""
        message, parts = getattr(chunk, "message", None), dict[str, Any]()
        if isinstance(message, AIMessageChunk):
            parts = {name: getattr(message, name) for name in ("content", "tool_call_chunks", "additional_kwargs")}
            for each in message.tool_call_chunks:
                place = len(self._arguments) if each["index"] is None else each["index"]
                self._arguments[place] = self._arguments.get(place, "") + (each["args"] or "")
        try:
            check_text([token, *parts.values()], self._name)
        except ModelUnavailable:
            # In place: a server that streams it would fail in words of its own before this error is told.
            for name, said in parts.items():
                setattr(message, name, json.loads(_json(said).encode(errors="replace")))
            raise
