"""What the page's browser gets without saying who it is: static files, and the page without anybody's data."""

import re

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from graphs.server.api.routing import PREFIX
from graphs.server.page.assets import assets
from graphs.server.page.rendering import HEADERS, is_fragment, shell
from graphs.settings import Settings

_PATH = re.compile(rf"{PREFIX}/?(?:(static|page)/([A-Za-z0-9._-]+))?$")


class PageDoor:
    """Stands before the server's login, which answers a browser that goes to an address with JSON.

    Args:
        app: What answers everything else: all that shows data.
        settings: Whether anybody has to log in.
    """

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        is_read = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        found = _PATH.search(scope["path"]) if is_read else None
        # The server's own prefix may stand before it, and nothing else.
        if found and scope["path"][: found.start()] in ("", scope.get("root_path", "")):
            answer = self._answer(Request(scope), found)
            if answer is not None:
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _answer(self, request: Request, found: re.Match[str]) -> Response | None:
        kind, name = found.groups()
        if kind is None:
            # Each part of the page has the same depth, so that relative links hold on all of them.
            prefix = request.url.path.rstrip("/").removesuffix(PREFIX)
            return RedirectResponse(f"{prefix}{PREFIX}/page/facts", 303, HEADERS)
        if kind == "static":
            asset = assets().get(name)
            return asset.answer(request) if asset else None
        if self._settings.single_user or is_fragment(request) or "authorization" in request.headers:
            return None
        return shell(request)
