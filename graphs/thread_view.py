"""What a state tells of its thread, for memory to know what the user edited away. Pure."""

from collections.abc import Iterable, Sequence

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import CONFIG_KEY_CHECKPOINTER

from graphs.prompt import running_of
from graphs.state import State
from memory.message import stored_id
from memory.updates.thread_view import ThreadView


def view_of(state: State, config: RunnableConfig) -> ThreadView | None:
    """Return the thread's messages, and those that its summary stands for as far as it remembers, by their ids.

    Args:
        state: What the run's thread holds.
        config: The node's own, in which LangGraph names the checkpointer, and where below other graphs the node is.

    Returns:
        `None` where the state is not the thread: without a checkpointer it holds what this one call was given, and
        below another graph, its own part of a thread that several share.
    """
    configurable = config.get("configurable", {})
    if not configurable.get(CONFIG_KEY_CHECKPOINTER) or "|" in str(configurable.get("checkpoint_ns", "")):
        return None
    running, messages = running_of(state), state["messages"]
    known = running.summarized_message_ids if running else ()
    return ThreadView(_NewestFirst(messages, known), is_complete=running is None or not running.forgotten)


class _NewestFirst:
    """The ids of messages and some more, read from the newest message on as far as somebody asks.

    What is pending is new: a turn must not pay for the length of its thread.
    """

    def __init__(self, messages: Sequence[BaseMessage], more: Iterable[str]) -> None:
        self._unread = reversed(messages)
        self._read = set(map(stored_id, more))

    def __contains__(self, identity: object) -> bool:
        while identity not in self._read:
            message = next(self._unread, None)
            if message is None:
                return False
            self._read.add(stored_id(message.id))
        return True
