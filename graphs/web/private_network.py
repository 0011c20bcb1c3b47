"""A browser's question whether a page of the web, such as LangGraph Studio's, may ask a server of this machine.

`Access-Control-Request-Private-Network` comes with a preflight; the server's own layer for other origins refuses it.
"""

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ASKED = "access-control-request-private-network"
_ALLOWED = "access-control-allow-private-network"


class PrivateNetworkPreflight:
    """Says yes where the rest of the preflight is allowed, on every route; the layers inside see the rest only.

    Args:
        app: What answers the rest.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "OPTIONS" or Headers(scope=scope).get(_ASKED) != "true":
            await self._app(scope, receive, send)
            return

        async def allow(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                MutableHeaders(scope=message)[_ALLOWED] = "true"
            await send(message)

        rest = [(name, value) for name, value in scope["headers"] if name.lower() != _ASKED.encode()]
        await self._app({**scope, "headers": rest}, receive, allow)
