"""What the layers before the server's routes share: a guard that may answer in their place, and a question to them."""

from collections.abc import Awaitable, Callable
from urllib.parse import quote

import httpx
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Guard = Callable[[HTTPConnection], Awaitable[ASGIApp | None]]
"""Returns what answers a request, or `None` where it may pass."""


class Guarded:
    """A layer that asks a guard.

    Args:
        app: What answers where the guard does not.
        guard: Looks at each request of a client; the server's own calls pass.
    """

    def __init__(self, app: ASGIApp, *, guard: Guard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_asked = scope["type"] in ("http", "websocket") and not is_in_process(scope)
        answer = await self._guard(HTTPConnection(scope)) if is_asked else None
        await (answer or self._app)(scope, receive, send)


def is_in_process(scope: Scope) -> bool:
    """Say whether the server calls itself (`get_client()` without a URL).

    The server marks such calls, and lets them pass its own login, by a root path that no request from outside can
    set: it is no part of the path that was asked for.
    """
    return f"{scope.get('root_path') or ''}/".startswith("/noauth/")


async def whole_body(scope: Scope, receive: Receive) -> tuple[bytes, Receive] | None:
    """Return a request's body, and what hands it on as if nobody had read it; `None` if its sender is gone."""
    try:
        body = await Request(scope, receive).body()
    except ClientDisconnect:
        return None
    whole: list[Message] = [{"type": "http.request", "body": body}]

    async def again() -> Message:
        return whole.pop() if whole else await receive()

    return body, again


async def get(app: ASGIApp, scope: Scope, path: str) -> tuple[int, bytes]:
    """Ask `GET path` in the name of another request, with its headers; return status and body.

    So the server itself decides what the caller may see, by whatever login and rules it has.

    Args:
        app: What answers.
        scope: The other request.
        path: With the server's prefix.
    """
    # The question has no body; and a packed answer could not be read here.
    others = (b"content-", b"transfer-encoding", b"accept-encoding")
    headers = [(name, value) for name, value in scope["headers"] if not name.lower().startswith(others)]

    async def named(asked: Scope, receive: Receive, send: Send) -> None:
        # Of the question only what it asks for: all else, such as where the server is mounted, is the request's.
        own = {name: asked[name] for name in ("method", "path", "raw_path", "query_string")}
        await app({**scope, **own, "headers": headers}, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(named)) as client:
        answer = await client.get(f"http://server{quote(path)}")  # in a path, `?` begins no query
        return answer.status_code, answer.content
