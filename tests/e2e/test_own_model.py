"""A deployment's own models, tools and service, named once: everything in the process uses them, also after a crash."""

import json

import httpx
from langgraph_sdk import get_sync_client

from tests.e2e.conftest import Serve
from tests.e2e.scripted import Scripted, is_extraction
from tests.e2e.speaking import say, speak_python
from tests.e2e.waiting import eventually
from tests.stub_model import ChatRequest, Reply, StubModel


def answer(request: ChatRequest) -> Reply | str:
    if request.last == "What is the weather in Bergen?":
        return Reply(tool_calls=(("weather", {"city": "Bergen"}),))
    return f"re: {request.last}"


def test_what_a_crash_left_behind_is_learned_with_the_own_model(serve: Serve, model: StubModel) -> None:
    model.respond = Scripted(learns={"figs": "Likes figs"}, chat=answer)
    server = serve(PALIMPSEST_DEPLOYMENT="examples.own_model:deployment", PALIMPSEST_DEBOUNCE_SECONDS="120")
    assert speak_python(server, "What is the weather in Bergen?").answer == "re: Rain in Bergen."
    assert speak_python(server, "I like figs.").answer == "re: I like figs."
    assert {request.model for request in model.requests} == {"house-large"}

    server.kill9()
    model.clear()
    server.start()

    with httpx.Client(base_url=f"{server.url}/memory", timeout=60) as memory:
        eventually(lambda: [fact["content"] for fact in memory.get("/facts").json()["facts"]] == ["Likes figs"])
    extraction = model.wait_for(is_extraction)
    assert extraction.model == "house-small"
    assert {name.lower(): value for name, value in extraction.headers.items()}["x-purpose"] == "memory"
    with get_sync_client(url=server.url) as client:
        graph = client.assistants.get_graph(client.assistants.search(graph_id="chat")[0]["assistant_id"])
        assert "tools" in json.dumps(graph)
        assert client.runs.wait(None, "chat", input=say("Hello"))
