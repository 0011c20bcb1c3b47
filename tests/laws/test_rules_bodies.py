"""A client that sends half a body and stalls is told so; who is slow with the answer, or sends all, is let be."""

import asyncio
import logging
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.laws.starting import reading_bodies


async def answer_of(request: Request) -> PlainTextResponse:
    body = await request.body()
    await asyncio.wait({asyncio.ensure_future(request.receive())}, timeout=0.2)  # for a disconnect
    return PlainTextResponse(f"read {len(body)}")


class Failures:
    """Answers and logs whatever fails below, as layers of the server do."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception:
            logging.exception("it failed")
            await PlainTextResponse("Internal Server Error", 500)(scope, receive, send)


APP = Starlette(
    routes=[Route("/{rest:path}", answer_of, methods=["GET", "POST"])],
    middleware=reading_bodies(Middleware(Failures), seconds=0.05),
)


async def ask(pieces: list[Message], path: str = "/threads", method: str = "POST") -> list[Any]:
    """Send these pieces and then nothing; return what is answered."""
    answered: list[Any] = []

    async def receive() -> Message:
        return pieces.pop(0) if pieces else await asyncio.Future()

    async def send(message: Message) -> None:
        answered.append(message)

    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": []}
    async with asyncio.timeout(60):
        await APP(scope, receive, send)
    return answered


# A route reads the one, a layer before the routes the other.
@pytest.mark.parametrize("path", ["/threads", "/assistants"])
@pytest.mark.parametrize("sent", [0, 1])
async def test_half_a_body_is_answered_with_408_and_ends_the_connection(
    path: str, sent: int, caplog: pytest.LogCaptureFixture
) -> None:
    half: Message = {"type": "http.request", "body": b'{"graph_id": ', "more_body": True}
    start, body = await ask([half] * sent, path)
    assert start["status"] == 408
    assert (b"connection", b"close") in start["headers"]
    assert b"did not come within 0.05 s: send it again" in body["body"]
    assert len(caplog.records) == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_whole_body_and_a_slow_answer_are_no_matter(method: str) -> None:
    half: Message = {"type": "http.request", "body": b"1234", "more_body": True}
    start, body = await ask([half, {"type": "http.request", "body": b"5"}], method=method)
    assert (start["status"], body["body"]) == (200, b"read 5")
