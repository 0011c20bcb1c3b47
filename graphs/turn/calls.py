"""The tool calls of an answer: each is begun once, and has a result whatever becomes of the run that began it.

Before a tool is called, a mark with the call's id is stored beside the checkpoint that holds the answer. When the tool
interrupts to ask a person, the mark is taken back, and set again as the tool begins anew with what the person said. A
call whose mark stands is never begun again: after a kill, a stop or an error of another call its result is the one
that was stored, or that none is known. An interrupt itself says nothing, as it stays stored once it is answered.

Nothing outlives the process without a checkpointer, or with one that stores nothing until the run ends
(`durability="exit"`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import AIMessage, BaseMessage, FunctionMessage, InvalidToolCall, ToolCall, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import RunnableConfig
from langgraph._internal._config import patch_configurable
from langgraph._internal._constants import CONFIG_KEY_DURABILITY
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.types import SCHEDULED
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import ExecutionInfo
from langgraph.types import Command

from memory.context.turns import UNFIT_IN_TOOLS, own_name, sent_name

Result = ToolMessage | Command[Any]
Execute = Callable[[ToolCallRequest], Awaitable[Result]]

GARBLED: Final = "no JSON object"
"""Arguments that cannot be parsed are kept in one argument of this name, which no tool has."""

UNKNOWN: Final = "No result is known. The call may have been carried out."
_NOT_APPROVED: Final = "The call was not carried out: the user went on without approving it."

_STORED_SECONDS = 10.0
_POLL_SECONDS = 0.005
_MOST_ANCESTORS = 8
"""So many checkpoints are read back: behind the answer stand that of the next input, and one for each edit."""


@dataclass(frozen=True, slots=True)
class Calls:
    """What is stored of calls beside a checkpoint.

    Attributes:
        saver: Who stores it.
        config: The checkpoint's own.
        task_id: The id under which the asking task stores its marks.
        begun: By a call's id: `True` once its tool was called, `False` after the tool interrupted.
        results: The results of calls that have ended, by the call's id.
    """

    saver: BaseCheckpointSaver[Any]
    config: RunnableConfig
    task_id: str
    begun: dict[str, bool] = field(default_factory=dict)
    results: dict[str, ToolMessage] = field(default_factory=dict)

    @classmethod
    async def stored(cls, config: RunnableConfig, info: ExecutionInfo | None, *, before: bool = False) -> Self | None:
        """Read what is stored beside the checkpoint that a task runs from.

        Args:
            config: The task's.
            info: The task's.
            before: Whether marks beside earlier checkpoints are read, too. They always are behind a checkpoint that no
                run wrote: a client edited the thread, or replays it.

        Returns:
            `None` without a checkpointer, or with one that stores nothing before the run ends.

        Raises:
            TimeoutError: If the checkpoint is not stored in time: a mark beside it would not be found again.
        """
        configurable = config.get("configurable", {})
        saver: BaseCheckpointSaver[Any] | None = configurable.get(CONFIG_KEY_CHECKPOINTER)
        is_late = configurable.get(CONFIG_KEY_DURABILITY) == "exit"
        if saver is None or info is None or is_late:
            return None
        # The namespace of a task is that of its graph, `|`, and the task's name.
        graph, _, _ = info.checkpoint_ns.rpartition("|")
        named = {"thread_id": info.thread_id, "checkpoint_ns": graph, "checkpoint_id": info.checkpoint_id}
        # Not under the task's own id: LangGraph would take a mark for what the task has written.
        calls = cls(saver, patch_configurable(config, named), str(uuid5(NAMESPACE_OID, info.task_id)))
        async with asyncio.timeout(_STORED_SECONDS):
            # LangGraph stores a checkpoint while the next tasks run, and savers tell nobody what they store.
            while not (saved := await saver.aget_tuple(calls.config)):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_SECONDS)
        for _ in range(_MOST_ANCESTORS):
            for _, channel, value in saved.pending_writes or ():
                if channel == SCHEDULED:
                    calls.begun.setdefault(*value)
                for one in value if channel == "messages" and isinstance(value, list) else [value]:
                    if isinstance(one, ToolMessage):
                        calls.results.setdefault(one.tool_call_id, one)
            is_all = saved.metadata.get("source") == "loop" and not before
            if is_all or not (earlier := await calls._earlier(saved)):
                break
            saved = earlier
        return calls

    async def _earlier(self, saved: CheckpointTuple) -> CheckpointTuple | None:
        """Return the checkpoint before this one: its parent, or the original of a fork's copy."""
        metadata = saved.metadata
        if metadata.get("source") == "fork":
            thread = patch_configurable(self.config, {"checkpoint_id": None})
            async for one in self.saver.alist(thread, filter={"step": metadata["step"] - 1}):
                # The parent of a copy is its original's parent, so the original is found by its channels.
                if one.checkpoint["channel_versions"] == saved.checkpoint["channel_versions"]:
                    return one
        return await self.saver.aget_tuple(saved.parent_config) if saved.parent_config else None

    async def mark(self, call: ToolCall, *, begun: bool) -> None:
        """Store whether a call has begun; a later mark of its task takes the place of an earlier one."""
        await self.saver.aput_writes(self.config, [(SCHEDULED, [call["id"], begun])], self.task_id)

    def result(self, call: ToolCall) -> ToolMessage:
        """Return the result of a call that is not carried out any more."""
        call_id = str(call["id"])
        return self.results.get(call_id) or failed_call(call, UNKNOWN if self.begun.get(call_id) else _NOT_APPROVED)


def failed_call(call: ToolCall, why: str) -> ToolMessage:
    """Return the result of a call that was not carried out, or of which nobody knows."""
    return ToolMessage(why, tool_call_id=call["id"] or "", name=call["name"], status="error")


async def carry_out_once(request: ToolCallRequest, execute: Execute) -> Result:
    """Carry a call out, unless it has begun before: then return its stored result, or that none is known."""
    call = request.tool_call
    calls = await Calls.stored(request.runtime.config, request.runtime.execution_info)
    if calls is None:
        return await execute(request)
    if calls.begun.get(str(call["id"])):
        return calls.result(call)
    await calls.mark(call, begun=True)
    try:
        return await execute(request)
    except Exception:  # an interrupt, or a person's answer that was refused and is asked for again; others are results
        await calls.mark(call, begun=False)
        raise


async def with_results_of_left(
    messages: Sequence[BaseMessage], config: RunnableConfig, info: ExecutionInfo | None
) -> list[BaseMessage] | None:
    """Return the messages with a result for each call that the newest answer waits for, as the user goes on without it.

    When a new input comes, LangGraph drops the writes of an unfinished superstep's tasks. These still lie beside the
    checkpoint that the tasks ran from. `None` where no call waits, or nothing is stored.
    """
    if not (left := unanswered(messages)) or not (calls := await Calls.stored(config, info, before=True)):
        return None
    at = max(at for at, message in enumerate(messages, 1) if isinstance(message, AIMessage | ToolMessage))
    return [*messages[:at], *map(calls.result, left), *messages[at:]]


def unanswered(messages: Sequence[BaseMessage]) -> list[ToolCall]:
    """Return the calls of the newest answer that have no result."""
    answered = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return [call for call in message.tool_calls if (call["id"] or "") not in answered]
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return []


def paired(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with each tool call followed by its result: providers refuse a call without one.

    A call without a result gets one that says that none is known. A call without an id, or with that of an earlier
    call, gets an id of its own. Results whose call is gone, those of functions, and calls that cannot be parsed, are
    left out.
    """
    sent: list[BaseMessage] = []
    # By a call's id in the thread: the places of its results in `sent`, and the ids that the sent calls have.
    waiting: dict[str, list[tuple[int, str]]] = {}
    taken = set[str | None]()
    for message in messages:
        if isinstance(message, ToolMessage):
            if places := waiting.get(message.tool_call_id):
                at, own = places.pop(0)
                fit = {"tool_call_id": own, "name": message.name and sent_name(message.name, UNFIT_IN_TOOLS)}
                sent[at] = message.model_copy(update=fit)
            continue
        if isinstance(message, FunctionMessage):
            continue
        if not isinstance(message, AIMessage):
            sent.append(message)
            continue
        answer = with_own_ids(message, message.tool_calls, taken)
        sent.append(answer)
        # These replace earlier calls of the same ids: some models number their calls anew in each message.
        waiting.update((str(call["id"] or ""), []) for call in message.tool_calls)
        for call, own_call in zip(message.tool_calls, answer.tool_calls, strict=True):
            waiting[str(call["id"] or "")].append((len(sent), str(own_call["id"])))
            sent.append(ToolMessage(UNKNOWN, tool_call_id=own_call["id"]))
    return sent


def with_own_ids(answer: AIMessage, calls: Iterable[ToolCall | InvalidToolCall], taken: set[str | None]) -> AIMessage:
    """Return the answer with these calls alone, each with an id of its own, by which a result names it, and a fit name.

    Some servers send no ids, some the same for two calls, some number them anew in each answer. Arguments that cannot
    be parsed become the one argument `GARBLED`. Calls in a provider's own form go: its package makes them anew.

    Args:
        answer: The answer.
        calls: Those of its calls that are wanted.
        taken: The ids of earlier calls; the answer's own are added.
    """
    own = list[ToolCall]()
    for call in calls:
        own_id = own_name(call["id"] or "call", lambda name: name not in taken)
        taken.add(own_id)
        args = call["args"] if isinstance(call["args"], dict) else {GARBLED: call["args"]}
        own.append(tool_call(name=sent_name(call["name"] or "", UNFIT_IN_TOOLS), args=args, id=own_id))
    if own == answer.tool_calls and not answer.invalid_tool_calls:
        return answer
    ids = [call["id"] for call in (*answer.tool_calls, *answer.invalid_tool_calls)]
    said = answer.content
    if isinstance(said, list):
        said = [each for each in said if isinstance(each, str) or each.get("call_id", each.get("id")) not in ids]
    raw = {key: value for key, value in answer.additional_kwargs.items() if key != "tool_calls"}
    changed = {"tool_calls": own, "invalid_tool_calls": [], "content": said, "additional_kwargs": raw}
    return answer.model_copy(update=changed)


def is_garbled(message: BaseMessage) -> bool:
    """Say whether a message is an answer with a call whose arguments cannot be read."""
    return isinstance(message, AIMessage) and any(GARBLED in call["args"] for call in message.tool_calls)


def parted(result: Any) -> Any:
    """Return a tool's result as a state update, in which a hand-off waits until the answer's other calls have ended."""
    if isinstance(result, list):
        return [parted(one) for one in result]
    return Command(update={"handoffs": [result]}) if hands_off(result) else result


def hands_off(result: object) -> bool:
    """Say whether a tool hands the turn off to a graph above."""
    return isinstance(result, Command) and result.graph == Command.PARENT


def joined(handoffs: Sequence[Command[Any]], messages: Sequence[BaseMessage]) -> Command[Any]:
    """Return one command for all hand-offs of an answer; if they write messages, its other calls' results go along."""
    updates: list[tuple[str, Any]] = []
    goto: list[Any] = []
    for one in handoffs:
        updates += one.update.items() if isinstance(one.update, Mapping) else one.update or ()
        goto += one.goto if isinstance(one.goto, list | tuple) else [one.goto]
    answer = max((n for n, message in enumerate(messages) if isinstance(message, AIMessage)), default=len(messages))
    results = [message for message in messages[answer:] if isinstance(message, ToolMessage)]
    if results and any(key == "messages" for key, _ in updates):
        updates.append(("messages", results))
    return Command(graph=Command.PARENT, update=updates, goto=goto)
