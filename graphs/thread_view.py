"""What a state tells of its thread, for memory to know what the user edited away. Pure."""

from graphs.prompt import running_of
from graphs.state import State
from memory.context.running_summary import summarized_ids
from memory.updates.thread_view import ThreadView
from memory.updates.transcript import stored_id


def view_of(state: State) -> ThreadView:
    """Return the ids of the thread's messages and of those that its summary stands for, as far as it remembers."""
    running, messages = running_of(state), state["messages"]
    ids = {message.id for message in messages} | summarized_ids(messages, running)
    is_complete = running is None or not running.forgotten
    return ThreadView(frozenset(map(stored_id, ids)), is_complete)
