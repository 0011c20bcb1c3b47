"""What the page's browser gets without saying who it is: static files, and the page without anybody's data."""

import re

from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp

from graphs.server.api.routing import PREFIX
from graphs.server.asgi import Guard
from graphs.server.page.assets import assets
from graphs.server.page.rendering import HEADERS, shell
from graphs.settings import Settings

_PATH = re.compile(rf"{PREFIX}/?(?:(static|page)/([A-Za-z0-9._-]+))?$")


def page_door(settings: Settings) -> Guard:
    """Return what stands before the server's login, which answers a browser that goes to an address with JSON."""

    async def guard(asked: HTTPConnection) -> ASGIApp | None:
        path = asked.scope["path"]
        found = _PATH.search(path) if asked.scope.get("method") in ("GET", "HEAD") else None
        # The server's own prefix may stand before it, and nothing else.
        if not found or path[: found.start()] not in ("", asked.scope.get("root_path", "")):
            return None
        request, (kind, name) = Request(asked.scope), found.groups()
        if kind is None:
            # Each part of the page has the same depth, so that relative links hold on all of them.
            return RedirectResponse(f"{path[: found.start()]}{PREFIX}/page/facts", 303, HEADERS)
        if kind == "static":
            return assets()[name].answer(request) if name in assets() else None
        is_let_in = settings.single_user or "authorization" in request.headers
        return None if is_let_in else shell(request)

    return guard
