"""`PalimpsestSummary`: an agent's view of a long conversation, with a summary in the place of the oldest messages."""

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Annotated, Any, Literal, get_args

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import ensure_config
from langgraph.runtime import Runtime
from pydantic import Field, TypeAdapter, ValidationError

from graphs.middleware.asked import is_cleared
from graphs.middleware.memory import PalimpsestMemory
from graphs.middleware.request import AsyncHandler, Handler, Request, Response, ordered
from graphs.middleware.state import SUMMARY_KEY, SummaryKeys, thread_in, with_ids
from graphs.process.deployment import service_of_process
from graphs.process.events import aemit, summary_events
from graphs.process.identity import vouched_in
from graphs.process.models import input_tokens
from graphs.process.service import MemoryService
from graphs.process.synchronous import without_await
from graphs.turn.prepared import Due
from graphs.turn.prompt import Prompt, system_text
from graphs.turn.run import Run, is_kept
from memory import prompts
from memory.context.running_summary import WrittenSummary, state_of, summary_text
from memory.context.summarization import SummarizationNode, SummarizeWhen
from memory.context.summarizer import FlushHook
from memory.context.tokens import MessagesCounter, TokenCounter
from memory.door import tolerated

logger = logging.getLogger(__name__)

Size = tuple[Literal["tokens", "messages"], int]
"""As LangChain's middleware writes it."""

# `True` is a whole number to Python, and a slip of the pen here.
_SIZE: TypeAdapter[Size] = TypeAdapter(tuple[Literal["tokens", "messages"], Annotated[int, Field(strict=True, ge=1)]])
_KEEP: Size = ("messages", 20)
_DEFAULT_SHARE = 0.8
_DEFAULT_TOKENS = 8192
_LONGEST_VIEW = 32_768
"""Tokens of a view where only numbers of messages are named and nobody knows what the model takes."""


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
        summary_prompt: What is asked for behind the conversation; `{messages}`, as in LangChain's form, points to that.
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

    name = "PalimpsestSummary"
    """The instance's name, which its nodes have."""
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
        window = input_tokens(self.model)
        if trigger is None:
            trigger = ("tokens", int(window * _DEFAULT_SHARE) or _DEFAULT_TOKENS)
        due, self._keep = _size("trigger", trigger), _size("keep", keep)
        self._max_tokens = due.get("tokens") or window or _LONGEST_VIEW
        self._trigger_messages = due.get("messages")
        self._counter = TokenCounter.of(token_counter)
        self._memory, self._hook = memory, memory_flush_hook
        self.name = name
        self._given = service
        self._summarize = summarize
        if summarize not in get_args(SummarizeWhen):
            raise ValueError(f"summarize must be 'before' or 'after', not {summarize!r}")
        if max_summary_tokens < 1:
            raise ValueError(f"max_summary_tokens must be at least 1, not {max_summary_tokens!r}")
        self._max_summary_tokens = max_summary_tokens
        self._prompts = prompts.INITIAL_SUMMARY, prompts.UPDATE_SUMMARY
        if summary_prompt is not None:
            words = summary_prompt.replace("{messages}", "[the conversation above]")
            self._prompts = words, f"{prompts.EARLIER_SUMMARY}\n\n{words}"
        self.tools = []

    # Not sooner, as counting loads what it counts with.
    @cached_property
    def _bare_node(self) -> SummarizationNode:
        """What summarizes: within a budget for messages and summary, without the words around them."""
        counter = self._counter
        max_tokens = max(2, self._max_tokens - counter.message(HumanMessage(prompts.NO_QUESTION)))
        frame = counter.message(SystemMessage(system_text("", "", " ")))
        frame = max(0, frame - counter.message(SystemMessage(summary_text(" "))))
        initial, existing = self._prompts
        node = SummarizationNode(
            model=self.model,
            max_tokens=max_tokens,
            max_summary_tokens=min(self._max_summary_tokens + frame, max_tokens // 2),
            keep_tokens=self._keep.get("tokens"),
            keep_messages=self._keep.get("messages"),
            token_counter=counter,
            initial_summary_prompt=initial,
            existing_summary_prompt=existing,
            name=self.name,
        )
        node.summarizer = replace(node.summarizer, trigger_messages=self._trigger_messages, frame=frame)
        return node

    @cached_property
    def _service(self) -> MemoryService:
        return self._given or (self._memory.service if self._memory else service_of_process())

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Summarize what no longer fits."""
        await self._counter.tokenizer.awarm_up()
        identified, update = with_ids(state)
        thread = thread_in(identified)
        if await is_cleared(thread):
            thread = thread_in({"messages": thread.messages})
        when: SummarizeWhen = self._summarize if is_kept(ensure_config()) else "before"
        run = self._run_of(runtime)

        async def prepared() -> WrittenSummary | None:
            due = self._due(identified, run)
            return await self._service.summaries.get(due, waits=when == "before") if due else None

        hook = self._memory.cut_hook(identified, run) if self._memory and run else self._hook
        node = self._node(run, memory_flush_hook=hook, prepared_summary=prepared)
        node.summarize = when
        result = await node.aresult(thread.state)
        for told, payload in summary_events(result):
            await aemit(told, payload)
        context = node.update(thread.state, result).get("context", {})
        return {**update, **({SUMMARY_KEY: context} if context != state_of(state.get(SUMMARY_KEY)) else {})} or None

    before_model = without_await(abefore_model)

    def wrap_model_call(self, request: Request, handler: Handler) -> Response:
        """Show the model the summary and the messages that it does not stand for; prepare the next one."""
        response = handler(self._viewed(request))
        self._prepare(request, response)
        return response

    async def awrap_model_call(self, request: Request, handler: AsyncHandler) -> Response:
        """Do what `wrap_model_call` does."""
        response = await handler(self._viewed(request))
        self._prepare(request, response)
        return response

    def _run_of(self, runtime: Runtime[Any]) -> Callable[[], Run] | None:
        """Return what says whose memory the run in progress uses; a program's own function is asked once for it."""
        return cache(partial(self._memory.run, runtime)) if self._memory else None

    def _due(self, state: Mapping[str, Any], run: Callable[[], Run] | None) -> Due | None:
        """Return which summary the thread will need; `None` without a thread.

        Where the state is not kept, as below another agent, the next call of the same thread has other messages.
        """
        configurable = ensure_config().get("configurable", {})
        thread_id = configurable.get("thread_id")
        if not thread_id or not is_kept(ensure_config()):
            return None
        if self._memory and run:
            return self._memory.due(state, run(), self)
        return Due((vouched_in(configurable), thread_id, self), self, (str(thread_id),))

    def _prepare(self, request: Request, response: Response) -> None:
        """Begin to write the summary that the thread will need soon, when the turn was answered."""
        # Not in a node of its own behind the agent: each node costs a checkpoint.
        if any(isinstance(message, AIMessage) and message.tool_calls for message in response.result):
            return
        with tolerated(logger, "no summary is written ahead of time"):
            run = self._run_of(request.runtime)
            # Whose it is, `_due` asks: what is written later has no run that says so.
            if due := self._due(request.state, run):
                # Another middleware may answer itself, without an id: a summary could not name such a message.
                said: list[Any] = [*request.state["messages"], *(one for one in response.result if one.id)]
                state = thread_in(request.state, messages=said).state
                self._service.summaries.begin(due, self._summarize, partial(self._node(run).draft, state))

    def _node(self, run: Callable[[], Run] | None, **more: Any) -> SummarizationNode:
        """Return what summarizes, with these attributes of its summarizer: one instance serves many threads at once.

        Its model's calls are counted by the process, and keep to the budget of whose memory it is.
        """
        model = self._service.summary_model(lambda: run().place if run else None, lambda: self.model)
        node = copy(self._bare_node)
        node.summarizer = replace(node.summarizer, model=model, **more)
        return node

    def _viewed(self, request: Request) -> Request:
        thread = thread_in(request.state, messages=request.messages)

        def make(*, system_prompt: str, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
            prompt = Prompt(
                max_tokens=self._max_tokens,
                system_prompt=system_prompt,
                summary=thread.running.summary if thread.running else "",
                messages=messages,
                counter=self._counter,
            )
            # What does not fit is left out already: what is recalled, or stands between messages, takes little.
            sent = prompt.view(sys.maxsize, drop=False)
            is_early = len(thread.divided.live) < (self._trigger_messages or 0)
            fits = is_early or self._counter(sent) <= prompt.max_tokens
            return sent if fits else prompt.view(prompt.max_tokens, drop=False)

        shown: list[Any] = [*thread.divided.system, *thread.shown]
        return ordered(request.override(messages=shown), make)


def _size(name: str, said: object) -> dict[str, int]:
    try:
        kind, number = _SIZE.validate_python(said)
    except ValidationError as error:
        raise ValueError(
            f'{name} must be a number of tokens or messages, at least 1, such as ("tokens", 4000), not {said!r}'
        ) from error
    return {kind: number}
