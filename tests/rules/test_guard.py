import pytest
from starlette.requests import Request
from starlette.types import Message

from graphs.server.api.guard import RateLimit, RefusedRequest, bounded, check_json, check_origin
from tests.fakes import Clock

NOBODY: frozenset[str] = frozenset()


def request(*chunks: bytes, user: object = None, **headers: str) -> Request:
    """A request with these headers (`_` stands for `-`) and a body in these chunks."""
    left = list(chunks) or [b""]

    async def receive() -> Message:
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/memory", "headers": raw, "query_string": b""}
    return Request(scope if user is None else {**scope, "user": user}, receive)


def status_of(refused: pytest.ExceptionInfo[RefusedRequest]) -> int:
    return refused.value.status_code


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://host:2025", "https://host:2024.evil.example", ""]
)
def test_what_another_site_sends_is_refused(origin: str) -> None:
    with pytest.raises(RefusedRequest) as refused:
        check_origin(request(origin=origin, host="host:2024"), NOBODY)
    assert status_of(refused) == 403


def test_the_servers_own_pages_and_allowed_sites_may_ask() -> None:
    check_origin(request(origin="http://host:2024", host="HOST:2024"), NOBODY)
    check_origin(request(host="host:2024"), NOBODY)
    check_origin(request(origin="https://app.example", host="host:2024"), frozenset({"https://app.example"}))


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json"])
def test_only_json_is_read(kind: str) -> None:
    with pytest.raises(RefusedRequest) as refused:
        check_json(request(b"{}", content_type=kind))
    assert status_of(refused) == 415


async def test_a_body_is_read_up_to_its_limit() -> None:
    assert await bounded(request(b'{"a": ', b"123}"), 10).body() == b'{"a": 123}'
    with pytest.raises(RefusedRequest) as refused:
        await bounded(request(b"12345", b"67890", b"1"), 10).body()
    assert status_of(refused) == 413


def test_requests_above_the_rate_wait_for_the_next_minute() -> None:
    clock = Clock()
    clock.advance(60 - clock() % 60 + 58)
    limit = RateLimit(60, clock=clock)
    for _ in range(60):
        limit.take("ada")
    for _ in range(100):  # what is refused costs nothing
        with pytest.raises(RefusedRequest) as refused:
            limit.take("ada")
    assert status_of(refused) == 429
    assert refused.value.headers == {"Retry-After": "2"}
    limit.take("bob")
    clock.advance(2)
    limit.take("ada")
