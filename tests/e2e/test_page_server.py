"""The page as the real server serves it, without a browser: its login, its files, and no blocking of the event loop."""

import httpx
import pytest

from tests.archive_lines import taking
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.javascript import run_javascript
from tests.stub_model import StubModel

pytest.importorskip("jinja2")


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve()


def test_a_document_of_many_facts_is_no_request_each(server: DevServer) -> None:
    """Through the server's own API each operation on the store was one: on a busy machine they took over a minute."""
    facts = [{"content": f"Knows the number {n}", "category": "goal", "confidence": 0.5} for n in range(480)]
    document = {"facts": facts}
    answer = httpx.post(f"{server.url}/memory/import", **taking(document), timeout=300)
    assert (answer.status_code, len(answer.json()["created"])) == (200, 480)
    assert "/store/items" not in server.log


def test_the_official_javascript_client_hands_on_what_a_reply_drew_on(server: DevServer, model: StubModel) -> None:
    fact = {"content": "Likes plums", "category": "preference", "pinned": True}
    fact_id = httpx.post(f"{server.url}/memory/facts", json=fact, timeout=60).json()["id"]
    thread_id = httpx.post(f"{server.url}/threads", json={}, timeout=60).json()["thread_id"]
    got = run_javascript("sources.mjs", url=server.url, threadId=thread_id, text="What do I like?")
    assert fact_id in got["stored"]["palimpsest"]["facts"]
    assert got["streamed"] == got["stored"]
