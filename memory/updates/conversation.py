"""What an update is about, as a program or the graph gives it to the queue and the worker."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from memory.message import StoredMessage, as_messages
from memory.namespaces import Owner
from memory.text import check_encodable

Message = BaseMessage | StoredMessage


class UpdateKey(NamedTuple):
    """What tells one pending update from another."""

    thread_id: str
    user_id: str
    agent_name: str


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """What one update is about; it carries all that the worker needs, as that looks nothing up.

    Attributes:
        thread_id: The conversation.
        user_id: The user's identity; of a context that `of` made, the user's namespace label, as it knows no identity.
        agent_name: Which agent's memory it is.
        messages: Messages of the conversation, in any form that LangChain takes; each is given an `id` if it has none.
        carried_over: Messages of a context that this one replaced which had left the thread by a summary.
        kind: `turn`: `messages` is the thread as it is now. `cut`: they are what a summary is about to replace.
        store: Where the memory is kept, for a `process` that serves several stores.
        given_owner: What `of` was given; else `user_id` and `agent_name` say it.
        at_once: Whether somebody asked for it, so that it waits for no quiet time.
    """

    thread_id: str
    user_id: str
    agent_name: str = "default"
    messages: Sequence[Any] = ()
    carried_over: Sequence[Message] = ()
    kind: Literal["turn", "cut"] = "turn"
    store: BaseStore | None = field(default=None, compare=False, repr=False)
    given_owner: Owner | None = field(default=None, compare=False, repr=False)
    at_once: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, owner: Owner, thread_id: str, store: BaseStore) -> Self:
        """Return the context of an owner's conversation whose messages are written down already."""
        return cls(thread_id, owner.segment, owner.agent_name, store=store, given_owner=owner)

    @property
    def owner(self) -> Owner:
        """Whose memory it is, as namespaces name it."""
        return self.given_owner or Owner.of(self.user_id, self.agent_name)

    def __post_init__(self) -> None:
        for name in ("thread_id", "user_id", "agent_name"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise ValueError(f"{name} must be a non-empty string, not {value!r}")
        check_encodable("thread_id", self.thread_id)
        object.__setattr__(self, "messages", tuple(as_messages(self.messages)))
        object.__setattr__(self, "carried_over", tuple(self.carried_over))

    @property
    def key(self) -> UpdateKey:
        """The key of the pending update of this conversation."""
        return UpdateKey(self.thread_id, self.user_id, self.agent_name)

    def replacing(self, older: "ConversationContext") -> "ConversationContext":
        """Return this context in the older one's place, with what a summary took from the thread in between.

        A message of the older context that a turn's view of the thread lacks, and that no summary took, was edited away
        by the user, and is dropped. A cut is no view of the thread: messages that it does not name are kept.
        """
        left = older.carried_over if older.kind == self.kind == "turn" else (*older.carried_over, *older.messages)
        carried = {message.id or id(message): message for message in (*left, *self.carried_over)}
        for message in self.messages:
            carried.pop(message.id or id(message), None)
        return replace(self, carried_over=tuple(carried.values()), at_once=self.at_once or older.at_once)
