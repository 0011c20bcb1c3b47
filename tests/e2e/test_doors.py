"""What the shipped server answers before a run: a browser's preflight, and assistants that no run could use."""

from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import APIStatusError

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer

STUDIO = "https://smith.langchain.com"


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve()


@pytest.mark.parametrize("path", ["/threads", "/memory/facts", "/info", "/runs/stream"])
def test_studio_in_chrome_may_ask_every_route(server: DevServer, path: str) -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Private-Network": "true"}
    answer = httpx.options(f"{server.url}{path}", headers={"Origin": STUDIO, **asked})
    assert (answer.status_code, answer.headers.get("access-control-allow-private-network")) == (200, "true")
    refused = httpx.options(f"{server.url}{path}", headers={"Origin": "https://evil.example", **asked})
    assert refused.status_code == 403


def test_a_bad_context_is_refused_when_an_assistant_is_made_or_changed(server: DevServer) -> None:
    bad: Any = {"max_tokens": "seven"}
    with get_sync_client(url=server.url) as client:
        with pytest.raises(APIStatusError) as created:
            client.assistants.create("chat", context=bad)
        good = client.assistants.create("chat", context={"max_tokens": 900})
        with pytest.raises(APIStatusError) as changed:
            client.assistants.update(good["assistant_id"], context=bad)
        assert client.assistants.get(good["assistant_id"])["context"] == {"max_tokens": 900}
    for refused in (created, changed):
        assert refused.value.response.status_code == 422
        assert "context.max_tokens" in refused.value.response.text
