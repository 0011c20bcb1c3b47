"""One turn with the chat graph, through either SDK: what a test says and what comes back."""

from typing import Any, NamedTuple

from langgraph_sdk import get_sync_client
from langgraph_sdk.schema import Json

from tests.e2e.dev_server import DevServer

Choices = dict[str, Any]
"""Values for a run's `configurable`: whose memory (`user_id`, in single-user mode) and what `Context` knows."""


class Turn(NamedTuple):
    """A turn that has ended."""

    thread_id: str
    answer: str


def say(text: str) -> Json:
    """Return the input of a run in which the user says something."""
    return {"messages": [{"role": "user", "content": text}]}


def speak_python(server: DevServer, text: str, thread_id: str | None = None, choices: Choices | None = None) -> Turn:
    """Say something with the Python SDK, in a new thread or in one that the server may have forgotten by a crash."""
    with get_sync_client(url=server.url) as client:
        thread = client.threads.create(thread_id=thread_id, graph_id="chat", if_exists="do_nothing")["thread_id"]
        state: Any = client.runs.wait(thread, "chat", input=say(text), config={"configurable": choices or {}})
        return Turn(thread, str(state["messages"][-1]["content"]))
