"""`PalimpsestSummary`: an agent's view of a long conversation, with a summary in the place of the oldest messages."""

import logging
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, cast, get_args

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel, LanguageModelLike
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import get_buffer_string
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, ensure_config
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.runtime import Runtime

from graphs.deployment import service_of_process
from graphs.events import aemit, emit, summary_events
from graphs.identity import vouched_in
from graphs.middleware.asked import STEPS, is_cleared, thread_of_run
from graphs.middleware.memory import PalimpsestMemory
from graphs.middleware.request import ordered
from graphs.middleware.state import SUMMARY_KEY, SummaryKeys, with_ids
from graphs.middleware.trigger import DueBudget, Limits, Size
from graphs.models import in_background
from graphs.service import MemoryService
from graphs.summary_calls import SummaryCalls
from graphs.turn.prepared import SummaryAhead, when_summarized
from graphs.turn.view import system_text, view
from memory import prompts
from memory.context.effects import FlushHook
from memory.context.left_out import LEFT_OUT, LeftOut
from memory.context.running_summary import RunningSummary, divide, rehydrate, state_of, summary_text
from memory.context.summarization import SummarizationNode, SummarizationResult, SummarizeWhen
from memory.context.summary_prompt import Prompt
from memory.context.tokens import MessagesCounter, TokenCounter
from memory.effects import tolerated

logger = logging.getLogger(__name__)

_KEEP: Size = ("messages", 20)
_CLEARED: Any = {SUMMARY_KEY: {}}


class PalimpsestSummary(AgentMiddleware[AgentState[Any], Any, Any]):
    """Summarizes what no longer fits, as LangChain's `SummarizationMiddleware` does, and removes nothing.

    The thread keeps its messages. The summary is a private part of the state, and the model sees it behind the system
    prompt. A model's message stays together with the results of its tool calls. If the model or the hook fails, the
    run goes on with a view that fits, without the oldest messages, and the next turn tries again.

    Put it behind `PalimpsestMemory` in the list, so that the summary stands behind the memory block, which changes
    less.

    Args:
        model: Writes the summaries.
        trigger: When a summary is due: `("tokens", 4000)` or `("messages", 50)`. By default at 0.8 of the tokens that
            the model takes, or 8,192 where its profile does not tell.
        keep: What a cut leaves, in the same words; of tokens at most half of what may be there.
        token_counter: Counts a list of messages; by default cl100k_base tokens.
        summary_prompt: Words of a summary, with `{messages}` where the conversation goes.
        max_summary_tokens: A longer summary is asked for again once, then cut.
        summarize: `before` has a turn that is due for a summary wait for it, unless it is written already. With `after`
            no turn waits: it goes on with the newest messages that fit, and the summary is written behind it. Without
            a checkpointer there is no later turn, and `after` means `before`.
        memory: Whose outbox what leaves is written to, for facts and the daily journal.
        memory_flush_hook: Called with exactly the messages that are about to leave, when their summary exists; with
            `after`, when the view first leaves them out.
        service: Keeps the summaries that are written before they are due, and says when that is begun
            (`prepare_summary_share` of `MemoryConfig`); by default that of `memory`, or of this process.
        name: Tells two instances in one agent apart.

    Raises:
        ValueError: If a choice cannot be meant; the message names it.
    """

    state_schema = SummaryKeys

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        trigger: Size | None = None,
        keep: Size = _KEEP,
        token_counter: MessagesCounter | TokenCounter | None = None,
        summary_prompt: str | None = None,
        max_summary_tokens: int = 256,
        summarize: SummarizeWhen = "before",
        memory: PalimpsestMemory | None = None,
        memory_flush_hook: FlushHook | None = None,
        service: MemoryService | None = None,
        name: str = "PalimpsestSummary",
    ) -> None:
        if memory is not None and memory_flush_hook is not None:
            raise ValueError("memory and memory_flush_hook must not both be set: memory has a hook of its own")
        self.model = init_chat_model(model) if isinstance(model, str) else model
        self._limits = Limits.of(trigger, keep, self.model)
        self._counter = TokenCounter.of(token_counter)
        self._memory, self._hook = memory, memory_flush_hook
        self._name = name
        self._given = service
        self._summarize = summarize
        if summarize not in get_args(SummarizeWhen):
            raise ValueError(f"summarize must be 'before' or 'after', not {summarize!r}")
        if max_summary_tokens < 1:
            raise ValueError(f"max_summary_tokens must be at least 1, not {max_summary_tokens!r}")
        self._max_summary_tokens = max_summary_tokens
        self._prompts = _words(summary_prompt)
        self.tools = []

    @property
    def name(self) -> str:
        """The instance's name, which its nodes have."""
        return self._name

    # Not sooner, as counting loads what it counts with.
    @cached_property
    def _budget(self) -> DueBudget:
        frame = self._summary_tokens(" ") - self._counter.message(SystemMessage(summary_text(" ")))
        frame += self._counter.message(HumanMessage(prompts.NO_QUESTION))
        return self._limits.budget(self._max_summary_tokens, max(0, frame))

    @cached_property
    def _node(self) -> SummarizationNode:
        budget = self._budget
        initial, existing = self._prompts
        node = SummarizationNode(
            model=self.model,
            max_tokens=budget.max_tokens,
            max_summary_tokens=budget.max_summary_tokens,
            token_counter=self._counter,
            initial_summary_prompt=initial,
            existing_summary_prompt=existing,
            name=self.name,
        )
        node.summarizer = replace(node.summarizer, budget=budget)
        return node

    @cached_property
    def _service(self) -> MemoryService:
        return self._given or (self._memory.service if self._memory else service_of_process())

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Summarize what no longer fits."""
        state, ids = with_ids(state)
        saver, last = _who_knows(state)
        if saver and is_cleared(saver.list(thread_of_run(), limit=STEPS), last):
            state, ids = {**state, **_CLEARED}, {**ids, **_CLEARED}
        if not self._is_due(state, state["messages"]):
            return {**ids, **_without_left_out(state)} or None
        hook = self._memory.cut_hook(state, runtime) if self._memory else self._hook
        node = self._node_of(state, runtime, hook)
        result = node.result(_as_node_reads(state))
        for event in summary_events(result):
            emit(event.name, event)
        return {**ids, **self._update(state, result)} or None

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do what `before_model` does."""
        await self._counter.tokenizer.awarm_up()
        state, ids = with_ids(state)
        saver, last = _who_knows(state)
        if saver and is_cleared([one async for one in saver.alist(thread_of_run(), limit=STEPS)], last):
            state, ids = {**state, **_CLEARED}, {**ids, **_CLEARED}
        if not self._is_due(state, state["messages"]):
            return {**ids, **_without_left_out(state)} or None
        hook = self._memory.acut_hook(state, runtime) if self._memory else self._hook
        node = self._node_of(state, runtime, hook)
        result = await node.aresult(_as_node_reads(state))
        for event in summary_events(result):
            await aemit(event.name, event)
        return {**ids, **self._update(state, result)} or None

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model the summary and the messages that it does not stand for; prepare the next one."""
        response = handler(self._viewed(request))
        self._prepare(request, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Do what `wrap_model_call` does."""
        response = await handler(self._viewed(request))
        self._prepare(request, response)
        return response

    def _ahead(self, state: Mapping[str, Any], runtime: Runtime[Any]) -> SummaryAhead | None:
        """Return where the thread's summary is found when it is written before it is due; `None` without a thread."""
        configurable = ensure_config().get("configurable", {})
        thread_id, kept = configurable.get("thread_id"), self._service.summaries
        # Where the state is not kept, as below another agent, the next call of the same thread has other messages.
        if not thread_id or when_summarized("after", ensure_config()) == "before":
            return None
        if self._memory:
            return self._memory.summary_ahead(kept, state, runtime, self)
        user_id = vouched_in(configurable)
        return SummaryAhead(kept, (user_id, thread_id, self), self, (str(thread_id),))

    def _prepare(self, request: ModelRequest[Any], response: ModelResponse[Any]) -> None:
        """Begin to write the summary that the thread will need soon, when the turn was answered."""
        # Not in a node of its own behind the agent: each node costs a checkpoint.
        if any(isinstance(message, AIMessage) and message.tool_calls for message in response.result):
            return
        with tolerated(logger, "no summary is written ahead of time"):
            share = self._service.settings.memory.prepare_summary_share
            ahead = self._ahead(request.state, request.runtime)
            if ahead is None or (share >= 1 and self._summarize == "before"):
                return
            # Another middleware may answer itself, without an id: a summary could not name such a message.
            said = [message for message in response.result if message.id]
            state = {**_as_node_reads(request.state), "messages": [*request.state["messages"], *said]}
            live = len(divide(state["messages"], _running(state)).live)
            # Here, where the run says whose it is: what is written later has none.
            model = self._counted(in_background(self.model), request.state, request.runtime)
            ahead.begin(lambda: self._node_for_later(live, model), state, share)

    def _is_due(self, state: Any, messages: Sequence[BaseMessage]) -> bool:
        running = _running(_as_node_reads(state))
        conversation = divide(messages, running)
        counts = self._counter.each(conversation.live)
        summary = self._summary_tokens(running.summary) if running else 0
        return self._limits.due.is_reached(
            tokens=sum(counts) + summary + self._counter(conversation.system), messages=len(conversation.live)
        )

    def _summary_tokens(self, summary: str) -> int:
        return self._counter.message(SystemMessage(system_text("", "", summary)))

    def _node_of(self, state: Mapping[str, Any], runtime: Runtime[Any], hook: FlushHook | None) -> SummarizationNode:
        """Return what summarizes in a turn."""
        # A copy, as one instance serves many threads at once.
        node, when = copy(self._node), when_summarized(self._summarize, ensure_config())
        node.summarize = when
        ahead = self._ahead(state, runtime)
        prepared = partial(ahead.get, waits=when == "before") if ahead else None
        model = self._counted(self.model, state, runtime)
        node.summarizer = replace(node.summarizer, memory_flush_hook=hook, prepared_summary=prepared, model=model)
        return node

    def _node_for_later(self, live: int, model: LanguageModelLike) -> SummarizationNode:
        """Return what writes a summary behind a turn that leaves so many messages."""
        node = copy(self._node)
        budget = replace(self._budget, live=live)
        node.summarizer = replace(node.summarizer, budget=budget, model=model)
        return node

    def _counted(self, model: BaseChatModel, state: Any, runtime: Runtime[Any]) -> LanguageModelLike:
        """Return the call of a model that the process counts, and that keeps to the budget of whose memory it is."""
        store, owner = (self._memory.whose(state, runtime) if self._memory else None) or (None, None)
        whose = (store, owner) if store is not None and owner is not None else None

        async def given() -> BaseChatModel:
            return model

        calls = SummaryCalls(service=self._service, whose=whose, load=lambda: model, aload=given)
        return calls.model()

    def _update(self, state: Any, result: SummarizationResult) -> dict[str, Any]:
        context = self._node.update(_as_node_reads(state), result).get("context", {})
        return {SUMMARY_KEY: context} if context != state_of(state.get(SUMMARY_KEY)) else {}

    def _viewed(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        context = _as_node_reads(request.state)["context"]
        running = rehydrate(context.get("running_summary"))
        parted = divide(request.messages, running)
        left_out = LeftOut.from_state(context.get(LEFT_OUT)).among(parted.live)
        shown = [message for message in (*parted.system, *parted.live) if message.id not in left_out]
        summary = running.summary if running else ""
        # What does not fit is left out already: what is recalled, or stands between messages, takes little.
        made = partial(view, memory_block="", summary=summary, recalled={}, counter=self._counter, drop=False)

        def make(**said: Any) -> list[BaseMessage]:
            sent = made(**said, max_tokens=sys.maxsize)
            is_due = self._limits.due.is_reached(tokens=self._counter(sent), messages=len(parted.live))
            return made(**said, max_tokens=self._limits.max_tokens) if is_due else sent

        return ordered(request.override(messages=cast("list[AnyMessage]", shown)), make)


def _as_node_reads(state: Any) -> dict[str, Any]:
    """Return an agent's state as the node reads it."""
    return {"messages": state["messages"], "context": state_of(state.get(SUMMARY_KEY))}


def _who_knows(state: Any) -> tuple[BaseCheckpointSaver[Any] | None, str | None]:
    """Return who knows whether a client has cleared the thread, `None` if it has not, and what was summarized last."""
    # It stands near the end: a long thread is not looked through before each call of a model.
    running, newest_first = _running(_as_node_reads(state)), map(attrgetter("id"), reversed(state["messages"]))
    if running is None or not running.summarized_message_ids.isdisjoint(newest_first):
        return None, None
    configurable = ensure_config().get("configurable", {})
    return configurable.get(CONFIG_KEY_CHECKPOINTER), running.last_summarized_message_id


def _running(state: Mapping[str, Any]) -> RunningSummary | None:
    return rehydrate(state["context"].get("running_summary"))


def _without_left_out(state: Any) -> dict[str, Any]:
    """Return the update that says of a view that nothing is left out of it; empty where nothing else was said."""
    context = state_of(state.get(SUMMARY_KEY))
    return (
        {SUMMARY_KEY: {key: value for key, value in context.items() if key != LEFT_OUT}} if LEFT_OUT in context else {}
    )


def _words(summary_prompt: str | None) -> tuple[Prompt, Prompt]:
    """Return the prompts of a first summary and of one that extends another, from one in LangChain's form."""
    if summary_prompt is None:
        return prompts.INITIAL_SUMMARY, prompts.UPDATE_SUMMARY
    if "{messages}" not in summary_prompt:
        return summary_prompt, f"{prompts.EARLIER_SUMMARY}\n\n{summary_prompt}"

    def filled(values: dict[str, Any]) -> ChatPromptValue:
        earlier = values.get("existing_summary")
        said = [SystemMessage(summary_text(earlier))] if earlier else []
        conversation = get_buffer_string([*said, *values["messages"]], format="xml")
        return ChatPromptValue(messages=[HumanMessage(summary_prompt.format(messages=conversation).rstrip())])

    template = cast("ChatPromptTemplate", RunnableLambda(filled))  # all that is used of one is that it can be invoked
    return template, template
