"""`PalimpsestMemory`: what the chat graph's nodes do for memory, around the model of anyone's agent."""

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
)
from langchain.tools import ToolRuntime
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.config import get_config
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime, get_runtime
from langgraph.store.base import BaseStore
from langgraph.types import Overwrite

from graphs.deployment import service_of_process
from graphs.events import MemoryInjected, TokenParts, aemit
from graphs.middleware.asked import Asking, refused, refused_in_earlier_runs, unanswered_questions
from graphs.middleware.choices import Choices, User
from graphs.middleware.request import name_of, noted, ordered, with_recalled_texts, with_text
from graphs.middleware.state import (
    ASKED_KEY,
    SUMMARY_KEY,
    AgentMemory,
    MemoryKeys,
    kept_by,
    thread_in,
    with_ids,
    with_kept,
)
from graphs.models import caches_marked_prompts, input_tokens
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.streaming import stream_transformers
from graphs.synchronous import ThreadedStore, finished
from graphs.tools_of_memory import InWhoseName, memory_tools
from graphs.turn.calls import Result, hands_off
from graphs.turn.channels import merge_messages
from graphs.turn.context import Context, MemoryToolName
from graphs.turn.ending import end_turn
from graphs.turn.memory import Room, TurnMemory
from graphs.turn.opening import Begun, OpenTurns
from graphs.turn.prepared import PreparedSummaries, SummaryAhead
from graphs.turn.run import Run
from graphs.turn.sources import Sources, sources_of
from graphs.turn.thread import Thread
from graphs.turn.view import count_tools
from graphs.turn.writing import name_unwritten
from memory.context.effects import FlushHook
from memory.context.running_summary import RunningSummary
from memory.context.tokens import TokenCounter
from memory.injection.injected import render_block, render_deltas
from memory.namespaces import Owner
from memory.turn import MemoryMode, TurnEpochs, effective_mode, mode_of_newest
from memory.unwritten import Unwritten, named
from memory.updates.transcript import ThreadView


class PalimpsestMemory(AgentMiddleware[AgentState[Any], Any, Any]):
    """Gives an agent of `create_agent` or `create_deep_agent` the memory that the chat graph has.

    What a person says is written down in the store when the model is asked, and the whole turn before the agent ends.
    What a guard refuses before that, as it raises or jumps to the end, is not learned. What is known of the user stands
    behind the system prompt; what a turn adds to it, before its message. Of that, the state keeps ids only. Memory
    never fails a run: what goes wrong is logged.

    The agent needs a `store`, and a `checkpointer` for conversations of more than one turn. Pass
    `state_schema=PalimpsestState`, so that a checkpoint holds what a step added and not the whole conversation. Below
    another agent's tools nothing is learned: what stands there in a person's place was written by a model.

    Args:
        user: Whose memory it is: an id, or a function of the runtime that returns one, or `None` for nobody. Without
            it, whom the server vouches for; in single-user mode, that one user. Without an identity a turn has no
            memory.
        agent_name: Agents of one name share what they know about a user.
        memory_tokens: Tokens of the memory block at most; 0 injects nothing.
        memory_mode: `normal`, `read_only` (nothing is learned) or `incognito` (nothing is read either). A run may be
            stricter.
        memory_model: What reads conversations in the background: `provider:model`, or a model of this process. By
            default that of the deployment; where none is configured, the agent's own model.
        tools: What the model may do with memory itself: `search_memory`, `read_conversation`, `remember`, `forget`,
            `list_memories`.
        time_zone: Time zone of a user who has set none.
        cache_ttl_seconds: How long the provider caches a prompt; an older one may be rearranged.
        learn_refused: Whether what is said is written down as a run begins, whatever other middleware makes of it.
        service: Settings, models and the update queue; by default those of this process.
        counter: Counts tokens; by default that of this process.
        name: Tells two instances in one agent apart.

    Raises:
        ValueError: If a choice cannot be meant; the message names it.
    """

    state_schema = MemoryKeys
    transformers = tuple(stream_transformers())

    def __init__(
        self,
        *,
        user: User = None,
        agent_name: str = "default",
        memory_tokens: int = 2000,
        memory_mode: MemoryMode = "normal",
        memory_model: str | BaseChatModel | None = None,
        tools: Sequence[MemoryToolName] = ("search_memory", "remember", "forget"),
        time_zone: str = "",
        cache_ttl_seconds: float = 300.0,
        learn_refused: bool = False,
        service: MemoryService | None = None,
        counter: TokenCounter | None = None,
        name: str = "PalimpsestMemory",
    ) -> None:
        context = Context(
            model=memory_model if isinstance(memory_model, str) else "",
            agent_name=agent_name,
            memory_tokens=memory_tokens,
            memory_mode=memory_mode,
            time_zone=time_zone,
            cache_ttl_seconds=cache_ttl_seconds,
        )
        self._choices = Choices(user, context)
        self._memory_model = memory_model if isinstance(memory_model, BaseChatModel) else None
        self._given = service
        self._learn_refused = learn_refused
        self._name = name
        self._counter = TokenCounter.of(counter)
        self._turns = OpenTurns[None]()
        self._threaded: ThreadedStore | None = None
        self.tools = [*memory_tools(tools, service=lambda: self.service, asked_by=self._asked_by)]

    @property
    def name(self) -> str:
        """The instance's name, which its nodes have."""
        return self._name

    @cached_property
    def service(self) -> MemoryService:
        """What carries finished turns into memory; `close()` learns what waits, before a program ends."""
        if self._given is None and (model := self._memory_model) is not None:
            return MemoryService(Settings.from_environment(), lambda *_: model)
        return self._given or service_of_process()

    @cached_property
    def _memory(self) -> TurnMemory:
        return TurnMemory(self.service)

    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Read memory, and choose what the turn shows of it."""
        return finished(self._begin(state, runtime, self._threaded_store(runtime)))

    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do what `before_agent` does."""
        return await self._begin(state, runtime, runtime.store)

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do what `before_agent` does, for what a person said since."""
        return self.before_agent(state, runtime) if self._is_new(state) else None

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do what `before_model` does."""
        return await self.abefore_agent(state, runtime) if self._is_new(state) else None

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Show the model what memory holds, and write down what it is asked."""
        store = self._threaded_store(request.runtime)
        shown, mode, sources, asked = finished(self._shown(request, store))

        async def write() -> None:
            finished(self._write_asked(request, store))  # on a thread that waits for the model anyway

        with Asking(write, name_of(request.model)) as asking:
            response = handler(_ordered(shown))
        return noted(response, request.model, mode, sources, asked if asking.is_asked else "")

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ExtendedModelResponse[Any]:
        """Do what `wrap_model_call` does."""
        shown, mode, sources, asked = await self._shown(request, request.runtime.store)
        write = partial(self._write_asked, request, request.runtime.store)
        with Asking(write, name_of(request.model)) as asking:
            response = await handler(_ordered(shown))
        return noted(response, request.model, mode, sources, asked if asking.is_asked else "")

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]) -> Result:
        """Write the turn down where a tool hands it off to a graph above: `after_agent` is not called then."""
        result = handler(request)
        if hands_off(result):
            finished(self._end(request.state, get_runtime(), self._threaded_store(get_runtime())))
        return result

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        """Do what `wrap_tool_call` does."""
        result = await handler(request)
        if hands_off(result):
            await self._end(request.state, get_runtime(), request.runtime.store)
        return result

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Write the turn down before it ends, then trigger its update."""
        return finished(self._end(state, runtime, self._threaded_store(runtime)))

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do what `after_agent` does."""
        return await self._end(state, runtime, runtime.store)

    def cut_hook(self, state: Mapping[str, Any], runtime: Runtime[Any]) -> FlushHook:
        """Return what writes down the messages that a summary is about to take the place of."""
        store = self._threaded_store(runtime)
        return lambda leaving: finished(self._write_cut(leaving, state, runtime, store))

    def acut_hook(self, state: Mapping[str, Any], runtime: Runtime[Any]) -> FlushHook:
        """Return what `cut_hook` does, for the event loop."""
        return partial(self._write_cut, state=state, runtime=runtime, store=runtime.store)

    def summary_ahead(
        self, kept: PreparedSummaries, state: Mapping[str, Any], runtime: Runtime[Any], *of: Hashable
    ) -> SummaryAhead:
        """Return where the thread's summary is found when it is written before it is due.

        Args:
            kept: The summaries of this process.
            state: The agent's state.
            runtime: The run's.
            of: What the summary depends on beside what was said, and whose memory it is.
        """
        thread = self._thread(state)
        mode = effective_mode(mode_of_newest(thread.messages), kept_by(self.name, state).get("mode"))
        return SummaryAhead.of_run(kept, self._run(runtime, runtime.store, thread.asked), thread.epochs, mode, *of)

    def whose(self, state: Mapping[str, Any], runtime: Runtime[Any]) -> tuple[BaseStore | None, Owner | None]:
        """Return whose memory a run is about, and where it is kept, as a thread may ask."""
        run = self._run(runtime, self._threaded_store(runtime), self._thread(state).asked)
        return run.store, run.owner

    async def _write_cut(
        self, leaving: list[BaseMessage], state: Mapping[str, Any], runtime: Runtime[Any], store: BaseStore | None
    ) -> None:
        epochs, thread = TurnEpochs.from_state(kept_by(self.name, state)), self._thread(state)
        # What the model is still to be asked is written down then: a guard may come before it.
        questions = [] if self._learn_refused else unanswered_questions(thread.messages, state.get(ASKED_KEY))
        later = {question.id for question in questions}
        said = [one for one in epochs.not_erased(leaving, state["messages"]) if one.id not in later]
        await self._memory.writing.write_down(self._run(runtime, store, thread.asked), said, epochs)

    async def _write_asked(self, request: ModelRequest[Any], store: BaseStore | None) -> None:
        """Write down what the model is asked, at its first call in a turn: it may fail, and the process be killed."""
        memory = kept_by(self.name, request.state)
        thread = thread_in(request.state, memory)
        is_written = self._learn_refused or request.state.get(ASKED_KEY) == thread.asked
        # Where another middleware jumped over the beginning of the turn, or asks in other words, its end writes it.
        if not is_written and not self._is_new(request.state) and _may_be_learned(memory):
            await self._write_question(self._run(request.runtime, store, thread.asked), thread)

    async def _write_question(self, run: Run, thread: Thread) -> tuple[Unwritten, ...]:
        """Write a thread's newest turn down before it is answered; return which of its turns are not written down."""
        closed = await self._memory.writing.close(run, thread.messages, thread.epochs, None)
        before = (one for one in thread.unwritten if one.asked != run.asked)
        # The end of the turn tries again.
        unwritten = (*before, *closed.unwritten)
        self._memory.writing.leave(run, thread.messages, thread.epochs, unwritten)
        return unwritten

    def _is_new(self, state: Mapping[str, Any]) -> bool:
        """Say whether the newest question is not the one that the turn began with."""
        thread = self._thread(state)
        return bool(thread.asked) and thread.receipt.get("asked") != thread.asked

    async def _begin(self, state: Any, runtime: Runtime[Any], store: BaseStore | None) -> dict[str, Any] | None:
        state, update = with_ids(state)
        thread = self._thread(state)
        run = self._run(runtime, store, thread.asked)
        if not thread.asked:
            return update or None
        await self._counter.tokenizer.awarm_up()

        async def begin() -> Begun[None]:
            previous, live, tokens = thread.injected, thread.divided.live, run.context.memory_tokens
            window = {str(message.id) for message in live}
            # What was recalled for a message is shown before it: once the message is gone, the block has to say it.
            is_cut = previous is not None and any(delta.message_id not in window for delta in previous.deltas)
            room = Room(tokens, tokens, will_summarize=is_cut)
            opening, injected = await self._memory.choose(run, previous, live, lambda _: room, self._counter)
            return Begun.of(run, thread, opening, injected, None)

        begun = await self._turns.begin(run.turn, object(), begin)
        receipt = begun.receipt(thread.asked, self._memory.why_without(run, begun.opening))
        memory = AgentMemory(**{**begun.memory, "mode": begun.opening.mode, "receipt": receipt})
        changed, answered = begun.with_mode, state.get(ASKED_KEY, "")
        if not self._learn_refused:
            unwritten, threaded = [one.asked for one in thread.unwritten], isinstance(store, ThreadedStore)
            changed = [
                *await refused_in_earlier_runs(thread.messages, answered, unwritten, threaded=threaded),
                *changed,
            ]
            if begun.opening.mode is None:
                # Who cannot read will hardly write. Until the turn ends the checkpoint names it, should that not be.
                named_now = name_unwritten(run, run.asked, self.service.clock(), thread.epochs, is_read=False)
                memory = AgentMemory(**{**memory, **named((*thread.unwritten, *named_now))})
        elif _may_be_learned(memory):
            now = {**state, **begun.in_state(thread.state)} if begun.with_mode else state
            memory = AgentMemory(**{**memory, **named(await self._write_question(run, thread_in(now, memory)))})
        # A question that is sent again is asked again.
        settled = thread.asked if self._learn_refused else "" if answered == thread.asked else answered
        return {**with_kept(self.name, state, memory), **_with_changed(changed, state, update), ASKED_KEY: settled}

    async def _end(self, state: Any, runtime: Runtime[Any], store: BaseStore | None) -> dict[str, Any] | None:
        update: dict[str, Any] = {}
        asked, answered = self._thread(state).asked, state.get(ASKED_KEY)
        if asked and not self._learn_refused and answered != asked:
            state, update = with_ids(state)
            return _with_changed(refused(unanswered_questions(self._thread(state).messages, answered)), state, update)
        # Another middleware may have jumped over the beginning.
        if self._is_new(state):
            update = {**(await self._begin(state, runtime, store) or {}), ASKED_KEY: asked}
            said = update.get("messages", [])
            messages = said.value if isinstance(said, Overwrite) else merge_messages(state["messages"], [said])
            state = {**state, **update, "messages": messages}
        memory = kept_by(self.name, state)
        thread = thread_in(state, memory)
        if not thread.messages or not _may_be_learned(memory):
            return update or None
        ended = await end_turn(
            self._memory, self._run(runtime, store, thread.asked), thread, _thread_view(thread, state)
        )
        return {**update, **with_kept(self.name, state, AgentMemory(**{**ended, "mode": memory.get("mode")}))}

    async def _shown(
        self, request: ModelRequest[Any], store: BaseStore | None
    ) -> tuple[ModelRequest[Any], MemoryMode | None, Sources | None, str]:
        """Return the request with memory in it, its question's mode, what of memory it shows, and its question's id."""
        thread = self._thread(request.state)
        run = self._run(request.runtime, store, thread.asked)
        memory = kept_by(self.name, request.state)
        noted = memory.get("mode")
        mode = effective_mode(mode_of_newest(thread.messages), noted)
        if self._given is None and self._memory_model is None:
            # Where the deployment has configured no model, the agent's own reads what is said.
            self.service.lent_model = request.model
        if (injected := thread.injected) is None or noted is None:
            return request.override(messages=with_recalled_texts(request.messages, {})), mode, None, thread.asked
        snapshot = await self._memory.shown(run, mode, self._turns.take_fresh(run.turn), injected)
        block, recalled = "", dict[str, str]()
        if snapshot is not None:
            block = render_block(injected, snapshot, run.context.memory_tokens, self._counter.text)
            recalled = render_deltas(injected, snapshot)
        if isinstance(request.state["messages"][-1], HumanMessage):
            tokens = self._tokens(request, thread.running, block, recalled)
            await aemit(MemoryInjected.name, MemoryInjected.of(thread.receipt, tokens))
        changed = request.override(
            system_message=with_text(request.system_message, block, marks_stable=caches_marked_prompts(request.model)),
            messages=with_recalled_texts(request.messages, recalled),
        )
        return changed, mode, sources_of(injected, snapshot), thread.asked

    def _tokens(
        self, request: ModelRequest[Any], running: RunningSummary | None, block: str, recalled: Mapping[str, str]
    ) -> TokenParts:
        return TokenParts(
            system=self._counter.text(request.system_prompt or "") + count_tools(request.tools, self._counter),
            memory=self._counter.text(block),
            recalled=sum(map(self._counter.text, recalled.values())),
            summary=self._counter.text(running.summary) if running else 0,
            messages=self._counter(request.messages),
            budget=input_tokens(request.model),
        )

    def _thread(self, state: Mapping[str, Any]) -> Thread:
        return thread_in(state, kept_by(self.name, state))

    def _run(self, runtime: Runtime[Any] | ToolRuntime[Any, Any], store: BaseStore | None, asked: str) -> Run:
        settings, config = self.service.settings, get_config()
        configurable = config.get("configurable", {})
        context = self._choices.of_run(runtime.context)
        run = Run.of(config, replace(runtime, context=context), settings, asked)
        owner = self._choices.owner(runtime, configurable, single_user=settings.single_user)
        # Not as the deployment's own model can bear it: the agent's is another one.
        return replace(run, context=context, owner=owner, store=store)

    def _asked_by(self, runtime: ToolRuntime[Any, Any], asked: str) -> InWhoseName:
        """Return in whose name the model calls a tool."""
        return self._run(runtime, runtime.store, asked), kept_by(self.name, runtime.state)

    def _threaded_store(self, runtime: Runtime[Any]) -> BaseStore | None:
        if runtime.store is None:
            return None
        # One for as long as the store is the same: the process knows stores by their identity.
        if self._threaded is None or self._threaded.inner is not runtime.store:
            self._threaded = ThreadedStore(runtime.store)
        return self._threaded


def _with_changed(changed: Sequence[BaseMessage], state: Mapping[str, Any], update: dict[str, Any]) -> dict[str, Any]:
    """Return the update with changed messages in it; one that writes messages down with their ids has them all."""
    if not changed:
        return update
    return {"messages": Overwrite(merge_messages(state["messages"], [changed])) if update else changed}


def _ordered(request: ModelRequest[Any]) -> ModelRequest[Any]:
    # Where a summary stands for messages, `PalimpsestSummary` comes next, and knows them by ids that joined ones lose.
    return request if SUMMARY_KEY in request.state else ordered(request)


def _may_be_learned(memory: AgentMemory) -> bool:
    """Say whether the turn may be written down; where nobody could read that, writing finds out."""
    return memory.get("mode") in (None, "normal")


def _thread_view(thread: Thread, state: Mapping[str, Any]) -> ThreadView | None:
    """Return what the thread holds; `None` where a summary took the place of messages: they were not edited away."""
    is_whole = len(thread.messages) == len(state["messages"])
    return thread.view(get_config()) if is_whole else None
