"""The nodes of the chat graph: state in, update out. They decide nothing about memory and never fail for it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.runtime import Runtime

from graphs.context import Context
from graphs.events import MemoryInjected, MemoryQueued, MemorySummarized, aemit
from graphs.message_channel import changes
from graphs.model_errors import explain, is_context_overflow
from graphs.models import Purpose, resolve
from graphs.modes import (
    MemoryMode,
    effective_mode,
    learnable,
    mark_turn,
    marked,
    may_learn,
    may_read,
    mode_of_run,
    said_mode,
)
from graphs.prompt import Prompt, memory_budget, prompt_of, spoken, visible
from graphs.run import Run
from graphs.service import MemoryService, Queued
from graphs.state import Receipt, State
from graphs.view import smaller
from memory.context.summarization import SummarizationNode
from memory.context.tokens import TokenCounter
from memory.control import read_learning
from memory.core.basis import Injected, Turn, inject
from memory.core.known import Known
from memory.core.store import FactStore
from memory.message import iso_time
from memory.storage import arun, arun_patiently
from memory.updates.records import read_receipts

logger = logging.getLogger(__name__)

T = TypeVar("T")
StateUpdate = dict[str, Any]

_OVERFLOW_TRIES = 3


class ChatNodes:
    """The four nodes with what they need of their deployment.

    Args:
        service: Settings, models, and what carries finished turns into memory.
        tools: What the model may call.
        counter: Counts tokens, each message once.
    """

    def __init__(
        self,
        service: MemoryService,
        tools: Sequence[BaseTool] = (),
        *,
        counter: TokenCounter | None = None,
    ) -> None:
        self._service = service
        self._settings = service.settings
        self._tools = tuple(tools)
        self._counter = TokenCounter.of(counter)
        self._writing: set[asyncio.Task[Any]] = set()

    async def inject_memory(self, state: State, runtime: Runtime[Context]) -> StateUpdate:
        """Choose what the model should know about the user; the state keeps ids, the prompt reads the texts."""
        run = self._run(runtime)
        await self._counter.tokenizer.awarm_up()
        mode = await self._guarded("the turn goes on without memory", self._mode(run))
        logger.info("memory mode of the turn: %s", mode or "unknown")
        previous = Injected.from_state(state.get("memory"))
        known = await self._known(run, mode) if mode else None
        injected = self._chosen(run, state, previous, known)
        prompt = self._prompt(run, state, spoken(state), injected, known)
        receipt = Receipt(
            facts=list(injected.fact_ids()) if injected and known else [],
            tokens=prompt.tokens().model_dump(),
            messages_budget=prompt.shares().messages,
            updates=await self._updates_since(run, known, previous),
        )
        memory = {**(injected.to_state() if injected else {}), **_fence(state, known), "receipt": receipt}
        # A mode that could not be read marks nothing: flushing reads it again, and a mark would be for good.
        newly_marked = mark_turn(state["messages"], mode) if mode else []
        return {"memory": memory, "messages": newly_marked} if newly_marked else {"memory": memory}

    async def summarize(self, state: State, runtime: Runtime[Context]) -> StateUpdate:
        """Keep what the model sees of the conversation within its budget."""
        run = self._run(runtime)
        context, budget = run.context, self._messages_budget(run, state)

        async def write_down(leaving: list[BaseMessage]) -> None:
            await self._unhurried(self._remember_cut(run, leaving, _epoch(state)))

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
            memory_flush_hook=write_down,
        )
        result = await node.aresult(state)
        if result.cut is not None:
            await aemit(MemorySummarized.name, MemorySummarized.model_validate(asdict(result.cut)))
        return changes(state, node.update(state, result))

    async def call_model(self, state: State, runtime: Runtime[Context]) -> StateUpdate:
        """Answer, or call tools. A provider that finds the prompt too long is asked again with a smaller one."""
        run = self._run(runtime)
        injected = Injected.from_state(state.get("memory"))
        mode = said_mode(state["messages"])
        known = await self._known(run, mode)
        prompt = self._prompt(run, state, visible(state, run.context), injected, known)
        if isinstance(state["messages"][-1], HumanMessage):
            event = MemoryInjected(facts=tuple(_receipt(state).get("facts", ())), tokens=prompt.tokens())
            await aemit(MemoryInjected.name, event)
        return {"messages": [marked(await self._ask(run, prompt), mode)]}

    async def flush_memory(self, state: State, runtime: Runtime[Context]) -> StateUpdate:
        """Write the turn down before it ends, then trigger its update."""
        run = self._run(runtime)
        queued = await self._written(run, state)
        if queued is not None:
            await aemit(MemoryQueued.name, MemoryQueued.model_validate(asdict(queued)))
        receipt = Receipt(**{**_receipt(state), "queued": queued.entry if queued else None})
        return {"memory": {**(state.get("memory") or {}), "receipt": receipt}}

    def _run(self, runtime: Runtime[Context]) -> Run:
        return Run.of(get_config(), runtime, self._settings)

    def _chosen(self, run: Run, state: State, previous: Injected | None, known: Known | None) -> Injected | None:
        """Choose what this turn shows; where memory cannot be read, the choice before stays for the next turn."""
        if known is None:
            return previous
        before = self._prompt(run, state, spoken(state), previous, known)
        return inject(previous, known, self._turn(run, before), self._counter.text)

    def _prompt(
        self, run: Run, state: State, messages: Sequence[BaseMessage], injected: Injected | None, known: Known | None
    ) -> Prompt:
        shown, facts = injected or Injected(), known or Known()
        return prompt_of(run.context, state, messages, shown, facts, self._tools, self._counter)

    def _turn(self, run: Run, prompt: Prompt) -> Turn:
        asked = [message.id for message in prompt.messages if isinstance(message, HumanMessage)]
        return Turn(
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
        name, room = resolve(run.context.model, self._settings), prompt.room()
        model = await self._load(run.context.model, "chat")
        bound = model.bind_tools(self._tools) if self._tools else model
        for _ in range(_OVERFLOW_TRIES):
            try:
                return await bound.ainvoke(prompt.view(room))
            except Exception as error:  # each provider's package has exceptions of its own
                if not is_context_overflow(error):
                    raise explain(error, name) from error
                overflow, room = error, smaller(room)
        raise explain(overflow, name) from overflow

    async def _load(self, name: str, purpose: Purpose) -> BaseChatModel:
        return await self._service.aload_model(name, purpose)

    async def _mode(self, run: Run) -> MemoryMode:
        """Read what memory may do now: what the run's mode says, and at most reading while learning is paused."""
        if run.owner is None or run.store is None:
            return run.context.memory_mode
        mode = await mode_of_run(get_config(), run.context.memory_mode, on_server=run.on_server)
        learning = await arun_patiently(run.store, partial(read_learning, run.owner))
        return mode if learning else effective_mode(mode, "read_only")

    async def _known(self, run: Run, mode: MemoryMode) -> Known | None:
        """Read what is known about the user; `None` if nobody may be known, or the store does not answer."""
        if run.owner is None or run.store is None or run.context.memory_tokens == 0 or not may_read(mode):
            return None
        store = FactStore.of_owner(run.store, run.owner, config=self._settings.memory)
        return await self._guarded("the turn goes on without memory", store.aknown())

    async def _updates_since(self, run: Run, known: Known | None, previous: Injected | None) -> list[dict[str, Any]]:
        """Read what updates did since this thread's turn before."""
        if run.owner is None or run.store is None or known is None or previous is None:
            return []
        steps = read_receipts(run.owner, known.epoch, iso_time(previous.at))
        return await self._guarded("receipts were not read", arun(run.store, steps)) or []

    async def _remember(self, run: Run, messages: Sequence[BaseMessage], epoch: str) -> Queued | None:
        if run.owner is None or run.store is None:
            return None
        if not may_learn(effective_mode(said_mode(messages), await self._mode(run))):
            return None
        return await self._service.aremember(
            run.store,
            run.owner,
            "turn",
            learnable(messages),
            thread_id=run.thread_id,
            model=run.context.model,
            epoch=epoch,
        )

    async def _remember_cut(self, run: Run, leaving: Sequence[BaseMessage], epoch: str) -> None:
        """Write down what a summary is about to replace; if that fails, the messages stay."""
        if run.owner is None or run.store is None or not may_learn(await self._mode(run)):
            return
        said, model = learnable(leaving), run.context.model
        await self._service.aremember(
            run.store, run.owner, "cut", said, thread_id=run.thread_id, model=model, epoch=epoch
        )

    async def _written(self, run: Run, state: State) -> Queued | None:
        """Write the turn down; what goes wrong is logged and never fails the turn."""
        try:
            return await self._unhurried(self._remember(run, _learnable_since(state), _epoch(state)))
        except Exception as error:  # a store may fail in any way
            logger.warning("the turn was not written down: %s", type(error).__name__)
            return None

    async def _unhurried(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a write, which a deadline must not take back half done: past it, the write goes on by itself."""
        task = asyncio.create_task(work)
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        async with asyncio.timeout(self._settings.memory.write_timeout_seconds):
            return await asyncio.shield(task)

    def _messages_budget(self, run: Run, state: State) -> int:
        """Return the tokens that messages and summary may have; a state that a client edited may not say it."""
        known = _receipt(state).get("messages_budget")
        return known or self._prompt(run, state, spoken(state), None, None).shares().messages

    def _summary_model(self, run: Run) -> Callable[[LanguageModelInput, RunnableConfig], Awaitable[str]]:
        """Return the call of a model that is loaded when a summary is due, so that its lack fails only the summary."""

        async def ask(prompt: LanguageModelInput, config: RunnableConfig) -> str:
            async with asyncio.timeout(self._settings.memory.model_timeout_seconds):
                model = await self._load(self._settings.memory_model or run.context.model, "memory")
                # Its text alone: a message that a runnable returns inside a node is streamed to the user.
                return (await model.ainvoke(prompt, config)).text

        return ask

    async def _guarded(self, consequence: str, work: Awaitable[T]) -> T | None:
        """Wait for memory under the turn's deadline; what goes wrong is logged and never fails the turn."""
        try:
            async with asyncio.timeout(self._settings.memory.read_timeout_seconds):
                return await work
        except Exception as error:  # a store may fail in any way
            logger.warning("%s: %s", consequence, type(error).__name__)
            return None


def _receipt(state: State) -> Receipt:
    return (state.get("memory") or {}).get("receipt") or Receipt()


def _epoch(state: State) -> str:
    """Return the epoch under which the turn began: what an erase meets half-way is cancelled by it."""
    return (state.get("memory") or {}).get("epoch", "")


def _fence(state: State, known: Known | None) -> dict[str, str]:
    """Return the turn's epoch, and from which message on the thread may be learned if it changed since the last."""
    before = state.get("memory") or {}
    if known is None:
        return {}
    asked = [message.id for message in state["messages"] if isinstance(message, HumanMessage)]
    has_changed = before.get("epoch", known.epoch) != known.epoch
    since = str(asked[-1]) if has_changed and asked else before.get("learn_from", "")
    return {"epoch": known.epoch, "learn_from": since}


def _learnable_since(state: State) -> Sequence[BaseMessage]:
    """Return the messages that no erase came after."""
    messages, since = state["messages"], (state.get("memory") or {}).get("learn_from")
    start = next((at for at, message in enumerate(messages) if since and message.id == since), 0)
    return messages[start:]
