"""What one update is about, and what becomes of it when a newer one takes its place. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from memory.message import StoredMessage
from memory.text import check_encodable

Message = BaseMessage | StoredMessage


class Key(NamedTuple):
    """What one pending update is known by."""

    thread_id: str
    user_id: str
    agent_name: str


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """What one update is about; it carries all that the worker needs, as that looks nothing up.

    Attributes:
        thread_id: The conversation.
        user_id: Whose memory it is.
        agent_name: Which agent's memory it is.
        messages: Messages of the conversation, each with an `id`.
        carried_over: Messages of a context that this one replaced which had left the thread by a summary.
        kind: `turn`: `messages` is the thread as it is now. `cut`: they are what a summary is about to replace.
        store: Where the memory is kept, for a `process` that serves several stores.
    """

    thread_id: str
    user_id: str
    agent_name: str = "default"
    messages: Sequence[Message] = ()
    carried_over: Sequence[Message] = ()
    kind: Literal["turn", "cut"] = "turn"
    store: BaseStore | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("thread_id", "user_id", "agent_name"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise ValueError(f"{name} must be a non-empty string, not {value!r}")
        check_encodable("thread_id", self.thread_id)
        object.__setattr__(self, "messages", tuple(self.messages))
        object.__setattr__(self, "carried_over", tuple(self.carried_over))

    @property
    def key(self) -> Key:
        """What the pending update of this conversation is known by."""
        return Key(self.thread_id, self.user_id, self.agent_name)

    def replacing(self, older: "ConversationContext") -> "ConversationContext":
        """Return this context in the older one's place, with what a summary took from the thread in between.

        What the older one had and a turn's view of the thread no longer has, without a summary, was edited away by
        the user and stays away. A cut is no view of the thread: what it does not name is still there.
        """
        left = older.carried_over if older.kind == self.kind == "turn" else (*older.carried_over, *older.messages)
        carried = {_id(message): message for message in (*left, *self.carried_over)}
        for message in self.messages:
            carried.pop(_id(message), None)
        return replace(self, carried_over=tuple(carried.values()))


def _id(message: Message) -> str | int:
    return message.id or id(message)
