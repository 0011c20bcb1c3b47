"""What the shipped server answers before a run: a browser's preflight, and assistants that no run could use."""

from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.speaking import say

STUDIO = "https://smith.langchain.com"


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve()


def test_studio_reads_why_an_assistant_is_refused(server: DevServer) -> None:
    asked = {"graph_id": "chat", "context": {"max_tokens": "seven"}}
    refused = httpx.post(f"{server.url}/assistants", json=asked, headers={"Origin": STUDIO}, timeout=60)
    good = httpx.post(f"{server.url}/assistants/search", json={}, headers={"Origin": STUDIO}, timeout=60)
    assert (refused.status_code, good.status_code) == (422, 200)
    named = [name for name in good.headers if name.startswith("access-control-") or name == "vary"]
    assert "access-control-allow-origin" in named
    assert [refused.headers.get(name) for name in named] == [good.headers[name] for name in named]
    closed = httpx.get(f"{server.url}/internal/truncate", headers={"Origin": STUDIO}, timeout=60)
    assert (closed.status_code, "access-control-allow-origin" in closed.headers) == (404, True)
    # Whose page may not ask at all reads nothing.
    evil = httpx.post(f"{server.url}/assistants", json=asked, headers={"Origin": "https://evil.example"}, timeout=60)
    assert (evil.status_code, "access-control-allow-origin" in evil.headers) == (403, False)


def test_a_thread_is_made_as_ever_where_the_chat_graph_has_another_name(serve: Serve) -> None:
    with get_sync_client(url=serve("tests/e2e/support/own_name.json").url) as client:
        thread_id = "5a1f7f0e-0000-4000-8000-000000000001"
        made = client.threads.create(thread_id=thread_id, if_exists="do_nothing")
        assert "graph_id" not in (made["metadata"] or {})
        assert not client.threads.get_state(thread_id)["values"]
        client.runs.wait(thread_id, "companion", input=say("Hello"))
        again = client.threads.create(thread_id=thread_id, if_exists="do_nothing")
        assert (again["metadata"] or {})["graph_id"] == "companion"
        state: Any = client.threads.get_state(thread_id)
        assert len(state["values"]["messages"]) == 2
