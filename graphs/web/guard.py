"""Before a request is looked at: whose it is, where it comes from, how big it is, and how many came before."""

import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable

from starlette.requests import Request

from graphs.identity import LOCAL_USER, authenticated_user
from graphs.web.problems import Refused

_NO_IDENTITY = (
    "log in first: memory belongs to a person, and turns of nobody go on without it. On a machine of your own, where "
    "nobody logs in, set PALIMPSEST_SINGLE_USER=true"
)


def user_of(request: Request, *, single_user: bool) -> str:
    """Return the identity that the server vouches for; never one that the client names.

    Raises:
        Refused: 401 without an identity, unless the server is in single-user mode: then it is the local user.
    """
    user = request.scope.get("user")
    identity = authenticated_user(user.identity) if user is not None and user.is_authenticated else None
    if identity is not None:
        return identity
    if single_user:
        return LOCAL_USER
    raise Refused(401, _NO_IDENTITY)


def check_origin(request: Request, allowed: frozenset[str]) -> None:
    """Refuse what another web site makes a browser send (403): its `Origin` is neither this server's nor allowed."""
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    if origin is not None and origin not in allowed and origin.partition("://")[2].lower() != host.lower():
        raise Refused(403, "requests from other web sites are refused; allow one with PALIMPSEST_ALLOWED_ORIGINS")


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body of a JSON request.

    Raises:
        Refused: 415 for another content type, 413 above the limit.
    """
    check_json(request)
    return b"".join([piece async for piece in body_of(request, limit)])


def check_json(request: Request) -> None:
    """Refuse a body that is not called JSON (415): browsers send forms across sites without asking."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "send the header `Content-Type: application/json`")


async def body_of(request: Request, limit: int) -> AsyncIterator[bytes]:
    """Yield the body as it comes; `Refused` (413) above the limit."""
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise Refused(413, f"the body must have at most {limit} bytes")
        yield piece


class RateLimit:
    """At most so many requests of one user in any minute; the least recent users are forgotten first.

    It holds for one process: behind several, put a limit where they meet.
    """

    def __init__(self, per_minute: int, *, users: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._users, self._clock = per_minute, users, clock
        self._allowance: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, user_id: str) -> None:
        """Count one request; `Refused` (429) above the limit, with the seconds to wait."""
        now = self._clock()
        left, since = self._allowance.pop(user_id, (float(self._per_minute), now))
        left = min(self._per_minute, left + (now - since) * self._per_minute / 60)
        self._allowance[user_id] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if len(self._allowance) > self._users:
            self._allowance.popitem(last=False)
        if left < 1:
            wait = int((1 - left) * 60 / self._per_minute) + 1
            raise Refused(429, f"too many requests; try again in {wait} s", retry_after=wait)
