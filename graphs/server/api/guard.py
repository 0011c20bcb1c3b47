"""Before a request is looked at: whose it is, from where, how big; and what a refused one is answered with."""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from graphs.process.causes import FileUnusable
from memory.backfill.taking_back import SourceNotFound
from memory.backfill.taking_in import LearningPaused, SourceGone
from memory.facts.fact import DuplicateFact, FactNotFound, MemoryFull


class FieldError(BaseModel):
    """One wrong field, by its name, with dots: facts.3.confidence."""

    field: str
    message: str


class Problem(BaseModel):
    """Why a request was refused."""

    detail: str
    errors: list[FieldError] = []


class RefusedRequest(Exception):
    """A request that is answered with an error status; everything in it may be shown to the caller."""

    def __init__(
        self, status: int, detail: str, errors: Sequence[FieldError] = (), *, retry_after: int | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.problem = Problem(detail=detail, errors=list(errors))
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}

    def response(self) -> JSONResponse:
        """Return the answer that says so."""
        return JSONResponse(self.problem.model_dump(), status_code=self.status, headers=self.headers)


def invalid(field: str, message: str, status: int = 422) -> RefusedRequest:
    """Return the refusal of one field's value."""
    return RefusedRequest(status, f"{field}: {message}", [FieldError(field=field, message=message)])


def from_validation(found: Sequence[Mapping[str, Any]], *, below: int = 0) -> RefusedRequest:
    """Return the refusal that names every field pydantic found wrong, and repeats no value of them.

    Args:
        found: Pydantic's errors.
        below: So many places at the head of a field's path are not shown: FastAPI puts `query` or `body` there.
    """
    errors = [
        FieldError(field=".".join(map(str, each["loc"][below:])) or "body", message=each["msg"]) for each in found
    ]
    # Five are still read as a sentence; a long list of wrong entries must not make an answer longer than its request.
    return RefusedRequest(422, "; ".join(f"{each.field}: {each.message}" for each in errors[:5]), errors[:100])


def from_value_error(error: ValueError, fields: Sequence[str]) -> RefusedRequest:
    """Return the refusal for a rule of memory itself, whose messages begin with the field's name."""
    message = str(error)
    field = next((name for name in fields if message.startswith(name)), "body")
    return invalid(field, message.removeprefix(field).lstrip(": "))


FACT_FIELDS = ("content", "category", "confidence", "pinned", "expires_at")
_AWAY = "the store of memory did not answer in time: try again soon"
_AWAY_SECONDS = 5
_ROUNDING = 1e-6


@contextmanager
def refusing() -> Iterator[None]:
    """Raise, for what ends a request, the refusal that it is answered with.

    Raises:
        RefusedRequest: 404 for what is not there; 409 for a fact that is there already, or has no room, and for an
            import that takes nothing in; 422 for a rule of facts that names the field; 503 where the store did not
            answer, or not in time, or its file cannot be used (most requests can be sent again); 400 where the sender
            went away, whom no answer reaches: it is for the log.
    """
    try:
        yield
    except (FactNotFound, SourceNotFound) as unknown:
        raise RefusedRequest(404, str(unknown)) from None
    except (DuplicateFact, MemoryFull, SourceGone, LearningPaused) as conflict:
        raise RefusedRequest(409, str(conflict)) from None
    except ValueError as error:
        if not str(error).startswith(FACT_FIELDS):
            raise
        raise from_value_error(error, FACT_FIELDS) from None
    except (TimeoutError, ConnectionError) as error:
        raise RefusedRequest(503, _AWAY, retry_after=_AWAY_SECONDS) from error
    except FileUnusable as error:
        raise RefusedRequest(503, str(error), retry_after=_AWAY_SECONDS) from error
    except ClientDisconnect as error:
        raise RefusedRequest(400, "the request broke off before it was whole") from error


def check_origin(request: Request, allowed: frozenset[str]) -> None:
    """Refuse what another web site makes a browser send (403): its `Origin` is neither this server's nor allowed."""
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    # Programs send no origin; only a browser says whose page asks.
    if origin is not None and origin not in allowed and origin.partition("://")[2].lower() != host.lower():
        raise RefusedRequest(
            403, "requests from other web sites are refused; allow one with PALIMPSEST_ALLOWED_ORIGINS"
        )


def check_json(request: Request) -> None:
    """Refuse a body that is not called JSON (415): browsers send forms across sites without asking."""
    said = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if said not in ("application/json", "application/jsonl"):
        raise RefusedRequest(415, "send the header `Content-Type: application/json`")


async def body_of(request: Request, limit: int) -> AsyncIterator[bytes]:
    """Yield the body as it comes; `RefusedRequest` (413) above the limit."""
    # Counted while it comes: `Content-Length` may be missing, or wrong.
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise RefusedRequest(413, f"the body must have at most {limit} bytes")
        yield piece


class JsonRequest(Request):
    """A request whose JSON is read: FastAPI itself reads any length, and answers 400 to some of what is no JSON.

    Args:
        request: The request.
        raw: Its body.

    Raises:
        RefusedRequest: 422 for what is no JSON object.
    """

    def __init__(self, request: Request, raw: bytes) -> None:
        super().__init__(request.scope, request.receive)
        self._raw = raw
        try:
            self._content = from_json(raw)
        except ValueError as error:
            raise invalid("body", f"Invalid JSON: {error}") from None
        if not isinstance(self._content, dict):
            raise invalid("body", "Input should be an object")

    async def body(self) -> bytes:
        """Return the body as it came."""
        return self._raw

    async def json(self) -> Any:
        """Return what is in the body."""
        return self._content

    @classmethod
    async def read(cls, request: Request, limit: int) -> "JsonRequest":
        """Read the body of a request; `RefusedRequest`: 415 for another content type, 413 above so many bytes."""
        check_json(request)
        return cls(request, b"".join([piece async for piece in body_of(request, limit)]))


class RateLimit:
    """At most so many requests of one user in any minute; the least recent users are forgotten first.

    It holds for one process: behind several, put a limit where they meet.
    """

    def __init__(self, per_minute: int, *, users: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._apart, self._users, self._clock = 60 / per_minute, users, clock
        # When each user would have had all their requests at even distances: no more than a minute ahead.
        self._even: dict[str, float] = {}

    def take(self, user_id: str) -> None:
        """Count one request; `RefusedRequest` (429) above the limit, with the seconds to wait."""
        now = self._clock()
        even = max(self._even.get(user_id, now), now) + self._apart
        if (wait := even - now - 60) > _ROUNDING:  # which costs nothing: who keeps asking is let in when it is over
            seconds = int(wait) + 1
            raise RefusedRequest(429, f"too many requests; try again in {seconds} s", retry_after=seconds)
        self._even.pop(user_id, None)  # so that the least recent user is the first
        self._even[user_id] = even
        if len(self._even) > self._users:
            del self._even[next(iter(self._even))]
