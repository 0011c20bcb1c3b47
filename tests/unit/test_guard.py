import pytest
from starlette.requests import Request
from starlette.types import Message

from graphs.server.api.guard import JsonRequest, RateLimit, RefusedRequest, check_origin
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
    return refused.value.status


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
async def test_only_json_is_read(kind: str) -> None:
    with pytest.raises(RefusedRequest) as refused:
        await JsonRequest.read(request(b"{}", content_type=kind), 10)
    assert status_of(refused) == 415


async def test_a_body_is_read_up_to_its_limit() -> None:
    json = "Application/JSON; charset=utf-8"
    read = await JsonRequest.read(request(b'{"a": ', b"123}", content_type=json), 10)
    assert (await read.body(), await read.json()) == (b'{"a": 123}', {"a": 123})
    with pytest.raises(RefusedRequest) as refused:
        await JsonRequest.read(request(b"12345", b"67890", b"1", content_type=json), 10)
    assert status_of(refused) == 413


def test_requests_above_the_rate_wait() -> None:
    clock = Clock()
    limit = RateLimit(60, clock=clock)
    for _ in range(60):
        limit.take("ada")
    with pytest.raises(RefusedRequest) as refused:
        limit.take("ada")
    assert status_of(refused) == 429
    assert refused.value.headers == {"Retry-After": "2"}
    limit.take("bob")
    clock.advance(2)
    limit.take("ada")
    limit.take("ada")
    with pytest.raises(RefusedRequest):
        limit.take("ada")


def test_a_refused_request_costs_nothing() -> None:
    clock = Clock()
    limit = RateLimit(1, clock=clock)
    limit.take("ada")
    for _ in range(100):
        with pytest.raises(RefusedRequest):
            limit.take("ada")
    clock.advance(60)
    limit.take("ada")


def test_the_rate_remembers_a_bounded_number_of_users() -> None:
    limit = RateLimit(1, users=2, clock=Clock())
    for name in ("ada", "bob", "eve"):
        limit.take(name)
    limit.take("ada")
    with pytest.raises(RefusedRequest):
        limit.take("eve")
