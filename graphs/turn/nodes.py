"""The nodes of the chat graph: state in, update out. They decide nothing about memory and never fail for it."""

import asyncio
import logging
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import takewhile
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.errors import ParentCommand
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from graphs.process.deployment import service_of_process
from graphs.process.events import MemoryInjected, aemit, summary_events
from graphs.process.failures import ModelUnavailable
from graphs.process.metrics import count_summary, counted_call
from graphs.process.models import is_own_answer
from graphs.process.service import MemoryService
from graphs.turn.calls import (
    GARBLED,
    Execute,
    carry_out_once,
    failed_call,
    is_garbled,
    joined,
    parted,
    with_own_ids,
    with_results_of_left,
)
from graphs.turn.content import as_sent, refused_before, standard
from graphs.turn.context import Context, context_of
from graphs.turn.memory import TurnMemory
from graphs.turn.prepared import Due
from graphs.turn.prompt import (
    LEAST_MESSAGE_TOKENS,
    MEMORY_SHARE,
    Prompt,
    ask_to_chat,
    memory_share,
    noted,
)
from graphs.turn.run import STATELESS, Run, Thread, is_kept, warn_summary_lost
from graphs.turn.state import AfterTools, State, changes, left_of, merge_messages
from memory.context.running_summary import state_of
from memory.context.summarization import SummarizationNode, SummarizeWhen
from memory.context.summarizer import Draft
from memory.context.tokens import TokenCounter
from memory.door import on_thread
from memory.model_calls import span
from memory.turn import TurnEpochs, mode_of_newest

logger = logging.getLogger(__name__)

StateUpdate = dict[str, object]

MOST_GARBLED = 3
"""Answers of a turn whose calls could not be read, after which the model is not asked again."""


Begun = tuple[Thread, list[BaseMessage] | Overwrite | None]
"""What the two nodes that begin a turn side by side share: the thread with the turn's choices, and what is written of
its messages; nothing if they stay as they are."""


class ChatNodes:
    """The four nodes with what they need of their deployment.

    Args:
        service: Settings, models, and what carries finished turns into memory; by default that of this process.
        tools: What the model may call.
        of_memory: What it may call where the run's context names it.
        counter: Counts tokens, each message once.
    """

    def __init__(
        self,
        service: MemoryService | None = None,
        tools: Sequence[BaseTool] = (),
        of_memory: Sequence[BaseTool] = (),
        *,
        counter: TokenCounter | None = None,
    ) -> None:
        self._given = service
        self._tools = tuple(tools)
        self._of_memory = tuple(of_memory)
        self._counter = TokenCounter.of(counter)
        # The task that reads and chooses memory, by the superstep whose two nodes await it.
        self._beginning: dict[Hashable, asyncio.Task[Begun]] = {}
        # Names of models that refused to be told of tools.
        self._toolless: set[str] = set()

    # Found by the first run, not when a module is imported: `service_of_process` says why.
    @cached_property
    def _service(self) -> MemoryService:
        return self._given or service_of_process()

    @cached_property
    def _memory(self) -> TurnMemory:
        return TurnMemory(self._service)

    async def inject_memory(self, state: State, runtime: Runtime[Context]) -> StateUpdate:
        """Choose what the model should know about the user; the state keeps ids, the prompt reads the texts."""
        if not state.get("messages"):
            # Of the turn before, only what tells branches apart: `call_model` says that there is nothing to answer.
            kept = TurnEpochs.from_state(state_of(state.get("memory")))
            return {"memory": TurnEpochs(first=kept.first, alone_until=kept.alone_until).to_state()}
        run, thread = self._run(state, runtime)
        # Nothing is awaited before, so that this node always ends before `summarize`, and updates stream in one order.
        now, written = await self._begun(run, thread, runtime)
        # Two nodes of one superstep must not both write the messages: in a compact thread, `summarize` does.
        keeps = bool(written) and run.context.transcript == "keep"
        return {"memory": now.memory, **({"messages": written} if keeps else {})}

    async def summarize(self, state: AfterTools, runtime: Runtime[Context]) -> StateUpdate:
        """Keep what the model sees of the conversation within its budget.

        At the beginning of a turn it runs beside `inject_memory`, and both await one choice of memory, as that takes a
        share of the budget. If tools hand the turn off to a graph above, the turn is written down and ends here.
        """
        if not state.get("messages"):
            return left_of(state)
        run, thread = self._run(state, runtime)
        if handoffs := state.get("handoffs"):
            await self._memory.end(run, thread)
            raise ParentCommand(joined(handoffs, thread.messages))
        now, written = thread, None
        # After its tools a turn goes on, with the choices that the state has of it.
        if not isinstance(thread.messages[-1], ToolMessage) or thread.receipt.get("asked") != thread.asked:
            now, written = await self._begun(run, thread, runtime)
        await self._counter.tokenizer.awarm_up()
        when = _when_summarized(run)

        async def write_down(leaving: list[BaseMessage]) -> None:
            await self._memory.write_cut(run, now.epochs.not_erased(leaving, now.messages), now.epochs)

        due = Due.of_run(run, now)
        prepared = partial(self._service.summaries.get, due, waits=when == "before")
        budget = self._messages_budget(run, now)
        node = self._summarization(run, budget, summarize=when, memory_flush_hook=write_down, prepared_summary=prepared)
        with span("palimpsest.summary") as tell:
            result = await node.aresult(now.state)
            tell(messages=result.cut.messages if result.cut else 0, left_out=result.left_out.messages)
        count_summary(result.cut, left_out=result.left_out.messages)
        for told, payload in summary_events(result):
            await aemit(told, payload)
        update = changes(state, node.update(now.state, result))
        # An update that writes all messages has these in it already.
        is_whole = run.context.transcript == "keep" or "messages" in update
        return {**update, "messages": written} if written and not is_whole else update

    async def call_model(self, state: State, runtime: Runtime[Context]) -> StateUpdate:
        """Answer, or call tools. A provider that finds the prompt too long is asked again with a smaller one.

        Raises:
            ValueError: If the thread has no messages, so that there is nothing to answer.
        """
        if not state.get("messages") and "receipt" not in state_of(state.get("memory")):
            raise ValueError("messages must hold at least one message: there is nothing to answer")
        run, thread = self._run(state, runtime)
        if self._is_over(thread):
            return {}
        await self._counter.tokenizer.awarm_up()
        mode, name = mode_of_newest(thread.messages), run.context.model or self._service.settings.model
        messages = thread.shown
        if run.context.transcript == "keep":
            # `summarize` left copies in which long messages are shortened; an edit of the thread writes them anew.
            left = {message.id: message for message in state.get("summarized_messages") or ()}
            messages = tuple(left.get(message.id, message) for message in messages)
        snapshot = await self._memory.shown(run, thread, mode)
        prompt = self._prompt(run, thread, messages).showing(thread.injected, snapshot)
        if isinstance(thread.messages[-1], HumanMessage):
            await aemit(MemoryInjected.name, MemoryInjected.of(thread.receipt, prompt.tokens()))
        model = await on_thread(lambda: self._service.load_model(run.context.model, "chat"))  # its package, at first
        is_own = partial(is_own_answer, model, prompt.tools)
        with counted_call("chat"):
            answer, asked = await ask_to_chat(model, replace(prompt, messages=as_sent(prompt.messages, is_own)), name)
        if prompt.tools and not asked.tools:
            # Only now: a prompt that fails in both ways had another fault.
            logger.warning("%s takes no tools: in this process it is told of none from now on", name)
            self._toolless.add(name)
        before = (call for one in prompt.messages if isinstance(one, AIMessage) for call in one.tool_calls)
        answer = with_own_ids(answer, (*answer.tool_calls, *answer.invalid_tool_calls), {call["id"] for call in before})
        turn = takewhile(lambda message: not isinstance(message, HumanMessage), reversed(thread.messages))
        if is_garbled(answer) and sum(map(is_garbled, turn)) == MOST_GARBLED - 1:
            raise ModelUnavailable(
                f"{name!r} called a tool {MOST_GARBLED} times with arguments that are no JSON: "
                "try again, or choose another model."
            )
        return {"messages": [noted(answer, name, mode, prompt.sources, prompt.tokens().model_dump())]}

    def _is_over(self, thread: Thread) -> bool:
        """Say whether the tools have ended the turn: a tool cleared the thread, or each call returns directly."""
        if not thread.messages or not isinstance(thread.messages[-1], ToolMessage):
            return not thread.messages
        behind = takewhile(lambda message: not isinstance(message, AIMessage), reversed(thread.messages))
        direct = {tool.name for tool in self._tools if tool.return_direct}
        return all(
            isinstance(one, ToolMessage) and (not thread.asked or (one.name in direct and one.status == "success"))
            for one in behind
        )

    async def carry_out(self, request: ToolCallRequest, execute: Execute) -> Any:
        """Carry out one call of an answer, once; one that nobody offered, or nobody can read, is told why not."""
        call = request.tool_call
        offered = [tool.name for tool in self._offered(context_of(request.runtime.context))]
        if call["name"] not in offered:
            return failed_call(call, f"There is no tool {call['name']!r}. There are: {', '.join(offered) or 'none'}.")
        if GARBLED in call["args"]:
            said = call["args"][GARBLED]
            return failed_call(call, f"The call was not carried out: its arguments are no JSON object: {said!r:.300}")
        return parted(await carry_out_once(request, execute))

    async def flush_memory(self, state: State, runtime: Runtime[Context]) -> StateUpdate:
        """Write the turn down before it ends, then trigger its update."""
        run, thread = self._run(state, runtime)
        memory = await self._memory.end(run, thread)
        await self._counter.tokenizer.awarm_up()

        def draft_of(share: float) -> Draft | None:
            return self._summarization(run, self._messages_budget(run, thread)).draft(state, share)

        if run.thread_id != STATELESS:
            self._service.summaries.begin(Due.of_run(run, thread), _when_summarized(run), draft_of)
        return {"memory": memory}

    def _summarization(self, run: Run, budget: int, **more: Any) -> SummarizationNode:
        context, name = run.context, self._service.settings.memory_model or run.context.model
        return SummarizationNode(
            model=self._service.summary_model(lambda: run.place, lambda: self._service.load_model(name, "summary")),
            max_tokens=budget,
            max_summary_tokens=min(context.max_summary_tokens, budget // 2),
            token_counter=self._counter,
            initial_summary_prompt=context.initial_summary_prompt,
            existing_summary_prompt=context.update_summary_prompt,
            output_messages_key="messages" if context.transcript == "compact" else "summarized_messages",
            keep_tokens=context.keep_tokens,
            keep_messages=context.keep_messages,
            portion_tokens=run.limits.summary_portion_tokens if run.limits else None,
            **more,
        )

    def _run(self, state: State, runtime: Runtime[Context]) -> tuple[Run, Thread]:
        """Return the run and its thread; it may begin, or resume elsewhere, at any node: each warms up to count."""
        return Run.of(get_config(), runtime, self._service.settings), Thread(state)

    async def _begun(self, run: Run, thread: Thread, runtime: Runtime[Context]) -> Begun:
        """Return what the turn begins with: read and chosen once for the two nodes that begin it side by side.

        One that is cancelled does not cancel the other's wait.
        """

        async def begin() -> Begun:
            await self._counter.tokenizer.awarm_up()
            # Messages that the view leaves out already change the prompt no more; a finished summary will.
            is_seen = _when_summarized(run) == "after" and not self._service.summaries.is_written(run.thread)
            bare = self._prompt(run, thread, thread.shown if is_seen else thread.divided.live)

            left = thread.broken_off(run, self._service.clock())
            tokens = bare.memory_budget, run.context.max_tokens // MEMORY_SHARE
            turn = await self._memory.begin(
                run,
                thread,
                bare.messages,
                tokens,
                lambda snapshot: bare.showing(thread.injected, snapshot).exceeds(),
                self._counter,
                left,
            )
            prompt = bare.showing(turn.injected, turn.opening.snapshot)
            receipt = turn.memory["receipt"]
            receipt["tokens"], receipt["messages_budget"] = prompt.tokens().model_dump(), prompt.shares.messages
            if run.has_saver and not is_kept(run.config):
                warn_summary_lost()
                receipt["summary_lost"] = "below_another_graph"
            now: Sequence[BaseMessage] = thread.messages
            written: list[BaseMessage] | Overwrite | None = turn.marked or None
            if turn.marked:
                now = merge_messages(now, [turn.marked])
            if whole := await with_results_of_left(now, run.config, runtime.execution_info):
                now, written = whole, Overwrite(whole)
            logger.info("memory mode of the turn: %s", turn.opening.mode or "unknown")
            return Thread(cast("State", {**thread.state, "memory": turn.memory, "messages": now})), written

        info = runtime.execution_info
        # The loop, too: two programs in two threads of a process may give their threads the same ids. And what the run
        # chose: of two that go on from one checkpoint, one may be incognito. Without LangGraph's own word for the
        # superstep in progress, nothing else has its name.
        loop = asyncio.get_running_loop()
        superstep = (loop, run.thread, run.context, info.run_id, info.checkpoint_id) if info else object()
        if (beginning := self._beginning.get(superstep)) is None:
            self._beginning[superstep] = beginning = asyncio.create_task(begin())
            beginning.add_done_callback(lambda _: self._beginning.pop(superstep))
        return await asyncio.shield(beginning)

    def _offered(self, context: Context) -> list[BaseTool]:
        return [*self._tools, *(tool for tool in self._of_memory if tool.name in context.memory_tools)]

    def _prompt(self, run: Run, thread: Thread, messages: Sequence[BaseMessage]) -> Prompt:
        """Return the prompt that these messages come to, without memory, and without what the model could not read."""
        name, context = run.context.model or self._service.settings.model, run.context
        is_told = (run.limits is None or run.limits.calls_tools) and name not in self._toolless
        given = (context.system_prompt, *(one.text for one in thread.divided.system))
        prompt = Prompt(
            max_tokens=context.max_tokens,
            reply_tokens=context.reply_tokens,
            memory_budget=memory_share(context),
            system_prompt="\n\n".join(dict.fromkeys(filter(None, given))),
            summary=thread.running.summary if thread.running else "",
            messages=[*map(standard, messages)],
            tools=self._offered(context) if is_told else (),
            counter=self._counter,
        )
        return prompt.without(refused_before(messages, name))

    def _messages_budget(self, run: Run, thread: Thread) -> int:
        """Return the tokens that messages and summary may have; a state that a client edited may not say it."""
        said: object = thread.receipt.get("messages_budget")
        if isinstance(said, int) and said >= LEAST_MESSAGE_TOKENS:
            return said
        return self._prompt(run, thread, thread.divided.live).shares.messages


def _when_summarized(run: Run) -> SummarizeWhen:
    """Return when a run's summaries are made: a state that nobody keeps has no later turn to have them in."""
    return (run.context.summarize or "before") if is_kept(run.config) else "before"
