"""Assistants of this project's graphs: which they are, and that a context is checked where it comes in."""

import difflib
import json
import logging
import re
from dataclasses import fields
from uuid import UUID

from pydantic import TypeAdapter, ValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from graphs.server.api.guard import FieldError, RefusedRequest, from_validation
from graphs.server.asgi import get, handing_on, json_object, read_request
from graphs.server.permissions import assistant_of_graph
from graphs.turn.context import Context
from memory.effects import tolerated

logger = logging.getLogger(__name__)

_CONTEXT: TypeAdapter[Context] = TypeAdapter(Context)
# Through JSON and back: the server's answer is compared with it, and JSON knows no tuples.
_SCHEMA = json.loads(json.dumps(_CONTEXT.json_schema()))
_FIELDS = [each.name for each in fields(Context)]
_PATHS = re.compile(
    r"\A(?P<root>.*?)(?:/assistants(?:/(?P<id>[\w-]+))?|(?:/threads/[^/]+)?/runs(?:/(?:stream|wait|batch|crons))?)/?\Z"
)
# The question has no body; and a packed answer could not be read here.
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
    with tolerated(logger, "whether an assistant takes this project's context is unknown"):
        status, body = await get(app, scope, f"{assistants}/{assistant_id}/schemas", without=_LEFT_OUT)
        if status == 200:
            found = json.loads(body)
            return isinstance(found, dict) and found.get("context_schema") == _SCHEMA
    return None


class AssistantContexts:
    """Refuses assistants, runs and crons whose context no run could use (422, with the field and what it takes).

    So it does with a field of `context` that is unknown, which the server would drop without a word. The context may be
    under `config.configurable` too, where clients put fields of their own. Whose graph takes another context, whatever
    its name, the server is left to judge.

    Args:
        app: What answers everything else.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = _PATHS.match(scope["path"]) if scope["type"] == "http" else None
        if path is None or scope["method"] != ("PATCH" if path["id"] else "POST"):
            await self._app(scope, receive, send)
            return
        read, body = await read_request(receive)
        for asked in _asked(body):
            # A change need not name its graph; a run names an assistant, or a graph in its place.
            why, name = refusal(asked), asked.get("graph_id") or path["id"] or asked.get("assistant_id")
            if why and isinstance(name, str):
                assistant = name if _is_id(name) else assistant_of_graph(name)
                if await takes_context(self._app, scope, f"{path['root']}/assistants", assistant):
                    await why.response()(scope, receive, send)
                    return
        await self._app(scope, handing_on(read, receive), send)


def _asked(body: bytes) -> list[dict[str, object]]:
    """Return what is asked to be made or run: one thing, or several at once; nothing where no context is given."""
    if b'"context"' not in body and b'"configurable"' not in body:
        return []
    if body.lstrip().startswith(b"["):
        body = b'{"runs":' + body + b"}"
    asked = json_object(body)
    runs = asked.get("runs", [asked])
    return [each for each in runs if isinstance(each, dict)] if isinstance(runs, list) else []


def _is_id(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True


def unknown_fields(context: object) -> list[FieldError]:
    """Return which fields of a context nothing reads, each with the nearest that something does."""
    problems = []
    for name in context if isinstance(context, dict) else ():
        if name not in _FIELDS:
            alike = difflib.get_close_matches(str(name), _FIELDS, n=1)
            hint = f"is {alike[0]} meant?" if alike else f"there are {', '.join(_FIELDS)}"
            problems.append(FieldError(field=f"context.{name}", message=f"unknown field: {hint}"))
    return problems


def refusal(asked: dict[str, object]) -> RefusedRequest | None:
    """Return why what a request asks for has no context that a run could use; what else is wrong, the server says."""
    config = asked.get("config")
    # The server takes the context from either place.
    configurable = config.get("configurable") if isinstance(config, dict) else None
    problems = unknown_fields(asked.get("context"))
    for place, context in (("context", asked.get("context")), ("config.configurable", configurable)):
        try:
            _CONTEXT.validate_python(context if isinstance(context, dict) else {})
        except ValidationError as error:
            wrong = from_validation(error.errors(include_input=False)).problem.errors
            problems += [FieldError(field=f"{place}.{each.field}", message=each.message) for each in wrong]
    if not problems:
        return None
    return RefusedRequest(422, "; ".join(f"{each.field}: {each.message}" for each in problems[:5]), problems)
