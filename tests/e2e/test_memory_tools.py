"""The tools of memory on a real server: the assistant's form names them, and the model searches and forgets."""

import re

import httpx
import pytest

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.e2e.speaking import say
from tests.e2e.waiting import eventually
from tests.stub_model import ChatRequest, Reply, StubModel


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.2")


def search_then_forget(request: ChatRequest) -> Reply | str:
    """Answer as a model does that looks a fact up, forgets it by the id that it reads, and tells what it was told."""
    if request.last == "Forget my figs.":
        return Reply(tool_calls=(("search_memory", {"query": "figs"}),))
    if found := re.search(r"Likes figs \(id (fact_\w+), since \d{4}-\d\d-\d\d\)", request.last):
        return Reply(tool_calls=(("forget", {"fact_id": found[1]}),))
    return f"{','.join(request.tools)}: {request.last}"


def test_the_model_of_an_assistant_searches_and_forgets_and_the_user_undoes_it(
    server: DevServer, model: StubModel
) -> None:
    model.respond = Scripted(chat=search_then_forget)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        fact = {"content": "Likes figs", "category": "preference"}

        def facts() -> list[str]:
            return [each["content"] for each in client.get("/memory/facts").json()["facts"]]

        def answer(assistant: str) -> str:
            done = client.post("/runs/wait", json={"assistant_id": assistant, "input": say("Forget my figs.")}).json()
            return str(done["messages"][-1]["content"])

        # Written by hand, it is the user's to remove.
        client.post("/memory/facts", json=fact).raise_for_status()
        context = {"memory_tools": ["search_memory", "forget"]}
        made = client.post("/assistants", json={"graph_id": "chat", "context": context}).json()["assistant_id"]
        assert "only they can remove it" in answer(made)
        assert facts() == ["Likes figs"]
        # Learned, it goes at the user's wish, and comes back with one request.
        model.respond = Scripted(learns={"I like figs": "Likes figs"}, chat=search_then_forget)
        (there,) = client.get("/memory/facts").json()["facts"]
        client.post("/memory/erase/fact", json={"fact_id": there["id"]}).raise_for_status()
        client.post("/runs/wait", json={"assistant_id": "chat", "input": say("I like figs.")}).raise_for_status()
        eventually(lambda: facts() == ["Likes figs"])
        assert answer(made) == "current_time,search_memory,forget: Forgotten. The user can undo it."
        assert facts() == []
        client.post("/memory/undo", json={}).raise_for_status()
        assert facts() == ["Likes figs"]
        refused = client.post("/assistants", json={"graph_id": "chat", "context": {"memory_tools": ["drop_table"]}})
        assert refused.status_code == 422
        assert "memory_tools" in refused.text
