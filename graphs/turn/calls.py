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
from dataclasses import dataclass
from typing import Any, Final, Self
from uuid import NAMESPACE_OID, uuid4, uuid5

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_DURABILITY
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.types import SCHEDULED
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import ExecutionInfo
from langgraph.types import Command

Result = ToolMessage | Command[Any]
Execute = Callable[[ToolCallRequest], Awaitable[Result]]

UNKNOWN: Final = "No result is known. The call may have been carried out."
_NOT_APPROVED: Final = "The call was not carried out: it waited for the user's approval, and the user went on without."
_NOT_BEGUN: Final = "The call was not carried out."

MOST_GARBLED = 3
"""Answers in a row whose calls could not be read, after which the model is not asked again."""

_STORED_SECONDS = 10.0
_POLL_SECONDS = 0.005
_MOST_ANCESTORS = 8
"""Between the answer and the next turn's first node stand the input's checkpoint, and one for each edit of a client."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a checkpoint is stored: with whom, and under which config."""

    saver: BaseCheckpointSaver[Any]
    config: RunnableConfig

    @classmethod
    def of(cls, config: RunnableConfig, info: ExecutionInfo | None) -> Self | None:
        """Return the place of the checkpoint that a task runs from; `None` where nothing is stored as it runs."""
        configurable = config.get("configurable", {})
        saver = configurable.get(CONFIG_KEY_CHECKPOINTER)
        if not isinstance(saver, BaseCheckpointSaver) or info is None or info.thread_id is None:
            return None
        if configurable.get(CONFIG_KEY_DURABILITY) == "exit":
            return None
        # A task's own namespace is that of its graph, and its name behind it.
        graph, _, _ = info.checkpoint_ns.rpartition("|")
        named = {"thread_id": info.thread_id, "checkpoint_ns": graph, "checkpoint_id": info.checkpoint_id}
        return cls(saver, RunnableConfig(**{**config, "configurable": {**configurable, **named}}))

    async def stored(self) -> CheckpointTuple:
        """Return the checkpoint once it is stored, which LangGraph does while the next tasks run.

        Raises:
            TimeoutError: If it is not; then a mark beside it would not be found again.
        """
        async with asyncio.timeout(_STORED_SECONDS):
            # Savers tell nobody what they store.
            while not (saved := await self.saver.aget_tuple(self.config)):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_SECONDS)
        return saved

    async def lineage(self, *, is_edited: bool) -> list[CheckpointTuple]:
        """Return the checkpoint with those that it comes from, the newest first.

        Args:
            is_edited: Only if the checkpoint is a client's edit or a replay: then calls may have begun before it.
        """
        line = [await self.stored()]
        if is_edited and line[0].metadata.get("source") == "loop":
            return line
        while len(line) < _MOST_ANCESTORS and (parent := line[-1].parent_config):
            if not (saved := await self.saver.aget_tuple(parent)):
                break
            line.append(saved)
        return line

    async def mark(self, task_id: str, call_id: str, *, begun: bool) -> None:
        """Store whether a call has begun; a later mark of the task takes the place of an earlier one."""
        # Not under the task's own id: LangGraph would take the mark for what the task has written.
        await self.saver.aput_writes(self.config, [(SCHEDULED, [call_id, begun])], str(uuid5(NAMESPACE_OID, task_id)))


@dataclass(frozen=True, slots=True)
class _Known:
    """What checkpoints say of calls.

    Attributes:
        begun: For each call that was begun, whether it has been since it last interrupted.
        results: The results that are stored, by the calls' ids.
    """

    begun: Mapping[str, bool]
    results: Mapping[str, ToolMessage]

    @classmethod
    def of(cls, checkpoints: Iterable[CheckpointTuple]) -> Self:
        """Return what checkpoints say, the newest first."""
        begun: dict[str, bool] = {}
        results: dict[str, ToolMessage] = {}
        for saved in checkpoints:
            for _, channel, value in saved.pending_writes or ():
                if channel == SCHEDULED and isinstance(value, list | tuple) and len(value) == 2:
                    begun.setdefault(str(value[0]), bool(value[1]))
                elif channel == "messages":
                    written = value if isinstance(value, list) else [value]
                    for one in written:
                        if isinstance(one, ToolMessage):
                            results.setdefault(one.tool_call_id, one)
        return cls(begun, results)

    def result(self, call: Mapping[str, Any]) -> ToolMessage:
        """Return the result of a call that is not carried out any more."""
        call_id = str(call["id"])
        states = {True: UNKNOWN, False: _NOT_APPROVED, None: _NOT_BEGUN}
        return self.results.get(call_id) or failed(call, states[self.begun.get(call_id)])


def failed(call: Mapping[str, Any], why: str) -> ToolMessage:
    """Return the result of a call that was not carried out, or of which nobody knows."""
    return ToolMessage(why, tool_call_id=str(call["id"]), name=call["name"] or None, status="error")


async def carry_out_once(request: ToolCallRequest, execute: Execute) -> Result:
    """Carry a call out, unless it has begun before: then return its stored result, or that none is known."""
    call, info = request.tool_call, request.runtime.execution_info
    place = _Place.of(request.runtime.config, info)
    if place is None or info is None:
        return await execute(request)
    call_id = str(call["id"])
    known = _Known.of(await place.lineage(is_edited=True))
    if known.begun.get(call_id):
        return known.result(call)
    await place.mark(info.task_id, call_id, begun=True)
    try:
        return await execute(request)
    except GraphBubbleUp:
        await place.mark(info.task_id, call_id, begun=False)
        raise


async def results_of_left(
    messages: Sequence[BaseMessage], config: RunnableConfig, info: ExecutionInfo | None
) -> list[ToolMessage]:
    """Return a result for each call that the thread's newest answer waits for, as the user goes on without it.

    LangGraph drops what the tasks of an unfinished superstep have written when a new input comes. It is still beside
    the checkpoint that they ran from.
    """
    calls = unanswered(messages)
    if not calls or (place := _Place.of(config, info)) is None:
        return []
    known = _Known.of(await place.lineage(is_edited=False))
    return [known.result(call) for call in calls]


def all_calls(answer: BaseMessage) -> list[dict[str, Any]]:
    """Return the calls of an answer, also those whose arguments cannot be read."""
    if not isinstance(answer, AIMessage):
        return []
    return [{**call} for call in (*answer.tool_calls, *answer.invalid_tool_calls)]


def unanswered(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return the calls of the newest answer that have no result."""
    answered = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            return [call for call in all_calls(message) if call["id"] not in answered]
    return []


def with_results(messages: Sequence[BaseMessage], results: Sequence[ToolMessage]) -> list[BaseMessage]:
    """Return the messages with results directly behind the answer that waited for them."""
    at = next((n for n in range(len(messages), 0, -1) if isinstance(messages[n - 1], AIMessage)), 0)
    while at < len(messages) and isinstance(messages[at], ToolMessage):
        at += 1
    return [*messages[:at], *results, *messages[at:]]


def sent_as(call: Mapping[str, Any]) -> ToolCall:
    """Return a call in the form that a tools node takes, also one whose arguments cannot be read."""
    args = call["args"] if isinstance(call["args"], dict) else {}
    return ToolCall(name=call["name"] or "", args=args, id=call["id"], type="tool_call")


def garbled(messages: Sequence[BaseMessage]) -> int:
    """Return how many of the newest answers, one after another, hold calls whose arguments cannot be read."""
    count = 0
    for message in reversed(messages):
        if isinstance(message, AIMessage) and message.invalid_tool_calls:
            count += 1
        elif not isinstance(message, ToolMessage):
            break
    return count


def why_garbled(messages: Sequence[BaseMessage], call_id: str | None) -> str:
    """Return what is wrong with a call of the newest answer; empty if its arguments can be read."""
    answer = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    for call in answer.invalid_tool_calls if answer else ():
        if call["id"] == call_id:
            return f"The arguments are no JSON object, so the call was not carried out: {call['args']!r:.300}"
    return ""


def with_own_ids(answer: AIMessage, taken: Iterable[str | None]) -> AIMessage:
    """Return the answer with an id of its own for each call: a result names its call by the id.

    Some servers send no ids, some the same for two calls, some number them anew in each answer.

    Args:
        answer: The answer.
        taken: The ids of earlier calls.
    """
    ids, renamed = set(taken), list[tuple[str | None, str]]()

    def own(call: Mapping[str, Any]) -> str:
        given = call["id"]
        own_id = f"call_{uuid4().hex}" if not given or given in ids else str(given)
        ids.add(own_id)
        renamed.append((given, own_id))
        return own_id

    calls = [{**call, "id": own(call)} for call in answer.tool_calls]
    invalid = [{**call, "id": own(call)} for call in answer.invalid_tool_calls]
    if all(given == own_id for given, own_id in renamed):
        return answer
    # The same calls, in the provider's own form; the raw ones of OpenAI are made anew from `tool_calls`.
    content = answer.content
    if isinstance(content, list):
        content = [_renamed(block, renamed) if isinstance(block, dict) else block for block in content]
    raw = {key: value for key, value in answer.additional_kwargs.items() if key != "tool_calls"}
    changed = {"tool_calls": calls, "invalid_tool_calls": invalid, "content": content, "additional_kwargs": raw}
    return answer.model_copy(update=changed)


def _renamed(block: dict[str, Any], renamed: list[tuple[str | None, str]]) -> dict[str, Any]:
    key = "call_id" if "call_id" in block else "id"
    for place, (given, own_id) in enumerate(renamed):
        if "name" in block and block.get(key) == given:
            del renamed[place]
            return {**block, key: own_id}
    return block


def parted(result: Any) -> Any:
    """Return what a tool did for the state; a hand-off to a graph above waits there for the answer's other calls."""
    if isinstance(result, list):
        return [parted(one) for one in result]
    return Command(update={"handoffs": [result]}) if hands_off(result) else result


def hands_off(result: object) -> bool:
    """Say whether a tool hands the turn off to a graph above."""
    return isinstance(result, Command) and result.graph == Command.PARENT


def joined(handoffs: Sequence[Command[Any]], messages: Sequence[BaseMessage]) -> Command[Any]:
    """Return the hand-offs of one answer as one, with the results of its other calls where they write messages."""
    updates: list[tuple[str, Any]] = []
    goto: list[Any] = []
    for one in handoffs:
        update: Any = one.update
        updates += [*update.items()] if isinstance(update, Mapping) else [*(update or ())]
        goto += one.goto if isinstance(one.goto, list | tuple) else [one.goto]
    answer = max((n for n, message in enumerate(messages) if isinstance(message, AIMessage)), default=len(messages))
    results = [message for message in messages[answer:] if isinstance(message, ToolMessage)]
    if results and any(key == "messages" for key, _ in updates):
        updates.append(("messages", results))
    return Command(graph=Command.PARENT, update=updates, goto=goto)
