"""`PalimpsestMemory`: what the chat graph's nodes do for memory, around the model of anyone's agent."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
)
from langchain.tools import ToolRuntime
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.config import get_config
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Command, Overwrite

from graphs.middleware.asked import Asking, refused, refused_in_earlier_runs, unanswered_questions
from graphs.middleware.request import AsyncHandler, Handler, Request, Response, ordered, with_text
from graphs.middleware.state import (
    ASKED_KEY,
    SUMMARY_KEY,
    AgentMemory,
    MemoryContext,
    MemoryKeys,
    kept_by,
    thread_in,
    with_ids,
    with_kept,
)
from graphs.process.deployment import service_of_process
from graphs.process.events import MemoryInjected, aemit
from graphs.process.identity import owner_of_run
from graphs.process.models import input_tokens
from graphs.process.service import MemoryService
from graphs.process.synchronous import asked_here, finished, is_awaited, without_await
from graphs.settings import Settings
from graphs.streaming import stream_transformers
from graphs.tools_of_memory import InWhoseName, memory_tools
from graphs.turn.calls import Result, hands_off
from graphs.turn.context import Context, MemoryToolName
from graphs.turn.memory import TurnMemory
from graphs.turn.prepared import Due
from graphs.turn.prompt import Prompt, noted, with_recalled
from graphs.turn.run import Run, Thread
from graphs.turn.state import merge_messages
from memory.context.tokens import TokenCounter
from memory.door import tolerated
from memory.namespaces import Owner
from memory.turn import MemoryMode, effective_mode, mode_of_newest
from memory.updates.unwritten import named

logger = logging.getLogger(__name__)

User = str | Callable[[Any], str | None] | None
"""Whose memory it is: an id, what returns one for a runtime (a tool's too), or `None`: whom the server vouches for."""
AnyRuntime = Runtime[Any] | ToolRuntime[Any, Any]
Update = dict[str, Any]
Noted = Callable[[Response], ExtendedModelResponse[Any]]
"""Returns an answer as the thread keeps it, and whether a model was asked; `ModelUnavailable` if it is no text."""


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
        tools: What the model may do with memory itself: `search_memory`, `read_conversation`, `list_memories`,
            `remember`, `forget`, `restore`.
        time_zone: Time zone of a user who has set none.
        cache_ttl_seconds: How long the provider caches a prompt; an older one may be rearranged.
        service: Settings, models and the update queue; by default those of this process.
        counter: Counts tokens; by default that of this process.
        name: Tells two instances in one agent apart.

    Raises:
        ValueError: If a choice cannot be meant; the message names it.
    """

    name = "PalimpsestMemory"
    """The instance's name, which its nodes have."""
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
        service: MemoryService | None = None,
        counter: TokenCounter | None = None,
        name: str = "PalimpsestMemory",
    ) -> None:
        if isinstance(user, str) and not user.strip():
            raise ValueError("user must not be blank: name the user, or None for whom the server vouches for")
        if not (user is None or isinstance(user, str) or callable(user)):  # as ids of a database's rows are
            raise ValueError(f"user must be text, a function or None, not {type(user).__name__}: pass str({user!r})")
        if inspect.iscoroutinefunction(user):
            raise ValueError("user must be a plain function: it is also called where there is no event loop")
        self._context = Context(
            model=memory_model if isinstance(memory_model, str) else "",
            agent_name=agent_name,
            memory_tokens=memory_tokens,
            memory_mode=memory_mode,
            time_zone=time_zone,
            cache_ttl_seconds=cache_ttl_seconds,
        )
        self._user = user
        self._memory_model = memory_model if isinstance(memory_model, BaseChatModel) else None
        self._given = service
        self.name = name
        self._counter = TokenCounter.of(counter)

        def asked_by(runtime: ToolRuntime[Any, Any]) -> InWhoseName:
            return self.run(runtime), kept_by(self.name, runtime.state)

        self.tools = [*memory_tools(tools, service=lambda: self.service, asked_by=asked_by)]

    @cached_property
    def service(self) -> MemoryService:
        """What carries finished turns into memory; `close()` learns what waits, before a program ends."""
        if self._given is None and (model := self._memory_model) is not None:
            return MemoryService(Settings.from_environment(), lambda *_: model)
        return self._given or service_of_process()

    @cached_property
    def _memory(self) -> TurnMemory:
        return TurnMemory(self.service)

    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> Update | None:
        """Read memory, and choose what the turn shows of it."""
        state, update = with_ids(state)
        thread, run = self._thread(state), self.run(runtime)
        if not thread.asked:
            return update or None
        await self._counter.tokenizer.awarm_up()
        live, tokens = thread.divided.live, run.context.memory_tokens
        # What was recalled for a message is shown before it: once the message is gone, the block has to say it.
        recalled_for = {delta.message_id for delta in thread.injected.deltas} if thread.injected else set[str]()
        is_gone = not recalled_for <= {str(message.id) for message in live}
        turn = await self._memory.begin(run, thread, live, (tokens, tokens), lambda _: is_gone, self._counter)
        memory: AgentMemory = {**turn.memory, "mode": turn.opening.mode}
        answered = state.get(ASKED_KEY, "")
        changed = [*await refused_in_earlier_runs(thread, answered), *turn.marked]
        if turn.opening.mode is None:
            # Who cannot read will hardly write. Until the turn ends the checkpoint names it, should that not be.
            now = thread.named_unwritten(run, thread.asked, self.service.clock(), is_read=False)
            memory = {**memory, **named((*thread.unwritten, *now))}
        # A question that is sent again is asked again.
        settled = "" if answered == thread.asked else answered
        return {**with_kept(self.name, state, memory), **_with_changed(changed, state, update), ASKED_KEY: settled}

    before_agent = without_await(abefore_agent)

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> Update | None:
        """Do what `abefore_agent` does, for what a person said since."""
        return await self.abefore_agent(state, runtime) if _is_new(self._thread(state)) else None

    before_model = without_await(abefore_model)

    def wrap_model_call(self, request: Request, handler: Handler) -> ExtendedModelResponse[Any]:
        """Show the model what memory holds, and write down what it is asked."""
        shown, asking, note = finished(self._shown(request))
        with asking:
            response = handler(shown)
        return note(response)

    async def awrap_model_call(self, request: Request, handler: AsyncHandler) -> ExtendedModelResponse[Any]:
        """Do what `wrap_model_call` does."""
        shown, asking, note = await self._shown(request)
        with asking:
            response = await handler(shown)
        return note(response)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]) -> Result:
        """Write the turn down where a tool hands it off to a graph above: `after_agent` is not called then."""
        result = handler(request)
        if hands_off(result):
            self.after_agent(request.state, get_runtime())
        return result

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        """Do what `wrap_tool_call` does."""
        result = await handler(request)
        if hands_off(result):
            await self.aafter_agent(request.state, get_runtime())
        return result

    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> Update | None:
        """Write the turn down before it ends, then trigger its update."""
        update: Update = {}
        thread, answered = self._thread(state), state.get(ASKED_KEY)
        if thread.asked and answered != thread.asked:
            state, update = with_ids(state)
            return _with_changed(refused(unanswered_questions(thread.messages, answered)), state, update)
        # Another middleware may have jumped over the beginning.
        if _is_new(thread):
            update = {**(await self.abefore_agent(state, runtime) or {}), ASKED_KEY: thread.asked}
            said = update.get("messages", [])
            messages = said.value if isinstance(said, Overwrite) else merge_messages(state["messages"], [said])
            state = {**state, **update, "messages": messages}
            thread = self._thread(state)
        memory = kept_by(self.name, state)
        if not thread.messages or not _may_be_learned(memory):
            return update or None
        # Where a summary took the place of messages, nobody knows what the thread holds: they were not edited away.
        is_whole = len(thread.messages) == len(state["messages"])
        ended = await self._memory.end(self.run(runtime), thread, is_whole=is_whole)
        return {**update, **with_kept(self.name, state, {**ended, "mode": memory.get("mode")})}

    after_agent = without_await(aafter_agent)

    def cut_hook(
        self, state: Mapping[str, Any], run: Callable[[], Run]
    ) -> Callable[[list[BaseMessage]], Awaitable[None]]:
        """Return what writes down the messages that a summary is about to take the place of."""

        async def write_cut(leaving: list[BaseMessage]) -> None:
            thread = self._thread(state)
            # What the model is still to be asked is written down then: a guard may come before it.
            later = {question.id for question in unanswered_questions(thread.messages, state.get(ASKED_KEY))}
            said = [one for one in thread.epochs.not_erased(leaving, state["messages"]) if one.id not in later]
            await self._memory.write_cut(run(), said, thread.epochs)

        return write_cut

    def due(self, state: Mapping[str, Any], run: Run, *of: Hashable) -> Due:
        """Return which summary the thread will need; `of` is what else it depends on."""
        return Due.of_run(run, self._thread(state), *of)

    async def _shown(self, request: Request) -> tuple[Request, Asking, Noted]:
        """Return the request with memory in it, how it is asked, and what notes with an answer what it shows."""
        memory, run = kept_by(self.name, request.state), self.run(request.runtime)
        thread, mode_of_turn = thread_in(request.state, memory), memory.get("mode")
        mode = effective_mode(mode_of_newest(thread.messages), mode_of_turn)
        if self._given is None and self._memory_model is None:
            # Where the deployment has configured no model, the agent's own reads what is said.
            self.service.lent_model = request.model
        prompt = Prompt(
            max_tokens=input_tokens(request.model),
            memory_budget=run.context.memory_tokens,
            system_prompt=request.system_prompt or "",
            summary=thread.running.summary if thread.running else "",
            messages=request.messages,
            tools=request.tools,
            counter=self._counter,
        )
        if thread.injected is not None and mode_of_turn is not None:
            prompt = prompt.showing(thread.injected, await self._memory.shown(run, thread, mode))
            if isinstance(next(reversed(request.state["messages"]), None), HumanMessage):
                await aemit(MemoryInjected.name, MemoryInjected.of(thread.receipt, prompt.tokens()))
        recalled = prompt.recalled
        messages = [
            with_recalled(one, recalled[str(one.id)]) if one.id in recalled else one for one in request.messages
        ]
        # Anthropic caches a prompt up to the marks in it.
        marks_stable = request.model._llm_type.startswith("anthropic-chat")
        system = with_text(request.system_message, prompt.block, marks_stable=marks_stable)
        changed = request.override(messages=messages, system_message=system)
        name = str(getattr(request.model, "model_name", type(request.model).__name__))  # as sentences call it

        async def write() -> None:
            """Write down what the model is asked, at its first call in a turn: it may fail, and the process be killed.

            The end of the turn tries again.
            """
            is_written = request.state.get(ASKED_KEY) == thread.asked
            # Where another middleware jumped over the beginning of the turn, or asks in other words, its end writes it.
            if not is_written and not _is_new(thread) and _may_be_learned(memory):
                await self._memory.write_turn(run, thread)

        asking = Asking(write, name, is_awaited=is_awaited())

        def note(response: Response) -> ExtendedModelResponse[Any]:
            said = response.result
            kept = [noted(one, name, mode, prompt.sources) if isinstance(one, AIMessage) else one for one in said]
            update: Command[Any] | None = Command(update={ASKED_KEY: thread.asked}) if asking.is_asked else None
            return ExtendedModelResponse(replace(response, result=kept), update)

        # Where a summary stands for messages, `PalimpsestSummary` comes next, and knows them by ids that joined ones
        # lose.
        return changed if SUMMARY_KEY in request.state else ordered(changed), asking, note

    def _thread(self, state: Mapping[str, Any]) -> Thread:
        return thread_in(state, kept_by(self.name, state))

    def run(self, runtime: AnyRuntime) -> Run:
        """Return the run in progress, as memory sees it: whose it is, and what was chosen for it."""
        config, user, said = get_config(), self._user, runtime.context
        # An agent may have a context of its own, a mapping or an object, with fields of these names or without.
        if not isinstance(said, Mapping):
            said = {name: getattr(said, name, None) for name in MemoryContext.__annotations__}
        chosen = {name: said[name] for name in MemoryContext.__annotations__ if said.get(name) is not None}
        chosen["memory_mode"] = effective_mode(self._context.memory_mode, chosen.get("memory_mode"))
        context = replace(self._context, **chosen)
        owner: Owner | None = None
        if user is None:
            configurable = config.get("configurable", {})
            owner = owner_of_run(configurable, context.agent_name, single_user=self.service.settings.single_user)
        else:
            # One who cannot be named has no memory: another's would be worse, and a run must not fail for it.
            with tolerated(logger, "nobody can say whose memory a run uses: it goes on without"):
                name = user if isinstance(user, str) else user(runtime)
                owner = Owner.of(name, context.agent_name) if isinstance(name, str) and name.strip() else None
        return Run(config, context, owner, asked_here(runtime.store), on_server=runtime.server_info is not None)


def _is_new(thread: Thread) -> bool:
    """Say whether the newest question is not the one that the turn began with."""
    return bool(thread.asked) and thread.receipt.get("asked") != thread.asked


def _with_changed(changed: Sequence[BaseMessage], state: Mapping[str, Any], update: Update) -> Update:
    """Return the update with changed messages in it; one that writes messages down with their ids has them all."""
    if not changed:
        return update
    return {"messages": Overwrite(merge_messages(state["messages"], [changed])) if update else changed}


def _may_be_learned(memory: AgentMemory) -> bool:
    """Say whether the turn may be written down; where nobody could read that, writing finds out."""
    return memory.get("mode") in (None, "normal")
