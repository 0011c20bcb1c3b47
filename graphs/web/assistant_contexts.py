"""An assistant's context is checked where it is written down, not when the first run fails with it."""

import json
import re

from pydantic import TypeAdapter, ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphs.context import Context
from graphs.web.problems import FieldError, Refused, from_validation

_GRAPH = "chat"
_PATH = re.compile(r"(?:^|/)assistants(?:/[^/]+)?/?$")
_CONTEXT: TypeAdapter[Context] = TypeAdapter(Context)


class AssistantContexts:
    """Refuses `POST /assistants` and `PATCH /assistants/{id}` whose context no run could use (422, with the field).

    Args:
        app: What answers everything else.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_asked = scope["type"] == "http" and scope["method"] in ("POST", "PATCH") and _PATH.search(scope["path"])
        if not is_asked:
            await self._app(scope, receive, send)
            return
        read: list[Message] = []
        while not read or (read[-1]["type"] == "http.request" and read[-1].get("more_body")):
            read.append(await receive())
        why = refusal(b"".join(message.get("body", b"") for message in read))
        if why is not None:
            await why.response()(scope, receive, send)
            return

        async def again() -> Message:
            return read.pop(0) if read else await receive()

        await self._app(scope, again, send)


def refusal(body: bytes) -> Refused | None:
    """Return why the context in the body of a request cannot be one; what else is wrong with it, the server says."""
    try:
        asked = json.loads(body)
    except ValueError:
        return None
    if not isinstance(asked, dict) or not isinstance(asked.get("context"), dict):
        return None
    if asked.get("graph_id", _GRAPH) != _GRAPH:  # a change need not name it
        return None
    try:
        _CONTEXT.validate_python(asked["context"])
    except ValidationError as error:
        named = from_validation(error)
        problems = [FieldError(field=f"context.{each.field}", message=each.message) for each in named.problem.errors]
        return Refused(422, "; ".join(f"{each.field}: {each.message}" for each in problems[:5]), problems)
    return None
