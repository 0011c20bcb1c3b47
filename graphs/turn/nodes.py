"""The nodes of the chat graph: state in, update out. They decide nothing about memory and never fail for it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import cached_property

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.runtime import Runtime

from graphs.deployment import service_of_process
from graphs.events import MemoryInjected, MemoryQueued, MemorySummarized, aemit
from graphs.models import Purpose, resolve
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.channels import changes
from graphs.turn.content import refused_before
from graphs.turn.context import Context
from graphs.turn.memory import Run, TurnMemory
from graphs.turn.modes import epochs_of, fence, mark_turn, marked, newest_turn, not_erased, said_mode
from graphs.turn.opening import Beginnings, Begun, begins, superstep_of, view_of
from graphs.turn.prompt import Prompt, ask, memory_budget, prompt_of, spoken, visible
from graphs.turn.state import (
    MemoryState,
    Receipt,
    State,
    asked_in,
    memory_of,
    receipt_of,
    summary_lost,
    warn_summary_lost,
)
from graphs.turn.view import LEAST_MESSAGE_TOKENS
from memory.context.summarization import SummarizationNode
from memory.context.tokens import TokenCounter
from memory.facts.snapshot import MemorySnapshot
from memory.injection.selection import Injected, TurnConditions, inject

logger = logging.getLogger(__name__)

StateUpdate = dict[str, object]


class ChatNodes:
    """The four nodes with what they need of their deployment.

    Args:
        service: Settings, models, and what carries finished turns into memory; by default that of this process.
        tools: What the model may call.
        counter: Counts tokens, each message once.
    """

    def __init__(
        self,
        service: MemoryService | None = None,
        tools: Sequence[BaseTool] = (),
        *,
        counter: TokenCounter | None = None,
    ) -> None:
        self._given = service
        self._tools = tuple(tools)
        self._counter = TokenCounter.of(counter)
        self._beginnings = Beginnings()

    # Found by the first run, not when a module is imported: `service_of_process` says why.
    @cached_property
    def _service(self) -> MemoryService:
        return self._given or service_of_process()

    @property
    def _settings(self) -> Settings:
        return self._service.settings

    @cached_property
    def _memory(self) -> TurnMemory:
        return TurnMemory(self._service)

    async def inject_memory(self, state: State, runtime: Runtime[Context]) -> StateUpdate:
        """Choose what the model should know about the user; the state keeps ids, the prompt reads the texts.

        Raises:
            ValueError: If the thread has no messages, so that there is nothing to answer.
        """
        if not state.get("messages"):
            raise ValueError("messages must hold at least one message: there is nothing to answer")
        with self._beginnings.first(superstep_of(runtime)):
            return await self._inject(state, runtime)

    async def _inject(self, state: State, runtime: Runtime[Context]) -> StateUpdate:
        run = await self._run(runtime)
        begun = await self._begun(run, state, runtime)
        logger.info("memory mode of the turn: %s", begun.mode or "unknown")
        receipt = Receipt(
            asked=asked_in(state),
            facts=list(begun.injected.fact_ids()) if begun.injected and begun.known else [],
            tokens=begun.prompt.tokens().model_dump(),
            messages_budget=begun.prompt.shares.messages,
            updates=begun.updates,
        )
        if reason := self._memory.why_without(run, begun.mode, begun.known):
            receipt["without_memory"] = reason
        if lost := summary_lost(get_config()):
            warn_summary_lost()
            receipt["summary_lost"] = lost
        memory: StateUpdate = {"memory": {**begun.memory, "receipt": receipt}}
        # Two nodes of one superstep must not both write the messages: in a compact thread, `summarize` does.
        marks = begun.marks if run.context.transcript == "keep" else []
        return {**memory, "messages": marks} if marks else memory

    async def summarize(self, state: State, runtime: Runtime[Context]) -> StateUpdate:
        """Keep what the model sees of the conversation within its budget.

        A turn begins beside `inject_memory`, whose choice has its share of the budget: it is made once for both.
        """
        if not state.get("messages"):
            return {}  # `inject_memory` says that there is nothing to answer
        run = await self._run(runtime)
        begun = await self._begun(run, state, runtime) if begins(state) else None
        now, context = begun.applied(state) if begun else state, run.context
        budget = begun.prompt.shares.messages if begun else self._messages_budget(run, state)

        async def write_down(leaving: list[BaseMessage]) -> None:
            await self._memory.write_down(run, "cut", not_erased(now, leaving), epochs_of(now))

        node = SummarizationNode(
            model=RunnableLambda(self._summary_model(run)),
            max_tokens=budget,
            max_summary_tokens=min(context.max_summary_tokens, budget // 2),
            token_counter=self._counter,
            initial_summary_prompt=context.initial_summary_prompt,
            existing_summary_prompt=context.update_summary_prompt,
            output_messages_key="messages" if context.transcript == "compact" else "summarized_messages",
            keep_tokens=context.keep_tokens,
            keep_messages=context.keep_messages,
            portion_tokens=context.summary_portion_tokens,
            memory_flush_hook=write_down,
        )
        result = await node.aresult(now)
        if result.cut is not None:
            await aemit(MemorySummarized.name, MemorySummarized.model_validate(asdict(result.cut)))
        await self._beginnings.after(superstep_of(runtime))
        update = changes(state, node.update(now, result))
        # Messages that are written whole carry their marks already.
        is_marking = begun and begun.marks and context.transcript == "compact" and "messages" not in update
        return {**update, "messages": begun.marks} if begun and is_marking else update

    async def call_model(self, state: State, runtime: Runtime[Context]) -> StateUpdate:
        """Answer, or call tools. A provider that finds the prompt too long is asked again with a smaller one."""
        run = await self._run(runtime)
        injected = Injected.from_state(memory_of(state))
        mode = said_mode(state["messages"])
        known = await self._memory.known(run, asked_in(state), mode)
        prompt = self._prompt(run, state, visible(state, run.context), injected, known)
        if isinstance(state["messages"][-1], HumanMessage):
            event = MemoryInjected(facts=tuple(receipt_of(state).get("facts", ())), tokens=prompt.tokens())
            await aemit(MemoryInjected.name, event)
        return {"messages": [marked(await self._ask(run, prompt), mode)]}

    async def flush_memory(self, state: State, runtime: Runtime[Context]) -> StateUpdate:
        """Write the turn down before it ends, then trigger its update."""
        run = await self._run(runtime)
        view = view_of(state, get_config())
        queued = await self._memory.remember(run, newest_turn(state), epochs_of(state), view)
        if queued is not None:
            await aemit(MemoryQueued.name, MemoryQueued.model_validate(asdict(queued)))
        receipt = Receipt(**{**receipt_of(state), "queued": queued.entry if queued else None})
        return {"memory": {**memory_of(state), "receipt": receipt}}

    async def _run(self, runtime: Runtime[Context]) -> Run:
        """Return the run, once its tokens can be counted: it may begin, or resume in a new process, at any node."""
        await self._counter.tokenizer.awarm_up()
        return Run.of(get_config(), runtime, self._settings)

    async def _begun(self, run: Run, state: State, runtime: Runtime[Context]) -> Begun:
        """Return what the turn begins with: read and chosen once for the two nodes that begin it side by side."""
        turn = (superstep_of(runtime), run.context, run.owner, run.user_id)
        return await self._beginnings.of(turn, lambda: self._begin(run, state))

    async def _begin(self, run: Run, state: State) -> Begun:
        previous = Injected.from_state(memory_of(state))
        opened = await self._memory.open(run, asked_in(state), previous.at if previous else None)
        mode, known = opened.mode, opened.known(run.context)
        injected = self._chosen(run, state, previous, known)
        epochs = fence(state, opened.epochs)
        return Begun(
            mode=mode,
            known=known,
            updates=[receipt.to_json() for receipt in opened.opening.updates] if opened.opening and known else [],
            injected=injected,
            prompt=self._prompt(run, state, spoken(state), injected, known),
            memory=MemoryState(**{**(injected.to_state() if injected else {}), **epochs}),  # type: ignore[typeddict-item]
            # A mode that could not be read marks nothing: flushing reads it again, and a mark would be for good.
            marks=mark_turn(state["messages"], mode) if mode else [],
        )

    def _chosen(
        self, run: Run, state: State, previous: Injected | None, known: MemorySnapshot | None
    ) -> Injected | None:
        """Choose what this turn shows; where memory cannot be read, the choice before stays for the next turn."""
        if known is None:
            return previous
        before = self._prompt(run, state, spoken(state), previous, known)
        return inject(previous, known, self._turn(run, before), self._counter.text)

    def _prompt(
        self,
        run: Run,
        state: State,
        messages: Sequence[BaseMessage],
        injected: Injected | None,
        known: MemorySnapshot | None,
    ) -> Prompt:
        shown, facts = injected or Injected(), known or MemorySnapshot()
        prompt = prompt_of(run.context, state, messages, shown, facts, self._tools, self._counter)
        return prompt.without(refused_before(messages, self._name(run)))

    def _turn(self, run: Run, prompt: Prompt) -> TurnConditions:
        asked = [message.id for message in prompt.messages if isinstance(message, HumanMessage)]
        return TurnConditions(
            thread_id=run.thread_id,
            message_id=str(asked[-1]) if asked else "",
            window={str(message.id) for message in prompt.messages},
            now=self._service.clock(),
            cache_ttl_seconds=run.context.cache_ttl_seconds,
            will_summarize=prompt.exceeds(),
            budget=memory_budget(run.context),
            protected_categories=self._settings.memory.protected_categories,
        )

    async def _ask(self, run: Run, prompt: Prompt) -> AIMessage:
        model = await self._load(run.context.model, "chat")
        bound = model.bind_tools(self._tools) if self._tools else model
        return await ask(bound, prompt, self._name(run))

    def _name(self, run: Run) -> str:
        return resolve(run.context.model, self._settings)

    async def _load(self, name: str, purpose: Purpose) -> BaseChatModel:
        return await self._service.aload_model(name, purpose)

    def _messages_budget(self, run: Run, state: State) -> int:
        """Return the tokens that messages and summary may have; a state that a client edited may not say it."""
        known: object = receipt_of(state).get("messages_budget")
        if isinstance(known, int) and known >= LEAST_MESSAGE_TOKENS:
            return known
        return self._prompt(run, state, spoken(state), None, None).shares.messages

    def _summary_model(self, run: Run) -> Callable[[LanguageModelInput, RunnableConfig], Awaitable[str]]:
        """Return the call of a model that is loaded when a summary is due, so that its lack fails only the summary."""

        async def ask(prompt: LanguageModelInput, config: RunnableConfig) -> str:
            async with asyncio.timeout(self._settings.memory.model_timeout_seconds):
                model = await self._load(self._settings.memory_model or run.context.model, "summary")
                # Its text alone: a message that a runnable returns inside a node is streamed to the user.
                return (await model.ainvoke(prompt, config)).text

        return ask
