"""Where nobody logs in, the server answers this machine only: each of its routes, not just the memory API.

A port that listens beyond loopback, a tunnel, and a web page whose name an attacker points at this machine (DNS
rebinding) would otherwise make anyone "the" user.
"""

import logging
from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp
from starlette.websockets import WebSocketClose

from graphs.process.address import is_loopback
from graphs.server.asgi import Guard
from graphs.settings import Settings

logger = logging.getLogger(__name__)

_STUDIO = "smith.langchain.com"
_OPEN = "PALIMPSEST_OPEN_TO_NETWORK=true opens it to everyone who reaches this port"
_SHOWN_CHARS = 200


def this_machine_only(settings: Settings) -> Guard:
    """Return what answers 403 to other machines, other names and other web sites in single-user mode."""
    is_open = settings.open_to_network
    if settings.single_user and is_open:
        logger.warning(
            "PALIMPSEST_OPEN_TO_NETWORK=true: nobody logs in, so whoever reaches this port reads and changes all "
            "threads and memory"
        )

    async def guard(asked: HTTPConnection) -> ASGIApp | None:
        if not settings.single_user:
            return None
        forwarded = ",".join(asked.headers.getlist("x-forwarded-host"))
        hosts = [asked.headers.get("host", ""), *filter(None, map(str.strip, forwarded.split(",")))]
        origin, peer = asked.headers.get("origin"), asked.client.host if asked.client else ""
        why = why_not(peer, hosts, origin, allowed=settings.allowed_origins, open_to_network=is_open)
        if why is None:
            return None
        logger.warning("refused: %s", why)
        if asked.scope["type"] == "websocket":  # a reason has room for 123 bytes; 1008: against the policy
            return WebSocketClose(1008, "see the server's log")
        return JSONResponse({"detail": why}, 403)

    return guard


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
    names = {host.lower() for host in hosts}
    if not open_to_network:
        if not is_loopback(peer):
            return f"single-user mode answers this machine only, not {_shown(peer)}. {_OPEN}."
        # A page cannot forge its browser's `Host`: after DNS rebinding it still is the attacker's name.
        for name in names - {_split(each).netloc for each in allowed}:
            if not is_loopback(_split(f"//{name}").hostname):
                return f"single-user mode answers this machine's own names only, not {_shown(name)}. {_OPEN}."
    if origin is None or origin in allowed:
        return None
    site = _split(origin)
    is_here = site.scheme in ("http", "https") and (is_loopback(site.hostname) or site.netloc in names - {""})
    if is_here or (site.scheme == "https" and f".{site.hostname}".endswith(f".{_STUDIO}")):
        return None
    return f"pages of {_shown(origin)} may not ask this server. PALIMPSEST_ALLOWED_ORIGINS={_shown(origin)} allows it."


def _split(address: str) -> SplitResult:
    try:
        found = urlsplit(address.lower())
        return found if found.hostname else urlsplit("")
    except ValueError:
        return urlsplit("")


def _shown(text: str) -> str:
    """Return what a client sent so that a log line and a message can carry it."""
    return "".join(filter(str.isprintable, text[:_SHOWN_CHARS])) or "(none)"
