"""The nodes of the chat graph: state in, update out. They decide nothing about memory and never fail for it."""

import asyncio
import logging
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import takewhile
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.errors import ParentCommand
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime

from graphs.deployment import service_of_process
from graphs.events import MemoryInjected, aemit, summary_events
from graphs.model_failures import ModelUnavailable, refuses_tools
from graphs.models import in_background
from graphs.service import MemoryService
from graphs.summary_calls import SummaryCalls
from graphs.turn.calls import (
    GARBLED,
    Execute,
    carry_out_once,
    failed_call,
    is_garbled,
    joined,
    parted,
    results_of_left,
    with_own_ids,
)
from graphs.turn.channels import changes
from graphs.turn.context import Context, context_of
from graphs.turn.edits import left_of
from graphs.turn.ending import broken_off, end_turn
from graphs.turn.memory import Room, TurnMemory
from graphs.turn.opening import Begun, OpenTurns, superstep_of
from graphs.turn.prepared import SummaryAhead, when_summarized
from graphs.turn.prompt import Prompt, ask_to_chat, prompt_of
from graphs.turn.run import STATELESS, Run
from graphs.turn.sources import sources_of, with_sources, with_tokens
from graphs.turn.state import AfterTools, State, summary_lost, warn_summary_lost
from graphs.turn.text import told
from graphs.turn.thread import Thread
from graphs.turn.view import LEAST_MESSAGE_TOKENS
from memory.context.running_summary import WrittenSummary
from memory.context.summarization import SummarizationNode
from memory.context.tokens import TokenCounter
from memory.tracing import span
from memory.turn import Opening, TurnEpochs, mode_of_newest, with_mode

logger = logging.getLogger(__name__)

StateUpdate = dict[str, object]

MOST_GARBLED = 3
"""Answers of a turn whose calls could not be read, after which the model is not asked again."""


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
        self._turns = OpenTurns[Prompt]()
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
            return {"memory": {}}  # `call_model` says that there is nothing to answer
        with self._turns.first(superstep_of(runtime)):
            run, thread = await self._run(state, runtime)
            begun = await self._begun(run, thread, runtime)
            logger.info("memory mode of the turn: %s", begun.opening.mode or "unknown")
            receipt = begun.receipt(thread.asked, self._memory.why_without(run, begun.opening))
            receipt["tokens"] = begun.prompt.tokens().model_dump()
            receipt["messages_budget"] = begun.prompt.shares.messages
            if lost := summary_lost(get_config()):
                warn_summary_lost()
                receipt["summary_lost"] = lost
            memory: StateUpdate = {"memory": {**begun.memory, "receipt": receipt}}
            # Two nodes of one superstep must not both write the messages: in a compact thread, `summarize` does.
            written = begun.messages(state) if run.context.transcript == "keep" else None
            return {**memory, "messages": written} if written else memory

    async def summarize(self, state: AfterTools, runtime: Runtime[Context]) -> StateUpdate:
        """Keep what the model sees of the conversation within its budget.

        A turn begins beside `inject_memory`, whose choice has its share of the budget: it is made once for both.
        Where tools hand the turn off to a graph above, it ends here, written down.
        """
        if not state.get("messages"):
            return left_of(state)
        run, thread = await self._run(state, runtime)
        if handoffs := state.get("handoffs"):
            await end_turn(self._memory, run, thread, thread.view(get_config()))
            raise ParentCommand(joined(handoffs, thread.messages))
        begun = await self._begun(run, thread, runtime) if thread.begins_turn else None
        now = begun.in_state(state) if begun else state
        budget = begun.prompt.shares.messages if begun else self._messages_budget(run, thread)
        epochs = TurnEpochs.from_state(begun.memory) if begun else thread.epochs

        async def write_down(leaving: list[BaseMessage]) -> None:
            await self._memory.writing.write_down(run, epochs.not_erased(leaving, now["messages"]), epochs)

        async def prepared() -> WrittenSummary | None:
            mode = begun.opening.mode if begun else mode_of_newest(thread.messages)
            ahead = SummaryAhead.of_run(self._service.summaries, run, epochs, mode)
            return await ahead.get(waits=when == "before")

        when = when_summarized(run.context.summarize, get_config())
        node = self._summarization(run, budget, summarize=when, memory_flush_hook=write_down, prepared_summary=prepared)
        with span("palimpsest.summary") as traced:
            result = await node.aresult(now)
            traced.set(messages=result.cut.messages if result.cut else 0, left_out=result.left_out.messages)
        self._service.metrics.summary(result.cut, left_out=result.left_out.messages)
        for event in summary_events(result):
            await aemit(event.name, event)
        await self._turns.after(superstep_of(runtime))
        update = changes(state, node.update(now, result))
        # Messages that are written whole carry their mode and these results already.
        is_whole = run.context.transcript == "keep" or "messages" in update
        written = begun.messages(state) if begun and not is_whole else None
        return {**update, "messages": written} if written else update

    async def call_model(self, state: State, runtime: Runtime[Context]) -> StateUpdate:
        """Answer, or call tools. A provider that finds the prompt too long is asked again with a smaller one.

        Raises:
            ValueError: If the thread has no messages, so that there is nothing to answer.
        """
        if not state.get("messages") and not state.get("memory"):
            raise ValueError("messages must hold at least one message: there is nothing to answer")
        run, thread = await self._run(state, runtime)
        if self._is_over(thread):
            return {}
        mode = mode_of_newest(thread.messages)
        fresh = self._turns.take_fresh(_turn_name(run, thread))
        snapshot = await self._memory.shown(run, mode, fresh, thread.injected)
        prompt = self._prompt(run, thread, thread.visible(run.context)).showing(thread.injected, snapshot)
        if isinstance(thread.messages[-1], HumanMessage):
            await aemit(MemoryInjected.name, MemoryInjected.of(thread.receipt, prompt.tokens()))
        model = await self._service.aload_model(run.context.model, "chat")
        with self._service.metrics.call("chat"):
            answer = await self._answer(model, prompt.for_model(model), run.model)
        before = (call for one in prompt.messages if isinstance(one, AIMessage) for call in one.tool_calls)
        answer = with_own_ids(answer, {call["id"] for call in before})
        turn = takewhile(lambda message: not isinstance(message, HumanMessage), reversed(thread.messages))
        if is_garbled(answer) and sum(map(is_garbled, turn)) == MOST_GARBLED - 1:
            raise ModelUnavailable(
                f"{run.model!r} called a tool {MOST_GARBLED} times with arguments that are no JSON: "
                "try again, or choose another model."
            )
        answer = with_sources(told(answer, run.model), sources_of(thread.injected, snapshot))
        answer = with_tokens(answer, prompt.tokens().model_dump())
        return {"messages": [with_mode(answer, mode)]}

    async def _answer(self, model: BaseChatModel, prompt: Prompt, name: str) -> AIMessage:
        """Ask the model; one that refuses to be told of tools is asked again without, and from then on."""
        if not prompt.tools:
            return await ask_to_chat(model, prompt, name)
        try:
            return await ask_to_chat(model.bind_tools(prompt.tools), prompt, name)
        # The former is what LangChain's base class says for a model of one's own without tools.
        except (NotImplementedError, ModelUnavailable) as error:
            if isinstance(error, ModelUnavailable) and not refuses_tools(error.__cause__):
                raise
        answer = await ask_to_chat(model, replace(prompt, tools=()), name)
        # Only now: a prompt that fails in both ways had another fault.
        logger.warning("%s takes no tools: in this process it is told of none from now on", name)
        self._toolless.add(name)
        return answer

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
        call, chosen = request.tool_call, context_of(request.runtime.context).memory_tools
        offered = [*(tool.name for tool in self._tools), *(one.name for one in self._of_memory if one.name in chosen)]
        if call["name"] not in offered:
            return failed_call(call, f"There is no tool {call['name']!r}. There are: {', '.join(offered) or 'none'}.")
        if GARBLED in call["args"]:
            said = call["args"][GARBLED]
            return failed_call(call, f"The call was not carried out: its arguments are no JSON object: {said!r:.300}")
        return parted(await carry_out_once(request, execute))

    async def flush_memory(self, state: State, runtime: Runtime[Context]) -> StateUpdate:
        """Write the turn down before it ends, then trigger its update."""
        run, thread = await self._run(state, runtime)
        memory = await end_turn(self._memory, run, thread, thread.view(get_config()))
        self._prepare_summary(run, thread)
        return {"memory": memory}

    def _prepare_summary(self, run: Run, thread: Thread) -> None:
        share = self._service.settings.memory.prepare_summary_share
        when = when_summarized(run.context.summarize, get_config())
        if run.thread_id == STATELESS or (share >= 1 and when == "before"):
            return
        ahead = SummaryAhead.of_run(self._service.summaries, run, thread.epochs, mode_of_newest(thread.messages))
        ahead.begin(lambda: self._summarization(run, self._messages_budget(run, thread)), thread.state, share)

    def _summarization(self, run: Run, budget: int, **more: Any) -> SummarizationNode:
        context = run.context
        return SummarizationNode(
            model=self._summary_model(run),
            max_tokens=budget,
            max_summary_tokens=min(context.max_summary_tokens, budget // 2),
            token_counter=self._counter,
            initial_summary_prompt=context.initial_summary_prompt,
            existing_summary_prompt=context.update_summary_prompt,
            output_messages_key="messages" if context.transcript == "compact" else "summarized_messages",
            keep_tokens=context.keep_tokens,
            keep_messages=context.keep_messages,
            portion_tokens=run.portion_tokens,
            **more,
        )

    async def _run(self, state: State, runtime: Runtime[Context]) -> tuple[Run, Thread]:
        """Return the run and its thread, once tokens can be counted: it may begin, or resume elsewhere, at any node."""
        await self._counter.tokenizer.awarm_up()
        thread = Thread(state)
        return Run.of(get_config(), runtime, self._service.settings, thread.asked), thread

    async def _begun(self, run: Run, thread: Thread, runtime: Runtime[Context]) -> Begun[Prompt]:
        """Return what the turn begins with: read and chosen once for the two nodes that begin it side by side."""

        async def begin() -> Begun[Prompt]:
            # What the view leaves out already does not change it again; a summary that is written will.
            never_waits = when_summarized(run.context.summarize, get_config()) == "after"
            is_seen = never_waits and not self._service.summaries.is_written(run.thread)
            messages = thread.visible(run.context) if is_seen else thread.divided.live
            previous, bare = thread.injected, self._prompt(run, thread, messages)

            def room(opening: Opening) -> Room:
                will_summarize = bare.showing(previous, opening.snapshot).exceeds()
                return Room(bare.memory_budget, bare.memory_room, will_summarize)

            opening, injected = await self._memory.choose(run, previous, bare.messages, room, self._counter)
            left = broken_off(run, thread, self._service.clock())
            results = await results_of_left(thread.messages, get_config(), runtime.execution_info)
            return Begun.of(run, thread, opening, injected, bare.showing(injected, opening.snapshot), left, results)

        return await self._turns.begin(_turn_name(run, thread), superstep_of(runtime), begin)

    def _prompt(self, run: Run, thread: Thread, messages: Sequence[BaseMessage]) -> Prompt:
        of_memory = tuple(tool for tool in self._of_memory if tool.name in run.context.memory_tools)
        tools = (*self._tools, *of_memory) if run.calls_tools and run.model not in self._toolless else ()
        return prompt_of(run.context, thread, messages, tools, self._counter, model=run.model)

    def _messages_budget(self, run: Run, thread: Thread) -> int:
        """Return the tokens that messages and summary may have; a state that a client edited may not say it."""
        said: object = thread.receipt.get("messages_budget")
        if isinstance(said, int) and said >= LEAST_MESSAGE_TOKENS:
            return said
        return self._prompt(run, thread, thread.divided.live).shares.messages

    def _summary_model(self, run: Run) -> RunnableLambda[LanguageModelInput, str]:
        """Return the call of a model that is loaded when a summary is due, so that its lack fails only the summary."""
        settings = self._service.settings
        name = settings.memory_model or run.context.model

        calls = SummaryCalls(
            service=self._service,
            whose=(run.store, run.owner) if run.store is not None and run.owner is not None else None,
            load=lambda: in_background(self._service.load_model(name, "summary")),
            aload=lambda: self._service.aload_model(name, "summary"),
            seconds=settings.memory.model_timeout_seconds,
        )
        return calls.model()


def _turn_name(run: Run, thread: Thread) -> Hashable:
    """Return what names a turn in this process, whichever of its nodes asks."""
    return asyncio.get_running_loop(), run.context, run.thread, thread.asked
