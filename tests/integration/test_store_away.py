"""What the memory API and the page answer while the store is away, and to whom nobody listens any more."""

from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest
from langgraph.store.memory import InMemoryStore
from langgraph_sdk.errors import InternalServerError

from graphs.settings import Settings
from tests.archive_lines import taking
from tests.laws.server import ThreadServer
from tests.memory_app import MemoryApp

pytest.importorskip("jinja2")


@pytest.mark.parametrize("error", [TimeoutError, ConnectionError])
@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.get("/facts"),
        lambda client: client.get("/export"),
        lambda client: client.post(
            "/import", **taking({"facts": [{"content": "a", "category": "goal", "confidence": 1}]})
        ),
        lambda client: client.get("/page/facts"),
        lambda client: client.post("/page/facts", data={"text": ""}),
    ],
)
async def test_a_store_that_does_not_answer_is_said_to_be_away(
    ask: Any, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InMemoryStore, "abatch", AsyncMock(side_effect=error))
    async with MemoryApp(Settings(single_user=True)).user(None) as client:
        answer = await ask(client)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "store of memory did not answer" in answer.text.casefold()


FAILED = InternalServerError("", response=httpx.Response(500, request=httpx.Request("POST", "/")), body=None)


@pytest.mark.parametrize("error", [FAILED, FileNotFoundError()])
async def test_a_server_that_cannot_read_its_threads_says_so(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThreadServer, "search", AsyncMock(side_effect=error))
    async with MemoryApp().user("ada") as client:
        answer = await client.post("/erase/everything", json={"erase": "everything"})
    assert answer.status_code == 503


@pytest.mark.parametrize("path", ["/memory/facts", "/memory/import", "/memory/page/fact-add"])
async def test_a_request_that_breaks_off_raises_nothing(path: str) -> None:
    headers, send = [(b"content-type", b"application/json")], AsyncMock()
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    gone = AsyncMock(return_value={"type": "http.disconnect"})
    await MemoryApp(Settings(single_user=True)).app(scope, gone, send)
    assert send.await_args_list[0].args[0]["status"] == 400
