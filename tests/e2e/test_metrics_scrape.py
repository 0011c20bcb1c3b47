"""The server's own `/metrics`, scraped while people talk, says what happened and names nobody."""

import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted, is_chat, is_extraction
from tests.e2e.speaking import speak_python
from tests.e2e.waiting import eventually
from tests.stub_model import StubModel

Scrape = dict[tuple[str, frozenset[tuple[str, str]]], float]

LEARNS = {"moved to Bergen": "User lives in Bergen.", "green tent": "User has a green tent."}


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.5")


def text_of(server: DevServer) -> str:
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=30) as response:
        return str(response.read().decode())


def scrape(server: DevServer) -> Scrape:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text_of(server))
        for sample in family.samples
        if sample.name.startswith("palimpsest_")
    }


def value(scraped: Scrape, name: str, **labels: str) -> float:
    return scraped.get((f"palimpsest_{name}", frozenset(labels.items())), 0.0)


def test_a_scrape_says_what_happened(server: DevServer, model: StubModel) -> None:
    model.respond = Scripted(learns=LEARNS)
    asked = {"user_id": "ada.lovelace@example.org"}
    first = speak_python(server, "I moved to Bergen.", None, asked)
    speak_python(server, "And I have a green tent.", None, asked)

    def learned() -> Scrape | None:
        scraped = scrape(server)
        return scraped if value(scraped, "facts_total", outcome="created", reason="") == 2 else None

    scraped = eventually(learned) or {}
    chats = sum(map(is_chat, model.requests))
    extractions = sum(map(is_extraction, model.requests))
    assert value(scraped, "turns_total", written="queued") == 2
    assert value(scraped, "model_calls_total", purpose="chat", outcome="answered") == chats == 2
    assert value(scraped, "model_calls_total", purpose="extraction", outcome="answered") == extractions
    # Whose words they were, and in which thread, stays with them.
    for secret in (first.thread_id, "lovelace", "Bergen", "tent"):
        assert secret not in text_of(server)
