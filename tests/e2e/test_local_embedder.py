"""The embedded embedder on a real server, where its packages and weights are: no test fetches them."""

import httpx
import pytest

from graphs.local.embedder import is_fetched, is_installed
from graphs.local.weights import cache_folder
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.e2e.speaking import say
from tests.e2e.waiting import eventually
from tests.stub_model import StubModel


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    if not is_installed() or not is_fetched(cache_folder()):
        pytest.skip("needs the extra `embedder` and its weights: python -m graphs.local.embedder")
    cache = str(cache_folder().parents[1])
    return serve(PALIMPSEST_EMBEDDER="local", PALIMPSEST_DEBOUNCE_SECONDS="0.2", XDG_CACHE_HOME=cache)


def test_what_was_learned_is_found_by_its_meaning(server: DevServer, model: StubModel) -> None:
    model.respond = Scripted(learns={"peanuts": "User is allergic to peanuts", "Bergen": "User lives in Bergen"})
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for text in ("I am allergic to peanuts.", "I live in Bergen."):
            client.post("/runs/wait", json={"assistant_id": "chat", "input": say(text)}).raise_for_status()

        def found() -> list[str]:
            answer = client.post("/memory/facts/search", json={"text": "Which food could harm me?"})
            return [fact["content"] for fact in answer.raise_for_status().json()["facts"]]

        eventually(lambda: found()[:1] == ["User is allergic to peanuts"])
    said = [line for line in server.log.splitlines() if "recall goes by words alone" in line]
    assert all("gave no vector within" in line for line in said)  # a busy machine may be late with one
