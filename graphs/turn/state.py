"""What callers may send, what the nodes share, how it is checkpointed, and what follows where a client edits it."""

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from langchain_core.messages import (
    AnyMessage,
    BaseMessage,
    BaseMessageChunk,
    RemoveMessage,
    convert_to_messages,
    message_chunk_to_message,
    messages_from_dict,
)
from langchain_core.runnables import RunnableConfig
from langgraph.channels import DeltaChannel, LastValue, Topic
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel._write import ChannelWrite, ChannelWriteTupleEntry
from langgraph.types import Command, Overwrite, StateSnapshot, StateUpdate
from typing_extensions import TypedDict

from graphs.turn.context import Context
from memory.context.running_summary import SUMMARY_ID, RunningSummary, rehydrate
from memory.message import PLAIN
from memory.updates.unwritten import Named

MEMORY_KEY = "palimpsest_memory"
"""Where the state of an agent keeps what middleware put before its model."""

SNAPSHOT_EVERY = 40
"""So many writes stand between two snapshots of the messages. A turn makes two, and a read replays half of them. Over
1,000 turns, 100 would cost a third fewer bytes and a fifth more time a turn."""

_DUMPED = frozenset({"type", "content", "additional_kwargs", "response_metadata"})
"""What every message has when LangChain dumps it, and hardly one that a person wrote by hand."""


def merge_messages(state: Sequence[object], writes: Sequence[object]) -> list[BaseMessage]:
    """Return the messages after these writes: new ones added, those with a known id replaced, removed ones gone.

    It does what `add_messages` does, with two differences that replaying needs: a message without an id gets one
    that depends only on its text and place, and removing an unknown message is no error, because a thread that
    cannot be replayed could never be read again.

    A server reads threads with its own checkpointer, which hands back plain JSON: what is replayed then, the messages
    of a whole copy and of an `Overwrite` included, are mappings.
    """
    return list(_merged({}, [list(state), *writes]).values())


def _merged(merged: dict[str, BaseMessage], writes: Sequence[Any]) -> dict[str, BaseMessage]:
    """Return the messages by id, oldest first, after these writes were made to them."""
    for write in writes:
        for value in write if isinstance(write, list) else [write]:
            # Nearly all: a thread is long, and a call for each of its messages takes longer than all else.
            if type(value) in PLAIN and (identity := value.__dict__["id"]) and identity != SUMMARY_ID:
                merged[identity] = value
            else:
                message = _message(value)
                identity = message.id or ""
                if isinstance(message, RemoveMessage):
                    if identity == REMOVE_ALL_MESSAGES:
                        merged.clear()
                    merged.pop(identity, None)
                    continue
                if identity == SUMMARY_ID and message.type != "system":
                    # A client used the id of summaries: under that id, the message would be hidden like one.
                    identity = f"{SUMMARY_ID}-of-{message.type}"
                place = len(merged)
                while not identity:
                    # From what is replayed alone: a random id would be another one each time the thread is read.
                    derived = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{place} {message.type} {message.content}"))
                    identity, place = "" if derived in merged else derived, place + 1
                merged[identity] = message if identity == message.id else message.model_copy(update={"id": identity})
    return merged


def _message(value: object) -> BaseMessage:
    """Return the message that a value is: one already, one in any form that LangChain takes, or one as JSON."""
    # LangChain's conversion of what callers write drops fields that a dumped message has, such as `usage_metadata`.
    if isinstance(value, Mapping) and value.keys() >= _DUMPED:
        with contextlib.suppress(ValueError):  # a person wrote it after all
            (value,) = messages_from_dict([{"type": value["type"], "data": value}])
    message = value if isinstance(value, BaseMessage) else convert_to_messages([value])[0]  # type: ignore[list-item]
    return message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message


class _Merge:
    """`merge_messages` for one channel. It knows its last result by id, so that a run reads its thread only once."""

    def __init__(self, result: object = None, by_id: Mapping[str, BaseMessage] | None = None) -> None:
        self.result, self.by_id = result, by_id or {}

    def __call__(self, state: Sequence[object], writes: Sequence[object]) -> list[BaseMessage]:
        by_id = self.by_id if state is self.result else _merged({}, [list(state)])
        self.by_id = _merged(dict(by_id), writes)  # a copy, as copies of the channel have the same
        self.result = merged = list(self.by_id.values())
        return merged


class MessagesChannel(DeltaChannel[list[BaseMessage]]):
    """A list of messages in a state, checkpointed as what each step wrote; to be named in `Annotated`."""

    __slots__ = ()
    reducer: _Merge

    def __init__(self, _: object = None, typ: type = list, *, snapshot_frequency: int = SNAPSHOT_EVERY) -> None:
        super().__init__(_Merge(), typ, snapshot_frequency=snapshot_frequency)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessagesChannel)

    def copy(self) -> Self:
        """Return a channel of its own, which knows these messages."""
        copied = super().copy()
        if self.value is self.reducer.result:
            copied.reducer = _Merge(copied.value, self.reducer.by_id)
        return copied


class SummaryChannel(LastValue[Any]):
    """The last value of `context`; its summary is rebuilt when a checkpoint is read.

    In strict mode LangGraph's own serializer hands back a mapping, and so does a server that reads a thread for a
    client: with the ids as they are stored, deflated, which nobody could read.
    """

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return the channel with what a checkpoint holds."""
        if isinstance(checkpoint, Mapping) and isinstance(stored := checkpoint.get("running_summary"), Mapping):
            checkpoint = {**checkpoint, "running_summary": rehydrate(stored) or stored}
        return super().from_checkpoint(checkpoint)


def removes_all(written: object, last: str | None = None) -> bool:
    """Say whether a write takes away all messages that there are, whatever it adds; or the last one, if it is given."""
    listed = written if isinstance(written, list) else [written]
    fields = [each if isinstance(each, Mapping) else getattr(each, "__dict__", {}) for each in listed]
    gone = {each.get("id") for each in fields if "remove" in (each.get("type"), each.get("role"))}
    return not gone.isdisjoint({REMOVE_ALL_MESSAGES, last or REMOVE_ALL_MESSAGES})


def changes(state: Mapping[str, Any], update: Mapping[str, object]) -> dict[str, object]:
    """Return what an update changes in a state, each list of messages as the smallest write that makes it.

    That is the messages added at the end, or an `Overwrite` with the whole. The latter is no message itself: the
    stream mode `messages` shows the user every message that a node returns and that it has not seen before, a
    `RemoveMessage` and a summary too.
    """
    smaller: dict[str, object] = {}
    for key, value in update.items():
        old = state.get(key)
        if isinstance(value, list):
            before: Sequence[BaseMessage] = old or []
            if removes_all(value):
                value = merge_messages(before, [value])
            added = value[len(before) :]
            # The length first: a thread is long, and what a cut left of it is shorter. A summary is among what is added
            # where a client's edit has emptied the list.
            only_adds = (
                len(value) >= len(before)
                and all(one.id != SUMMARY_ID for one in added)
                and all(
                    new.id == one.id and new.content == one.content for one, new in zip(before, value, strict=False)
                )
            )
            value = added if only_adds else Overwrite(list(value))
        if value != old and value != []:
            smaller[key] = value
    return smaller


class InputState(TypedDict):
    """All that a caller sends."""

    messages: Annotated[list[AnyMessage], MessagesChannel()]
    """The thread's new messages."""


WithoutMemory = Literal["no_identity", "no_store", "switched_off", "incognito", "not_used", "unreadable", "store_away"]

NotWritten = Literal["too_late", "store_away", "failed", "mode_unknown"]
"""Why a turn ended before it was written down: the store took too long, failed, or was not asked as it just had. The
thread's next turn, or the next look at checkpoints, writes it down. With `mode_unknown` nobody knows whether it may be
learned, so it is not."""


class Receipt(TypedDict, total=False):
    """What memory did in a turn."""

    asked: str
    """Id of the user message that the turn answers."""
    facts: list[str]
    """Ids of the facts in the prompt."""
    recalled: list[str]
    """Keys of the journal entries of which the prompt shows lines; absent where there are none."""
    tokens: dict[str, int]
    """Tokens of each part of the prompt, as in `graphs.process.events.TokenParts`."""
    messages_budget: int
    """Tokens that messages and their summary may have."""
    updates: list[dict[str, object]]
    """What updates did since the turn before: facts created, confirmed, superseded, refused; source messages."""
    without_memory: WithoutMemory
    """Why memory was not used or learned nothing for good; absent where it works as it was chosen to."""
    summary_lost: Literal["below_another_graph"]
    """Why the next turn will not have this turn's summary; absent where it will."""
    left_out: dict[str, Any]
    """What the turn's last model call was not shown for want of room, though no summary stands for it yet: how many
    `messages`, and the newest 32 `ids`, oldest first."""
    queued: str | None
    """Key of the pending update that this turn was written down as."""
    not_written: NotWritten
    """Why the turn ended before it was written down; absent where it was, or was not to be."""


class MemoryState(Named, total=False):
    """What memory put before the model, as ids and counts; never a text, so that an erased fact is gone at once."""

    # The names are those of stored checkpoints: a new one would lose what a thread's prompt shows.
    basis: list[list[str | int]]
    """`[fact id, revision]` of each fact in the memory block, in its order."""
    deltas: list[dict[str, Any]]
    """What was recalled since the block was chosen: `message_id` and `facts`, `[fact id, revision]` each."""
    since: float
    """When the block was chosen, seconds since the epoch."""
    at: float
    """When the prompt was last built, seconds since the epoch."""
    lines_edit: int
    """The user's newest edit by hand when past turns were chosen; absent where none are shown."""
    began: float
    """When the turn began, seconds since the epoch."""
    first: str
    """Id of the first question of the branch."""
    alone_until: float
    """Until when no other branch began beside it, seconds since the epoch; absent if one may always have."""
    epoch: str
    """The user's epoch when the turn began."""
    thread_epoch: str
    """The thread's epoch when the turn began."""
    learn_from: str
    """The first message of the thread that no erase came after; empty if there was none."""
    edit: int
    """The user's newest edit by hand when the turn began; what is said after it may change what it says."""
    speaker: str
    """The name that the user's messages carry; absent where only those without one are theirs."""
    receipt: Receipt
    """What memory did in the latest turn."""


class State(InputState):
    """What the nodes share; `graphs.chat` says who writes what."""

    summarized_messages: Annotated[list[AnyMessage], MessagesChannel()]
    """What the model sees of the conversation: the summary, then the messages after it."""
    context: Annotated[dict[str, RunningSummary | str | dict[str, object]], SummaryChannel]
    """The `RunningSummary`, under `running_summary`; what `SummarizationNode` says of a failure."""
    memory: MemoryState
    """What memory put before the model."""


class AfterTools(State):
    """What `summarize` reads beside the state; no client sees it."""

    handoffs: Annotated[list[Command[Any]], Topic(Command)]
    """The hand-offs to a graph above of the calls that ended in the superstep before."""


Values = dict[str, object]

_CLEARED: Values = {"summarized_messages": Overwrite([]), "context": {}}
_RAN_LAST = {"call_model": "summarize", "summarize": "tools"}
"""By the only node that follows, whose edit it is if nobody says: LangGraph refuses it as ambiguous where two nodes ran
side by side, and does not count the tasks of `Send`."""


def left_of(state: Mapping[str, Any]) -> Values:
    """Return the update that takes away what a thread without messages still shows of them, its summary too."""
    return {key: nothing for key, nothing in _CLEARED.items() if state.get(key)}


def left_of_input(given: object) -> list[tuple[str, object]]:
    """Return what a client's input that removes all messages takes away with them; of nodes', that is not known."""
    is_cleared = isinstance(given, Mapping) and removes_all(given.get("messages"))
    return [*_CLEARED.items()] if is_cleared else []


_Compiled = CompiledStateGraph[State, Context, InputState, State]
Supersteps = Sequence[Sequence[StateUpdate]]


class ChatGraph(StateGraph[State, Context, InputState, State]):
    """The builder of a chat graph, whose state may be edited at any checkpoint without `as_node`."""

    def compile(self, *args: Any, **options: Any) -> _Compiled:
        """Compile as a `StateGraph` does, with the same arguments."""
        # LangGraph's `compile` makes objects of its own class only; their attributes are its arguments.
        compiled = _Editable(**vars(super().compile(*args, **options)))
        # Only here is it known that a client removes messages, and not a tool or a graph above.
        compiled.nodes[START].writers.append(ChannelWrite((ChannelWriteTupleEntry(left_of_input),)))
        return compiled


class _Editable(_Compiled):
    # What a client sent last may be no message. The writes of a run's input are saved before the channel refuses them:
    # `get_state` without a checkpoint's id adds them to the newest checkpoint, and fails as that run did, until there
    # is another (langgraph 1.2.22). A history can be read.
    def bulk_update_state(self, config: RunnableConfig, supersteps: Supersteps) -> RunnableConfig:
        saved = next(self.get_state_history(config, limit=1), None)
        return super().bulk_update_state(config, _edited(saved, supersteps))

    async def abulk_update_state(self, config: RunnableConfig, supersteps: Supersteps) -> RunnableConfig:
        saved = [one async for one in self.aget_state_history(config, limit=1)]
        return await super().abulk_update_state(config, _edited(next(iter(saved), None), supersteps))


def _edited(saved: StateSnapshot | None, supersteps: Supersteps) -> Supersteps:
    """Return an edit of a thread with what follows from it for the rest of the state.

    What the model sees of the conversation is a copy, which the next turn writes anew; until then it would show what
    the client has removed. A summary of messages that are all gone would be told to the model for good.
    """
    if [len(updates) for updates in supersteps] != [1]:
        return supersteps
    ((update,),), state, following = supersteps, saved.values if saved else {}, saved.next if saved else ()
    values = update.values
    if update.as_node is None and values is not None and len(following) == 1:
        update = update._replace(as_node=_RAN_LAST.get(following[0]))
    if isinstance(values, dict) and "messages" in values:
        left, written = left_of(state), values["messages"]
        if merge_messages(state.get("messages") or [], [written]) and not removes_all(written):
            left.pop("context", None)
        update = update._replace(values={**left, **values})
    return [[update]]
