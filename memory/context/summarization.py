"""The public face of the context tier: as functions, and as a node of a graph."""

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic import BaseModel

from memory import prompts
from memory.context.budget import Budget
from memory.context.driving import FlushHook, arun, run
from memory.context.running_summary import SUMMARY_ID, RunningSummary, state_of
from memory.context.summarizer import UNFLUSHED, Cut, SummarizationResult, Summarizer, SummaryEffects
from memory.context.summary_prompt import Prompt, SummaryPrompts
from memory.context.tokens import MessagesCounter, TokenCounter

__all__ = [
    "SUMMARY_ID",
    "Cut",
    "FlushHook",
    "RunningSummary",
    "SummarizationNode",
    "SummarizationResult",
    "asummarize_messages",
    "summarize_messages",
]

NOT_SUMMARIZED = "not_summarized"
"""Where a state's `context` names the turn in which model or hook failed."""


def summarize_messages(
    messages: Sequence[BaseMessage],
    *,
    running_summary: RunningSummary | None,
    model: LanguageModelLike,
    max_tokens: int,
    max_tokens_before_summary: int | None = None,
    max_summary_tokens: int = 256,
    token_counter: MessagesCounter | TokenCounter | None = None,
    initial_summary_prompt: Prompt = prompts.INITIAL_SUMMARY,
    existing_summary_prompt: Prompt = prompts.UPDATE_SUMMARY,
    final_prompt: ChatPromptTemplate | None = None,
    keep_tokens: int | None = None,
    keep_messages: int | None = None,
    portion_tokens: int | None = None,
    memory_flush_hook: FlushHook | None = None,
) -> SummarizationResult:
    """Summarize the oldest messages of a conversation when it exceeds its budget.

    The newest user message always stays, and so does a model's message together with the results of its tool calls.
    If the model or the hook fails, or the summary is empty, nothing is summarized: the result is a view that fits,
    without the oldest messages, and the next call tries again.

    Args:
        messages: The conversation, oldest first; a leading system message is kept.
        running_summary: What the last call returned; messages that it stands for are not summarized again.
        model: Writes the summaries.
        max_tokens: Tokens that the result has at most; also those of messages and existing summary that the model is
            sent in one call. More messages are summarized in several calls.
        max_tokens_before_summary: Summarize when so many tokens of messages are new, even within the budget.
        max_summary_tokens: The share of the budget reserved for the summary. A longer summary is asked for again
            once, then cut.
        token_counter: Counts a list of messages; by default cl100k_base tokens, each message counted once.
        initial_summary_prompt: Words for a first summary, or a template with the placeholder `messages`.
        existing_summary_prompt: Words for a further one with `{existing_summary}` in them, or such a template.
        final_prompt: A template for the result with `system_message`, `summary` and `messages`.
        keep_tokens: Tokens of messages that a cut leaves; half of what the summary leaves by default, and at most.
        keep_messages: Messages that a cut leaves, instead.
        portion_tokens: Summarize so many tokens of messages in one call, without showing the existing summary, and
            join what comes of it to that; when it gets too long, the whole is asked for again, shorter. For models of
            a few billion parameters, which copy an existing summary instead of extending it.
        memory_flush_hook: Called with exactly the messages that are about to leave, when their summary exists.

    Returns:
        The messages to send, and the running summary to hand in next time.

    Raises:
        ValueError: If a message has no id, or a number cannot be meant (`max_summary_tokens >= max_tokens`).
    """
    summarizer = _summarizer(
        Budget(
            max_tokens=max_tokens,
            max_summary_tokens=max_summary_tokens,
            max_tokens_before_summary=max_tokens_before_summary,
            keep_tokens=keep_tokens,
            keep_messages=keep_messages,
        ),
        token_counter,
        SummaryPrompts(initial_summary_prompt, existing_summary_prompt),
        final_prompt,
        portion_tokens,
    )
    return run(summarizer.steps(messages, running_summary), model, memory_flush_hook)


async def asummarize_messages(
    messages: Sequence[BaseMessage],
    *,
    running_summary: RunningSummary | None,
    model: LanguageModelLike,
    max_tokens: int,
    max_tokens_before_summary: int | None = None,
    max_summary_tokens: int = 256,
    token_counter: MessagesCounter | TokenCounter | None = None,
    initial_summary_prompt: Prompt = prompts.INITIAL_SUMMARY,
    existing_summary_prompt: Prompt = prompts.UPDATE_SUMMARY,
    final_prompt: ChatPromptTemplate | None = None,
    keep_tokens: int | None = None,
    keep_messages: int | None = None,
    portion_tokens: int | None = None,
    memory_flush_hook: FlushHook | None = None,
) -> SummarizationResult:
    """Do what `summarize_messages` does without blocking the event loop; a synchronous hook runs in a thread."""
    summarizer = _summarizer(
        Budget(
            max_tokens=max_tokens,
            max_summary_tokens=max_summary_tokens,
            max_tokens_before_summary=max_tokens_before_summary,
            keep_tokens=keep_tokens,
            keep_messages=keep_messages,
        ),
        token_counter,
        SummaryPrompts(initial_summary_prompt, existing_summary_prompt),
        final_prompt,
        portion_tokens,
    )
    await summarizer.counter.awarm_up()
    return await arun(summarizer.steps(messages, running_summary), model, memory_flush_hook)


class SummarizationNode(Runnable[Any, dict[str, Any]]):
    """A graph's node that keeps what the model sees of a thread within a budget.

    It reads the messages under `input_messages_key` and writes those to send under `output_messages_key`, and the
    `RunningSummary` under `context["running_summary"]`; what else a state holds under `context` stays. When model or
    hook fail, `context["not_summarized"]` names the user message of the turn, and they are not asked again before the
    next one: a turn of many tool calls must not wait for the same failure at each. A summary that exists then waits
    under `context["unflushed_summary"]` for the hook. With both keys equal the summarized messages leave the state: it
    writes `RemoveMessage(REMOVE_ALL_MESSAGES)`, then the new list, in which no message is shortened.

    Args:
        model: Writes the summaries; its tokens are kept out of the stream mode `messages`.
        max_tokens: As in `summarize_messages`, like all that are not named here.
        input_messages_key: Where the conversation is.
        output_messages_key: Where the messages to send go.
        name: The node's name in traces.

    Raises:
        ValueError: If a number or a prompt cannot be meant; when it runs, if the messages are missing or have no ids.
    """

    def __init__(
        self,
        *,
        model: LanguageModelLike,
        max_tokens: int,
        max_tokens_before_summary: int | None = None,
        max_summary_tokens: int = 256,
        token_counter: MessagesCounter | TokenCounter | None = None,
        initial_summary_prompt: Prompt = prompts.INITIAL_SUMMARY,
        existing_summary_prompt: Prompt = prompts.UPDATE_SUMMARY,
        final_prompt: ChatPromptTemplate | None = None,
        input_messages_key: str = "messages",
        output_messages_key: str = "summarized_messages",
        name: str = "summarization",
        keep_tokens: int | None = None,
        keep_messages: int | None = None,
        portion_tokens: int | None = None,
        memory_flush_hook: FlushHook | None = None,
    ) -> None:
        self.name = name
        self.model = model
        self.input_messages_key = input_messages_key
        self.output_messages_key = output_messages_key
        self.memory_flush_hook = memory_flush_hook
        self.summarizer = _summarizer(
            Budget(
                max_tokens=max_tokens,
                max_summary_tokens=max_summary_tokens,
                max_tokens_before_summary=max_tokens_before_summary,
                keep_tokens=keep_tokens,
                keep_messages=keep_messages,
            ),
            token_counter,
            SummaryPrompts(initial_summary_prompt, existing_summary_prompt),
            final_prompt,
            portion_tokens,
        )

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002 - inherited
        """Return the update of the state."""
        return self.update(input, self.result(input, config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002
        """Return the update of the state."""
        return self.update(input, await self.aresult(input, config))

    def result(self, state: object, config: RunnableConfig | None = None) -> SummarizationResult:
        """Return what comes of the state's messages, before it is made an update."""
        return run(self._steps(state), self.model, self.memory_flush_hook, config)

    async def aresult(self, state: object, config: RunnableConfig | None = None) -> SummarizationResult:
        """Return what comes of the state's messages, before it is made an update."""
        await self.summarizer.counter.awarm_up()
        return await arun(self._steps(state), self.model, self.memory_flush_hook, config)

    def update(self, state: object, result: SummarizationResult) -> dict[str, Any]:
        """Return the update that writes a result into the state it came from."""
        running, messages = result.running_summary, self._messages(state)
        context = self._context(state, result)
        if self.input_messages_key != self.output_messages_key:
            return {self.output_messages_key: result.messages, **context}
        if running is None:
            return {self.output_messages_key: messages, **context}
        whole = self.summarizer.whole(messages, running)
        return {self.output_messages_key: [RemoveMessage(REMOVE_ALL_MESSAGES), *whole], **context}

    def _context(self, state: object, result: SummarizationResult) -> dict[str, Any]:
        """Return the update of what a state holds under `context`; nothing where nothing is to be said."""
        before = state_of(_read(state, "context"))
        after = {key: value for key, value in before.items() if result.failed or key not in (NOT_SUMMARIZED, UNFLUSHED)}
        if result.running_summary is not None:
            after["running_summary"] = result.running_summary
        if result.failed:
            after[NOT_SUMMARIZED] = _turn_of(self._messages(state))
        if result.unflushed is not None:
            after[UNFLUSHED] = result.unflushed
        return {"context": after} if after or before else {}

    def _steps(self, state: object) -> SummaryEffects:
        context, messages = state_of(_read(state, "context")), self._messages(state)
        failed_in = context.get(NOT_SUMMARIZED)
        has_failed = bool(failed_in) and failed_in == _turn_of(messages)
        kept = context.get(UNFLUSHED)
        return self.summarizer.steps(messages, context.get("running_summary"), has_failed=has_failed, kept=kept)

    def _messages(self, state: object) -> Sequence[BaseMessage]:
        messages = _read(state, self.input_messages_key)
        if messages is None:
            raise ValueError(f"the state has no {self.input_messages_key!r}: set input_messages_key to its messages")
        return messages  # type: ignore[no-any-return]  # a state's values are what its schema says


def _summarizer(
    budget: Budget,
    token_counter: MessagesCounter | TokenCounter | None,
    words: SummaryPrompts,
    final_prompt: ChatPromptTemplate | None,
    portion_tokens: int | None,
) -> Summarizer:
    return Summarizer(
        budget=budget,
        counter=TokenCounter.of(token_counter),
        prompts=words,
        final_prompt=final_prompt,
        portion_tokens=portion_tokens,
    )


def _turn_of(messages: Sequence[BaseMessage]) -> str | None:
    """Return the id of the newest user message, which names the turn."""
    return next((message.id for message in reversed(messages) if isinstance(message, HumanMessage)), None)


def _read(state: object, key: str) -> Any:
    """Return one key of a state: a mapping, a pydantic model or a dataclass."""
    if isinstance(state, Mapping):
        return state.get(key)
    if isinstance(state, BaseModel) or is_dataclass(state):
        return getattr(state, key, None)
    raise ValueError(f"the state must be a mapping, a pydantic model or a dataclass, not {type(state).__name__}")
