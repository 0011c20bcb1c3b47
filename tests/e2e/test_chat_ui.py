"""The wire calls of agent-chat-ui, byte for byte what its SDK sends, against the shipped server."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.stub_model import StubModel, always

Events = list[tuple[str, Any]]


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="60")


@pytest.fixture
def http(server: DevServer, model: StubModel) -> Iterator[httpx.Client]:
    model.respond = Scripted(chat=always("Noted, thank you."))
    with httpx.Client(base_url=server.url, timeout=60) as http:
        yield http


def submitted(text: str) -> dict[str, Any]:
    """What the page posts when a user sends a message: blocks, and what it calls the context of the conversation."""
    message = {"id": str(uuid.uuid4()), "type": "human", "content": [{"type": "text", "text": text}]}
    return {
        "input": {"messages": [message], "context": {"artifact": "draft"}},
        "stream_mode": ["values", "messages-tuple", "custom"],
        "stream_subgraphs": True,
        "stream_resumable": True,
        "assistant_id": "chat",
        "on_disconnect": "continue",
    }


def read(response: httpx.Response) -> Events:
    """Return the server-sent events of a response."""
    assert response.status_code == 200, response.read()
    events, name = [], ""
    for line in response.iter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            events.append((name, json.loads(value)))
    return events


def send(http: httpx.Client, thread_id: str, text: str) -> tuple[Events, str]:
    with http.stream("POST", f"/threads/{thread_id}/runs/stream", json=submitted(text)) as response:
        return read(response), response.headers["content-location"]


@pytest.fixture
def thread_id(http: httpx.Client) -> str:
    return str(http.post("/threads", json={}).json()["thread_id"])


def test_S1_a_submitted_message_streams_values_tokens_and_memory_events(http: httpx.Client, thread_id: str) -> None:
    events, _ = send(http, thread_id, "I moved to Bergen.")
    names = [name for name, _ in events]
    assert "error" not in names
    assert [data["name"] for name, data in events if name == "custom"] == ["memory.injected", "memory.queued"]
    tokens = [chunk["content"] for name, (chunk, *_) in only(events, "messages")]
    assert "".join(tokens) == "Noted, thank you."
    assert len(tokens) >= 3
    values = [data for name, data in events if name == "values"]
    assert [message["type"] for message in values[-1]["messages"]] == ["human", "ai"]
    assert values[-1]["messages"][0]["content"] == [{"type": "text", "text": "I moved to Bergen."}]


def only(events: Events, wanted: str) -> Events:
    return [(name, data) for name, data in events if name == wanted]


def test_S1_the_next_message_goes_on_and_the_pages_context_harms_nothing(
    http: httpx.Client, thread_id: str, model: StubModel
) -> None:
    send(http, thread_id, "I moved to Bergen.")
    model.clear()
    events, _ = send(http, thread_id, "And now?")
    assert not only(events, "error")
    assert "I moved to Bergen." in model.requests[-1].text
    assert "artifact" not in model.requests[-1].text


def test_S6_a_reloaded_page_joins_the_run_and_reads_the_history(http: httpx.Client, thread_id: str) -> None:
    events, location = send(http, thread_id, "I moved to Bergen.")
    with http.stream("GET", f"{location}/stream", headers={"Last-Event-ID": "-1"}) as response:
        again = read(response)
    assert [name for name, _ in again] == [name for name, _ in events]
    history = http.post(f"/threads/{thread_id}/history", json={"limit": 10}).json()
    assert history[0]["values"]["messages"] == events[-1][1]["messages"]


def test_S1_an_edited_message_forks_from_the_checkpoint_before_it(http: httpx.Client, thread_id: str) -> None:
    send(http, thread_id, "I moved to Bergen.")
    first = http.post(f"/threads/{thread_id}/history", json={"limit": 20}).json()[-1]
    edited = {**submitted("I moved to Oslo."), "checkpoint": first["checkpoint"]}
    with http.stream("POST", f"/threads/{thread_id}/runs/stream", json=edited) as response:
        events = read(response)
    messages = only(events, "values")[-1][1]["messages"]
    assert [message["content"] for message in messages] == [
        [{"type": "text", "text": "I moved to Oslo."}],
        "Noted, thank you.",
    ]
