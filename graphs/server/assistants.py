"""Assistants of this project's graphs: which they are, and that their context is checked where it is written down."""

import asyncio
import json
import logging
import re
from collections.abc import Iterator

from pydantic import TypeAdapter, ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphs.server.api.guard import FieldError, RefusedRequest, from_validation
from graphs.server.permissions import assistant_of_graph
from graphs.turn.context import Context
from memory.effects import tolerated

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


_PATH = re.compile(r"\A(?P<assistants>.*/assistants)(?:/(?P<id>[\w-]+))?/?$")
_CONTEXT: TypeAdapter[Context] = TypeAdapter(Context)


class AssistantContexts:
    """Refuses `POST /assistants` and `PATCH /assistants/{id}` whose context no run could use (422, with the field).

    The context may be under `config.configurable` too. Whose graph takes another one, whatever its name, the server is
    left to judge.

    Args:
        app: What answers everything else.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = _PATH.match(scope["path"]) if scope["type"] == "http" else None
        if path is None or scope["method"] != ("PATCH" if path["id"] else "POST"):
            await self._app(scope, receive, send)
            return
        read: list[Message] = []
        while not read or (read[-1]["type"] == "http.request" and read[-1].get("more_body")):
            read.append(await receive())
        asked = _json(b"".join(message.get("body", b"") for message in read))
        why, graph = refusal(asked), asked.get("graph_id")
        assistant = assistant_of_graph(graph) if isinstance(graph, str) else path["id"]  # a change need not name it
        if why and assistant and await takes_context(self._app, scope, path["assistants"], assistant):
            await why.response()(scope, receive, send)
            return

        async def again() -> Message:
            return read.pop(0) if read else await receive()

        await self._app(scope, again, send)


def refusal(asked: dict[str, object]) -> RefusedRequest | None:
    """Return why what a request asks for has no context that a run could use; what else is wrong, the server says."""
    problems = [problem for place, context in _contexts(asked) for problem in _problems(place, context)]
    if not problems:
        return None
    return RefusedRequest(422, "; ".join(f"{each.field}: {each.message}" for each in problems[:5]), problems)


def _contexts(asked: dict[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    config = asked.get("config")
    configurable = config.get("configurable") if isinstance(config, dict) else None
    for place, context in (("context", asked.get("context")), ("config.configurable", configurable)):
        if isinstance(context, dict):
            yield place, context


def _problems(place: str, context: dict[str, object]) -> list[FieldError]:
    try:
        _CONTEXT.validate_python(context)
    except ValidationError as error:
        named = from_validation(error.errors(include_input=False)).problem.errors
        return [FieldError(field=f"{place}.{each.field}", message=each.message) for each in named]
    return []


def _json(body: bytes) -> dict[str, object]:
    """Return the object in the body of a request; empty if there is none, which the server says."""
    try:
        read = json.loads(body)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}
