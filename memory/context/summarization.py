"""The public face of the context tier: as functions, and as a node of a graph."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, Unpack, cast, get_args

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from typing_extensions import TypedDict

from memory.context.budget import choose_cut
from memory.context.running_summary import (
    HANDED_OVER,
    LEFT_OUT,
    SUMMARY_ID,
    RunningSummary,
    divide,
    state_of,
)
from memory.context.summarizer import (
    Caller,
    Draft,
    FlushHook,
    PreparedSummary,
    SummarizationResult,
    Summarizer,
)
from memory.context.summary_prompt import Prompt
from memory.context.tokens import MessagesCounter, TokenCounter
from memory.door import in_this_thread
from memory.forms import plain
from memory.message import GivenMessages, as_messages

NOT_SUMMARIZED = "not_summarized"
"""Where a state's `context` names the turn in which model or hook failed."""

SummarizeWhen = Literal["before", "after"]
"""Whether a turn that is due for a summary waits for it, or goes on with what fits and has it written afterwards."""


class SummaryOptions(TypedDict, total=False):
    """What the functions and the node take alike; `summarize_messages` says what each means, and its default."""

    model: Required[LanguageModelLike]
    max_tokens: Required[int]
    max_tokens_before_summary: int | None
    max_summary_tokens: int
    token_counter: MessagesCounter | TokenCounter | None
    initial_summary_prompt: Prompt
    existing_summary_prompt: Prompt
    final_prompt: ChatPromptTemplate | None
    keep_tokens: int | None
    keep_messages: int | None
    portion_tokens: int | None
    memory_flush_hook: FlushHook | None
    prepared_summary: PreparedSummary | None


def summarize_messages(
    messages: GivenMessages, *, running_summary: RunningSummary | None, **options: Unpack[SummaryOptions]
) -> SummarizationResult:
    """Summarize the oldest messages of a conversation when it exceeds its budget.

    The newest user message always stays, and so does a model's message together with the results of its tool calls.
    If the model or the hook fails, or the summary is empty, nothing is summarized: the result is a view that fits,
    without the oldest messages, and the next call tries again.

    Args:
        messages: The conversation, oldest first, in any form that LangChain takes; a leading system message is kept.
            A message without an id gets one from what it says and how often that came before.
        running_summary: What the last call returned; messages that it stands for are not summarized again.
        model: Writes the summaries.
        max_tokens: Tokens that the result has at most; also those of messages and existing summary that the model is
            sent in one call. More messages are summarized in several calls.
        max_tokens_before_summary: Summarize when so many tokens of messages are new, even within the budget.
        max_summary_tokens: The share of the budget reserved for the summary, 256 by default. A longer summary is asked
            for again once, then cut. At least 1, where langmem takes 0.
        token_counter: Counts a list of messages; by default cl100k_base tokens, each message counted once.
        initial_summary_prompt: Words for a first summary, or a template with the placeholder `messages`.
        existing_summary_prompt: Words for a further one with `{existing_summary}` in them, or such a template.
        final_prompt: A template for the result with `system_message`, `summary` and `messages`.
        keep_tokens: Tokens of messages that a cut leaves; by default, and at most, half of the budget without summary.
        keep_messages: Messages that a cut leaves at most, within `keep_tokens`.
        portion_tokens: Summarize so many tokens of messages in one call, without showing the existing summary, and
            append the answer to that; if the whole gets too long, its middle is dropped. For models of a few billion
            parameters, which copy an existing summary instead of extending it.
        memory_flush_hook: Called with exactly the messages that are about to leave, when their summary exists.
        prepared_summary: Called when a summary is due, for one that a `SummarizationNode.draft` wrote earlier. If it
            still stands for the first of the messages that leave, it is used, and no model is asked.

    Returns:
        The messages to send, and the running summary to hand in next time.

    Raises:
        ValueError: If a message has no form that LangChain takes, or a number cannot be meant
            (`max_summary_tokens >= max_tokens`).
    """
    summarizer = Summarizer(**options)
    now = summarizer.measured(as_messages(messages), {"running_summary": running_summary})
    return in_this_thread(summarizer.outcome(now, Caller()))


async def asummarize_messages(
    messages: GivenMessages, *, running_summary: RunningSummary | None, **options: Unpack[SummaryOptions]
) -> SummarizationResult:
    """Do what `summarize_messages` does without blocking the event loop; a synchronous hook runs in a thread."""
    summarizer = Summarizer(**options)
    await summarizer.counter.awarm_up()
    now = summarizer.measured(as_messages(messages), {"running_summary": running_summary})
    return await summarizer.outcome(now, Caller(is_awaited=True))


class SummarizationNode(Runnable[Any, dict[str, Any]]):
    """A graph's node that keeps what the model sees of a thread within a budget.

    It reads the messages under `input_messages_key` and writes those to send under `output_messages_key`, and the
    `RunningSummary` under `context["running_summary"]`; what else a state holds under `context` stays. When model or
    hook fail, `context["not_summarized"]` names the user message of the turn, and they are not asked again before the
    next one: a turn of many tool calls must not wait for the same failure at each. Messages that the view leaves out
    though no summary stands for them are named under `context["left_out"]`; those that the hook was given, under
    `context["handed_over"]`. With both keys equal the summarized messages leave the state: it writes
    `RemoveMessage(REMOVE_ALL_MESSAGES)`, then the new list, in which no message is shortened.

    Args:
        input_messages_key: Where the conversation is.
        output_messages_key: Where the messages to send go.
        name: The node's name in traces.
        summarize: `before` asks the model as soon as a summary is due, and the turn waits. `after` asks nobody: the
            view leaves out what does not fit, once the hook has it, until `prepared_summary` returns the summary that
            you wrote after a turn, as its `draft`. It needs a checkpointer.
        options: As in `summarize_messages`. The model's tokens are kept out of the stream mode `messages`.

    Raises:
        ValueError: If a number or a prompt cannot be meant, or with `after` there is no `prepared_summary`; when it
            runs, if the messages are missing.
    """

    def __init__(
        self,
        *,
        input_messages_key: str = "messages",
        output_messages_key: str = "summarized_messages",
        name: str = "summarization",
        summarize: SummarizeWhen = "before",
        **options: Unpack[SummaryOptions],
    ) -> None:
        self.name = name
        self.input_messages_key = input_messages_key
        self.output_messages_key = output_messages_key
        self.summarize = summarize
        self.summarizer = Summarizer(**options)
        if summarize not in get_args(SummarizeWhen):
            raise ValueError(f"summarize must be 'before' or 'after', not {summarize!r}")
        if summarize == "after" and self.summarizer.prepared_summary is None:
            raise ValueError("summarize='after' needs prepared_summary: nothing else would ever be a summary")

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002 - inherited
        """Return the update of the state."""
        return self.update(input, in_this_thread(self._result(input, Caller(config))))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002
        """Return the update of the state."""
        return self.update(input, await self.aresult(input, config))

    async def aresult(self, state: object, config: RunnableConfig | None = None) -> SummarizationResult:
        """Return what comes of the state's messages, before it is made an update."""
        await self.summarizer.counter.awarm_up()
        return await self._result(state, Caller(config, is_awaited=True))

    async def _result(self, state: object, caller: Caller) -> SummarizationResult:
        messages, context = self._read(state)
        now = self.summarizer.measured(messages, context)
        # In a turn of many tool calls, nobody is asked again after a failure.
        has_failed = _turn_of(messages) == (context.get(NOT_SUMMARIZED) or "")
        return await self.summarizer.outcome(now, caller, waits=self.summarize == "before", has_failed=has_failed)

    def draft(self, state: object, share: float) -> Draft | None:
        """Return the summary that the next cut of a state will need, to be written before it is due.

        Args:
            state: The state as a turn leaves it.
            share: While less than this share of `max_tokens` is there, it is too early to say: `None`.
        """
        now = self.summarizer.measured(*self._read(state))
        keep = self.summarizer.keep_ahead(share, system=now.system, counts=now.counts, beside=now.beside)
        leaving = choose_cut(now.talk.live, self.summarizer.counter, keep, ahead=True) if keep else ()
        return Draft(self.summarizer, now.talk, leaving) if leaving else None

    def update(self, state: object, result: SummarizationResult) -> dict[str, Any]:
        """Return the update that writes a result into the state it came from."""
        messages, before = self._read(state)
        running, context = result.running_summary, {**before}
        for key in (LEFT_OUT, HANDED_OVER, NOT_SUMMARIZED):
            context.pop(key, None)
        if running is not None:
            context["running_summary"] = running
        if result.failed:
            context[NOT_SUMMARIZED] = _turn_of(messages)
        for key, gone in ((LEFT_OUT, result.left_out), (HANDED_OVER, result.handed_over)):
            if gone.messages:
                context[key] = plain(gone)
        written = result.messages
        if self.input_messages_key == self.output_messages_key:
            written = [*messages]
            if running is not None:
                as_sent = {message.id: message for message in written if message.id != SUMMARY_ID}
                composed = self.summarizer.composed(divide(written, running))
                written = [RemoveMessage(REMOVE_ALL_MESSAGES), *(as_sent.get(one.id, one) for one in composed)]
        # A thread that never had a `context` is not given an empty one.
        return {self.output_messages_key: written, **({"context": context} if context or before else {})}

    def _read(self, state: object) -> tuple[Sequence[BaseMessage], dict[str, Any]]:
        """Return a state's messages and its context: of a mapping, a pydantic model or a dataclass."""
        key = self.input_messages_key
        if not isinstance(state, Mapping):
            state = {each: getattr(state, each, None) for each in (key, "context")}
        said, context = state.get(key), state_of(state.get("context"))
        if said is None:
            raise ValueError(f"the state has no {key!r}: set input_messages_key to its messages")
        return _with_ids(said, context), context


def _with_ids(said: GivenMessages, context: Mapping[str, Any]) -> Sequence[BaseMessage]:
    """Return the messages of a state as objects with ids. What is summarized had ids then, and is not looked at."""
    last = getattr(context.get("running_summary"), "last_summarized_message_id", None)
    for one in reversed(said) if last and isinstance(said, list) else ():
        identity = getattr(one, "id", None)
        if identity == last:
            return cast("list[BaseMessage]", said)
        if not identity:
            break
    return as_messages(said)


def _turn_of(messages: Sequence[BaseMessage]) -> str | None:
    """Return the id of the newest user message, which names the turn."""
    return next((message.id for message in reversed(messages) if isinstance(message, HumanMessage)), None)
