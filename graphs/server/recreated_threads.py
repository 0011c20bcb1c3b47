"""A thread that a crash took from the server's table is readable as soon as a client makes it again.

The development server writes threads down every 10 s; messages are on disk at once. A thread that is made again under
its id has no graph until its next run, and without a graph the server reads no state.
"""

import json

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphs.server.asgi import handing_on, json_object, read_request
from graphs.server.assistants import takes_context
from graphs.server.permissions import assistant_of_graph
from graphs.server.this_machine import is_in_process

_GRAPH = "chat"


class RecreatedThreads:
    """Gives `POST /threads` with an id and `if_exists: do_nothing` the chat graph, where it names none.

    A server that has no graph of this project under that name is left alone: a thread of a graph that is not there
    could not be read at all. A thread that is there already stays as it is, and a run of another graph makes the
    thread that graph's.

    Args:
        app: What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._is_served: bool | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the server's own calls are left alone."""
        is_asked = scope["type"] == "http" and scope["method"] == "POST"
        is_asked = is_asked and scope["path"].rstrip("/").endswith("/threads")
        if not is_asked or is_in_process(scope):
            await self._app(scope, receive, send)
            return
        read, body = await read_request(receive)
        if (changed := with_graph(body)) != body:
            if self._is_served is None:  # asked once: it takes the server 30 ms, and its graphs stay the same
                assistants = scope["path"].rstrip("/").removesuffix("/threads") + "/assistants"
                self._is_served = await takes_context(self._app, scope, assistants, assistant_of_graph(_GRAPH))
            body = changed if self._is_served else body
        left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        left += [message for message in read if message["type"] != "http.request"]
        # The body may be longer now than the header says.
        headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))
        await self._app({**scope, "headers": headers}, handing_on(left, receive), send)


def with_graph(body: bytes) -> bytes:
    """Return the body of a request for a thread that may be there already, with a graph; any other as it is."""
    asked = json_object(body)
    if not asked.get("thread_id") or asked.get("if_exists") != "do_nothing":
        return body
    metadata = asked.get("metadata") or {}
    if not isinstance(metadata, dict) or "graph_id" in metadata:
        return body
    return json.dumps({**asked, "metadata": {**metadata, "graph_id": _GRAPH}}).encode()
