"""The wire calls of agent-chat-ui, byte for byte what its SDK sends, against the shipped server."""

import itertools
import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted, is_chat
from tests.stub_model import ChatRequest, Respond, StubModel, always

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


def newest(model: StubModel) -> ChatRequest:
    """Return what the model that answers was asked last; memory may ask beside it, about a test before."""
    return [request for request in model.requests if is_chat(request)][-1]


def only(events: Events, wanted: str) -> Events:
    return [(name, data) for name, data in events if name == wanted]


def test_S1_the_next_message_goes_on_and_the_pages_context_harms_nothing(
    http: httpx.Client, thread_id: str, model: StubModel
) -> None:
    send(http, thread_id, "I moved to Bergen.")
    model.clear()
    events, _ = send(http, thread_id, "And now?")
    assert not only(events, "error")
    asked = newest(model).text
    assert "I moved to Bergen." in asked
    assert "artifact" not in asked


READ_BY_THE_PAGE = 10


class Page:
    """One thread in the page. It goes on from the newest checkpoint, and reads ten of them after each turn."""

    def __init__(self, http: httpx.Client, thread_id: str) -> None:
        self.http, self.thread_id = http, thread_id
        self.history: list[dict[str, Any]] = []

    def say(self, *blocks: dict[str, Any]) -> None:
        message = {"id": str(uuid.uuid4()), "type": "human", "content": [*blocks]}
        self.submit({"messages": [message]}, self.history[0]["checkpoint"] if self.history else None)

    def edit(self, said: str, into: str) -> None:
        """Send another message, which has no id, from the checkpoint before the one with which it came."""
        self.submit({"messages": [{"type": "human", "content": into}]}, self.parent(said))

    def regenerate(self, answer: str) -> None:
        self.submit(None, self.parent(answer))

    def submit(self, sent: Any, checkpoint: dict[str, Any] | None) -> None:
        place = {"checkpoint_id": checkpoint["checkpoint_id"], "checkpoint_ns": ""} if checkpoint else None
        body = {**submitted(""), "input": sent, "stream_mode": ["values", "messages-tuple", "custom"]}
        body = {name: value for name, value in {**body, "checkpoint": place}.items() if value is not None}
        with self.http.stream("POST", f"/threads/{self.thread_id}/runs/stream", json=body) as response:
            assert not only(read(response), "error")
        read_all = self.http.post(f"/threads/{self.thread_id}/history", json={"limit": READ_BY_THE_PAGE})
        self.history = read_all.json()

    def parent(self, text: str) -> dict[str, Any]:
        """Return the parent of the oldest checkpoint that has a message, as far as the page has read."""
        identity = next(one["id"] for one in self.messages if text_of(one) == text)
        seen = [state for state in self.history if identity in [one["id"] for one in messages_of(state)]]
        return dict(seen[-1]["parent_checkpoint"])

    @property
    def messages(self) -> list[dict[str, Any]]:
        return messages_of(self.history[0])

    @property
    def said(self) -> list[str]:
        return [text_of(one) for one in self.messages]


def messages_of(state: dict[str, Any]) -> list[dict[str, Any]]:
    return list((state["values"] or {}).get("messages", []))


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def numbered() -> Respond:
    """Answers with a number and the question, so that no two answers are alike."""
    numbers = itertools.count(1)
    return lambda request: f"{next(numbers)}: {request.last}"


@pytest.fixture
def page(http: httpx.Client, thread_id: str, model: StubModel) -> Page:
    model.respond = Scripted(chat=numbered())
    page = Page(http, thread_id)
    for said in ("figs", "plums", "dates"):
        page.say(text(said))
    return page


def test_S1_the_newest_message_is_edited_in_its_place(page: Page) -> None:
    page.edit("dates", "kiwis")
    assert page.said == ["figs", "1: figs", "plums", "2: plums", "kiwis", "4: kiwis"]


def test_S1_the_message_before_is_edited_in_its_place_and_what_followed_is_gone(page: Page) -> None:
    page.edit("plums", "kiwis")
    assert page.said == ["figs", "1: figs", "kiwis", "4: kiwis"]


def test_S1_the_newest_answer_is_made_again(page: Page) -> None:
    page.regenerate("3: dates")
    assert page.said[-2:] == ["dates", "4: dates"]


def test_S1_the_answer_before_is_made_again_to_its_own_question(page: Page) -> None:
    page.regenerate("2: plums")
    assert page.said == ["figs", "1: figs", "plums", "4: plums"]


def test_S1_what_was_edited_is_edited_again(page: Page) -> None:
    page.edit("dates", "kiwis")
    page.edit("kiwis", "melons")
    page.regenerate("5: melons")
    assert page.said[-4:] == ["plums", "2: plums", "melons", "6: melons"]
