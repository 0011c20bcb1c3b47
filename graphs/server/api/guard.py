"""Before a request is looked at: whose it is, from where, how big; and what a refused one is answered with."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message

from graphs.process.failures import FileUnusable
from memory.backfill.source import LearningPaused, SourceGone, SourceNotFound
from memory.facts.fact import DuplicateFact, FactNotFound, MemoryFull


class FieldError(BaseModel):
    """One wrong field, by its name, with dots: facts.3.confidence."""

    field: str
    message: str


class Problem(BaseModel):
    """Why a request was refused."""

    detail: str
    errors: list[FieldError] = []


class RefusedRequest(HTTPException):
    """A request that is answered with an error status; everything in it may be shown to the caller."""

    def __init__(
        self, status: int, detail: str, errors: Sequence[FieldError] = (), *, retry_after: int | None = None
    ) -> None:
        super().__init__(status, detail, {} if retry_after is None else {"Retry-After": str(retry_after)})
        self.problem = Problem(detail=detail, errors=list(errors))

    def response(self) -> JSONResponse:
        """Return the answer that says so."""
        return JSONResponse(self.problem.model_dump(), self.status_code, self.headers)


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
        FieldError(
            field=".".join(map(str, each["loc"][below:])) or "body",
            message=each["msg"].removeprefix("Value error, "),  # of a rule of ours
        )
        for each in found
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


@contextmanager
def refusing() -> Iterator[None]:
    """Raise, for what ends a request, the refusal that it is answered with.

    Raises:
        RefusedRequest: 404 for what is not there; 409 for a fact that is there already, or has no room, and for an
            import that takes nothing in; 422 for a rule of facts that names the field; 503 where store or server did
            not answer, or not in time, or a file cannot be used (most requests can be sent again).
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


def bounded(request: Request, limit: int) -> Request:
    """Return the request with at most so many bytes of body; who reads more gets `RefusedRequest` (413).

    Where the sender goes away meanwhile it is one too (400): no answer reaches them, and the log has the status.
    """
    size = 0

    async def receive() -> Message:
        # Counted while it comes: `Content-Length` may be missing, or wrong.
        nonlocal size
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise RefusedRequest(400, "the request broke off before it was whole")
        size += len(message.get("body", b""))
        if size > limit:
            raise RefusedRequest(413, f"the body must have at most {limit} bytes")
        return message

    return Request(request.scope, receive)


class RateLimit:
    """At most so many requests of one user in a minute of this process's clock.

    It holds for one process: behind several, put a limit where they meet.
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._clock = per_minute, clock
        self._minute, self._asked = 0.0, Counter[str]()

    def take(self, user_id: str) -> None:
        """Count one request; `RefusedRequest` (429) above the limit, with the seconds to wait."""
        minute, second = divmod(self._clock(), 60)
        if minute != self._minute:
            self._minute, self._asked = minute, Counter()
        self._asked[user_id] += 1
        if self._asked[user_id] > self._per_minute:
            seconds = math.ceil(60 - second)
            raise RefusedRequest(429, f"too many requests; try again in {seconds} s", retry_after=seconds)
