"""What the memory API and the page answer while the store is away, and to whom nobody listens any more."""

from collections.abc import Callable, Iterable
from typing import Any

import httpx
import pytest
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore

from graphs.settings import Settings
from tests.archive_lines import taking
from tests.memory_app import MemoryApp

pytest.importorskip("jinja2")

DOCUMENT = {
    "facts": [{"content": "a", "category": "goal", "confidence": 1}],
}

Ask = Callable[[httpx.AsyncClient], Any]


class AwayStore(InMemoryStore):
    """A store that answers nothing in time, or is not there."""

    def __init__(self, error: type[Exception]) -> None:
        super().__init__()
        self._error = error

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        raise self._error


@pytest.mark.parametrize("error", [TimeoutError, ConnectionError])
@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.get("/facts"),
        lambda client: client.post("/import", **taking(DOCUMENT)),
        lambda client: client.get("/page/facts"),
        lambda client: client.post("/page/facts", data={"text": ""}),
    ],
    ids=["facts", "import", "the page", "a form of it"],
)
async def test_a_store_that_does_not_answer_is_said_to_be_away(ask: Ask, error: type[Exception]) -> None:
    app = MemoryApp(Settings(single_user=True), store=AwayStore(error))
    async with app.user(None) as client:
        answer = await ask(client)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "store of memory did not answer" in answer.text.casefold()


@pytest.mark.parametrize("path", ["/memory/facts", "/memory/import", "/memory/page/fact-add"])
async def test_a_request_that_breaks_off_raises_nothing(path: str) -> None:
    app, sent = MemoryApp(Settings(single_user=True)), []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json"), (b"host", b"testserver")]
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": headers, "scheme": "http", "server": ("testserver", 80), "client": ("127.0.0.1", 1),
        "http_version": "1.1",
    }  # fmt: skip
    await app.app(scope, receive, send)
    assert sent[0]["status"] == 400
