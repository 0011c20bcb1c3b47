"""Which graphs of a server are this project's, whatever its configuration calls them: they take a `Context`.

The server itself is asked, in the caller's name: what the caller may not see, this does not tell.
"""

import asyncio
import json
import logging

from pydantic import TypeAdapter
from starlette.types import ASGIApp, Message, Scope

from graphs.context import Context
from memory.tolerance import tolerated

logger = logging.getLogger(__name__)

_SCHEMA = json.loads(json.dumps(TypeAdapter(Context).json_schema()))
_OF_THE_BODY = frozenset({b"content-length", b"content-type", b"content-encoding", b"transfer-encoding"})
_LEFT_OUT = _OF_THE_BODY | {b"accept-encoding"}


async def takes_context(app: ASGIApp, scope: Scope, assistants: str, assistant_id: str) -> bool | None:
    """Return whether an assistant's graph is one of ours; `None` if there is no such assistant, or none for the caller.

    Args:
        app: What answers.
        scope: The request in whose name the server is asked.
        assistants: The path of the assistants, with the server's prefix.
        assistant_id: Which one.
    """
    path = f"{assistants}/{assistant_id}/schemas"
    headers = [(name, value) for name, value in scope["headers"] if name.lower() not in _LEFT_OUT]
    asked = {**scope, "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers}
    question: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]
    answer: list[Message] = []

    async def receive() -> Message:
        return question.pop() if question else await asyncio.Future()

    async def send(message: Message) -> None:
        answer.append(message)

    with tolerated(logger, "whether an assistant takes this project's context is unknown"):
        await app(asked, receive, send)
    if not any(message.get("status") == 200 for message in answer):
        return None
    found = json.loads(b"".join(message.get("body", b"") for message in answer))
    return isinstance(found, dict) and found.get("context_schema") == _SCHEMA
