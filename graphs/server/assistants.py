"""Assistants of this project's graphs: which they are, and that a context is checked where it comes in."""

import difflib
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json
from starlette.types import ASGIApp, Receive, Scope, Send

from graphs.server.api.guard import from_validation
from graphs.server.asgi import get, whole_body
from graphs.server.permissions import assistant_of_graph
from graphs.turn.context import Context
from memory.door import tolerated

logger = logging.getLogger(__name__)

_CONTEXT: TypeAdapter[Context] = TypeAdapter(Context)
# Through JSON and back: the server's answer is compared with it, and JSON knows no tuples.
_SCHEMA = json.loads(json.dumps(_CONTEXT.json_schema()))
_FIELDS = [each.name for each in fields(Context)]
_ID = re.compile("(?i)[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}")
_PATHS = re.compile(
    r"\A(?P<root>.*?)(?:/assistants(?:/(?P<id>[\w-]+))?|(?:/threads/[^/]+)?/runs(?:/(?:stream|wait|batch|crons))?)/?\Z"
)


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
        if (read := await whole_body(scope, receive)) is None:
            return
        body, again = read
        try:
            given = from_json(body)
        except ValueError:  # the server says what is wrong
            given = None
        for asked in given if isinstance(given, list) else [given]:
            if not isinstance(asked, dict):
                continue
            # A change need not name its graph; a run names an assistant, or a graph in its place.
            wrong, name = problems_of(asked), asked.get("graph_id") or path["id"] or asked.get("assistant_id")
            if wrong and isinstance(name, str):
                assistant = name if _ID.fullmatch(name) else assistant_of_graph(name)
                if await self._takes_context(scope, f"{path['root']}/assistants/{assistant}/schemas"):
                    await from_validation(wrong).response()(scope, receive, send)
                    return
        await self._app(scope, again, send)

    async def _takes_context(self, scope: Scope, schemas: str) -> bool:
        """Say whether an assistant, which the caller may see, is of a graph of ours."""
        with tolerated(logger, "whether an assistant takes this project's context is unknown"):
            status, body = await get(self._app, scope, schemas)
            return status == 200 and json.loads(body).get("context_schema") == _SCHEMA
        return False


def problems_of(asked: dict[str, Any]) -> list[Mapping[str, Any]]:
    """Return, as pydantic does, what is wrong with the context of a request that no run could use."""
    config, context = asked.get("config"), asked.get("context")
    problems: list[Mapping[str, Any]] = []
    for name in [name for name in context if name not in _FIELDS] if isinstance(context, dict) else ():
        alike = difflib.get_close_matches(str(name), _FIELDS, 1)
        hint = f"is {alike[0]} meant?" if alike else f"there are {', '.join(_FIELDS)}"
        problems.append({"loc": ("context", name), "msg": f"unknown field: {hint}"})
    # The server takes the context from either place.
    configurable = config.get("configurable") if isinstance(config, dict) else None
    for place, given in (("context", context), ("config.configurable", configurable)):
        try:
            _CONTEXT.validate_python(given if isinstance(given, dict) else {})
        except ValidationError as error:
            for each in error.errors(include_input=False):
                about = _SCHEMA["properties"][each["loc"][0]]["description"]  # what its field is for
                problems.append({"loc": (place, *each["loc"]), "msg": f"{each['msg']}. {about}"})
    return problems
