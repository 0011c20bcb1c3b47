"""What a state tells of its thread, for memory to know what the user edited away. Pure."""

from langchain_core.runnables import RunnableConfig
from langgraph.constants import CONFIG_KEY_CHECKPOINTER

from graphs.prompt import running_of
from graphs.state import State
from memory.updates.thread_view import ThreadView
from memory.updates.transcript import stored_id


def view_of(state: State, config: RunnableConfig) -> ThreadView | None:
    """Return the ids of the thread's messages and of those that its summary stands for, as far as it remembers.

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
    ids = {stored_id(message.id) for message in messages}
    if running is not None:
        ids.update(map(stored_id, running.summarized_message_ids))
    return ThreadView(ids, is_complete=running is None or not running.forgotten)
