"""What the shipped server answers before a run: a browser's preflight, and assistants that no run could use."""

from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import APIStatusError

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


@pytest.fixture(scope="module")
def own_name(serve: Serve) -> DevServer:
    """A server whose configuration calls the chat graph by another name."""
    return serve("tests/e2e/support/own_name.json")


@pytest.mark.parametrize(("served", "graph"), [("server", "chat"), ("own_name", "companion")])
@pytest.mark.parametrize("place", ["context", "config.configurable"])
def test_a_bad_context_is_refused_when_an_assistant_is_made_or_changed(
    served: str, graph: str, place: str, request: pytest.FixtureRequest
) -> None:
    server: DevServer = request.getfixturevalue(served)

    def given(**values: Any) -> Any:
        return {"context": values} if place == "context" else {"config": {"configurable": values}}

    with get_sync_client(url=server.url) as client:
        with pytest.raises(APIStatusError) as created:
            client.assistants.create(graph, **given(max_tokens="seven"))
        good = client.assistants.create(graph, **given(max_tokens=900))
        with pytest.raises(APIStatusError) as changed:
            client.assistants.update(good["assistant_id"], **given(max_tokens="seven"))
        assert client.assistants.get(good["assistant_id"])["context"] == {"max_tokens": 900}
    for refused in (created, changed):
        assert refused.value.response.status_code == 422
        assert f"{place}.max_tokens" in refused.value.response.text


def test_a_thread_is_made_as_ever_where_the_chat_graph_has_another_name(own_name: DevServer) -> None:
    with get_sync_client(url=own_name.url) as client:
        thread_id = "5a1f7f0e-0000-4000-8000-000000000001"
        made = client.threads.create(thread_id=thread_id, if_exists="do_nothing")
        assert "graph_id" not in (made["metadata"] or {})
        assert not client.threads.get_state(thread_id)["values"]
        client.runs.wait(thread_id, "companion", input=say("Hello"))
        again = client.threads.create(thread_id=thread_id, if_exists="do_nothing")
        assert (again["metadata"] or {})["graph_id"] == "companion"
        state: Any = client.threads.get_state(thread_id)
        assert len(state["values"]["messages"]) == 2
