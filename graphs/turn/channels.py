"""The channels of a thread's messages and summary: how they are checkpointed, and read back from any checkpointer."""

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Self

from langchain_core.messages import (
    BaseMessage,
    BaseMessageChunk,
    RemoveMessage,
    convert_to_messages,
    message_chunk_to_message,
    messages_from_dict,
)
from langgraph.channels import DeltaChannel, LastValue
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Overwrite

from memory.context.running_summary import SUMMARY_ID, rehydrate
from memory.message import PLAIN

SNAPSHOT_EVERY = 40
"""Writes between two whole copies: a turn makes two, and reads back through the checkpoints of half of this on
average. Over 1,000 turns 100 costs a third fewer bytes and a fifth more time for a turn."""

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
            # The length first: a thread is long, and what a cut left of it is shorter.
            only_adds = len(value) >= len(before) and all(
                new.id == one.id and new.content == one.content for one, new in zip(before, value, strict=False)
            )
            value = value[len(before) :] if only_adds else Overwrite(list(value))
        if value != old and value != []:
            smaller[key] = value
    return smaller


def _message(value: object) -> BaseMessage:
    """Return the message that a value is: one already, one in any form that LangChain takes, or one as JSON.

    LangChain's conversion of what callers write drops fields that a dumped message has, such as `usage_metadata`.
    """
    if isinstance(value, BaseMessage):
        return value
    if isinstance(value, Mapping) and value.keys() >= _DUMPED:
        with contextlib.suppress(ValueError):  # a person wrote it after all
            return messages_from_dict([{"type": value["type"], "data": value}])[0]
    return convert_to_messages([value])[0]  # type: ignore[list-item]


def _merged(merged: dict[str, BaseMessage], writes: Sequence[Any]) -> dict[str, BaseMessage]:
    """Return the messages by id, oldest first, after these writes were made to them."""
    for write in writes:
        for value in write if isinstance(write, list) else [write]:
            # Nearly all: a thread is long, and a call for each of its messages takes longer than all else.
            if type(value) in PLAIN and (identity := value.__dict__["id"]) and identity != SUMMARY_ID:
                merged[identity] = value
            else:
                _merge_one(merged, _message(value))
    return merged


def _merge_one(merged: dict[str, BaseMessage], message: BaseMessage) -> None:
    if isinstance(message, BaseMessageChunk):
        message = message_chunk_to_message(message)
    if isinstance(message, RemoveMessage):
        if message.id == REMOVE_ALL_MESSAGES:
            merged.clear()
        else:
            merged.pop(message.id or "", None)
        return
    if not message.id:
        message = message.model_copy(update={"id": _derived_id(merged, message)})
    message = _under_its_own_id(message)
    merged[str(message.id)] = message


def _under_its_own_id(message: BaseMessage) -> BaseMessage:
    """Return what somebody said under another id, if a client gave it that of summaries: nobody would be shown it."""
    if message.id != SUMMARY_ID or message.type == "system":
        return message
    return message.model_copy(update={"id": f"{SUMMARY_ID}-of-{message.type}"})


def _derived_id(merged: dict[str, BaseMessage], message: BaseMessage) -> str:
    # From what is replayed alone: a random id would be another one each time the thread is read.
    place = len(merged)
    while (derived := str(uuid.uuid5(uuid.NAMESPACE_OID, f"{place} {message.type} {message.content}"))) in merged:
        place += 1
    return derived


_KEY = "running_summary"


class SummaryChannel(LastValue[Any]):
    """The last value of `context`; its summary is rebuilt when a checkpoint is read.

    In strict mode LangGraph's own serializer hands back a mapping, and so does a server that reads a thread for a
    client: with the ids as they are stored, deflated, which nobody could read.
    """

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return the channel with what a checkpoint holds."""
        if isinstance(checkpoint, Mapping) and isinstance(checkpoint.get(_KEY), Mapping):
            checkpoint = {**checkpoint, _KEY: rehydrate(checkpoint[_KEY]) or checkpoint[_KEY]}
        return super().from_checkpoint(checkpoint)
