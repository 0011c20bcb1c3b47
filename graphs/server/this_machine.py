"""Where nobody logs in, the server answers this machine only: each of its routes, not just the memory API.

A port that listens beyond loopback, a tunnel, and a web page whose name an attacker points at this machine (DNS
rebinding) would otherwise make anyone "the" user.
"""

import logging
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphs.address import is_loopback
from graphs.settings import Settings

logger = logging.getLogger(__name__)

_STUDIO = "smith.langchain.com"
_OPEN = "PALIMPSEST_OPEN_TO_NETWORK=true opens it to everyone who reaches this port"
_SHOWN_CHARS = 200


class ThisMachineOnly:
    """Answers 403 to other machines, other names and other web sites while the server is in single-user mode.

    Args:
        app: What answers everything else.
        settings: The deployment's choices; outside single-user mode nothing is refused here.
    """

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self._app, self._settings = app, settings
        if settings.single_user and settings.open_to_network:
            logger.warning(
                "PALIMPSEST_OPEN_TO_NETWORK=true: nobody logs in, so whoever reaches this port reads and changes all "
                "threads and memory"
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        why = None
        if self._settings.single_user and scope["type"] in ("http", "websocket") and not is_in_process(scope):
            headers = Headers(scope=scope)
            why = why_not(
                (scope.get("client") or ("", 0))[0],
                _hosts(headers),
                headers.get("origin"),
                allowed=self._settings.allowed_origins,
                open_to_network=self._settings.open_to_network,
            )
        if why is None:
            await self._app(scope, receive, send)
            return
        logger.warning("refused: %s", why)
        if scope["type"] == "websocket":
            # 1008: against the policy. A reason has room for 123 bytes, so the sentence stands in the log only.
            await send({"type": "websocket.close", "code": 1008, "reason": "see the server's log"})
        else:
            await JSONResponse({"detail": why}, status_code=403)(scope, receive, send)


def is_in_process(scope: Scope) -> bool:
    """Say whether the server calls itself (`get_client()` without a URL).

    The server marks such calls, and lets them pass its own login, by a root path that no request from outside can
    set: it is no part of the path that was asked for.
    """
    root = scope.get("root_path") or ""
    return root == "/noauth" or root.startswith("/noauth/")


def _hosts(headers: Headers) -> list[str]:
    """Return every name that was asked for: of the server itself, and of each proxy before it."""
    forwarded = [name for each in headers.getlist("x-forwarded-host") for name in each.split(",")]
    return [headers.get("host", ""), *(name.strip() for name in forwarded)]


def why_not(
    peer: str, hosts: Iterable[str], origin: str | None, *, allowed: frozenset[str], open_to_network: bool
) -> str | None:
    """Return why a request is refused in single-user mode, and what would allow it; `None` if it may pass.

    Args:
        peer: The address that the request comes from; the server has put the one a local proxy forwards in its place.
        hosts: The names that were asked for: `Host`, and what a proxy forwards.
        origin: The web site whose page asks, if the client is a browser that says so.
        allowed: Web sites (`https://host`) that may ask; their hosts are names of this server.
        open_to_network: Whether other machines and other names are answered too.
    """
    hosts = [host.lower() for host in hosts]
    own = {_netloc(each) for each in allowed}
    if not open_to_network:
        if not is_loopback(peer):
            return f"single-user mode answers this machine only, not {_shown_name(peer)}. {_OPEN}."
        # A page cannot forge its browser's `Host`: after DNS rebinding it still is the attacker's name.
        for host in hosts:
            if not is_loopback(_name(host)) and host not in own:
                return f"single-user mode answers this machine's own names only, not {_shown_name(host)}. {_OPEN}."
    if origin is None or origin in allowed or _may_ask(origin) or (_netloc(origin) or None) in hosts:
        return None
    shown = _shown_name(origin)
    return f"pages of {shown} may not ask this server. PALIMPSEST_ALLOWED_ORIGINS={shown} allows it."


def _may_ask(origin: str) -> bool:
    """Say whether a site is a page of this machine, or LangGraph Studio."""
    scheme, name = origin.partition("://")[0].lower(), _name(_netloc(origin))
    if is_loopback(name):
        return scheme in ("http", "https")
    return scheme == "https" and (name == _STUDIO or name.endswith(f".{_STUDIO}"))


def _netloc(origin: str) -> str:
    return origin.partition("://")[2].lower()


def _name(netloc: str) -> str:
    try:
        return urlsplit(f"//{netloc}").hostname or ""
    except ValueError:
        return ""


def _shown_name(text: str) -> str:
    """Return what a client sent so that a log line and a message can carry it."""
    return "".join(each for each in text[:_SHOWN_CHARS] if each.isprintable()) or "(none)"


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


class ClosedDebugRoutes:
    """Answers 404 under the debug routes' paths.

    Args:
        app: What answers everything else.
        single_user: Whether nobody logs in: then Studio may still deploy.
    """

    def __init__(self, app: ASGIApp, *, single_user: bool) -> None:
        self._app = app
        self._closed = ("/internal",) if single_user else ("/internal", "/deploy")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # With the slash: `/internals` does not lie below `/internal`.
        if scope["type"] == "http" and any(f"{scope['path']}/".startswith(f"{root}/") for root in self._closed):
            await JSONResponse({"detail": "Not Found"}, status_code=404)(scope, receive, send)
        else:
            await self._app(scope, receive, send)
