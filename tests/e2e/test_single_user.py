"""The memory API of the shipped development server, where nobody logs in."""

from collections.abc import Iterator

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from memory.namespaces import Owner
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.e2e.speaking import say
from tests.e2e.waiting import eventually
from tests.stub_model import StubModel

BOBS = {"content": "Likes plums", "category": "preference", "confidence": 0.9}


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.2")


@pytest.fixture
def client(server: DevServer, model: StubModel) -> Iterator[SyncLangGraphClient]:
    model.respond = Scripted(learns={"figs": "Likes figs"})
    with get_sync_client(url=server.url) as client:
        yield client


@pytest.fixture
def memory(server: DevServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.url}/memory", timeout=60) as memory:
        yield memory


def contents(memory: httpx.Client) -> list[str]:
    return [fact["content"] for fact in memory.get("/facts").json()["facts"]]


def test_memory_and_threads_are_the_local_users(client: SyncLangGraphClient, memory: httpx.Client) -> None:
    thread_id = client.threads.create()["thread_id"]
    client.runs.wait(thread_id, "chat", input=say("I like figs."))
    client.store.put_item(Owner.of("bob").namespace("facts"), "by hand", BOBS)
    eventually(lambda: contents(memory) == ["Likes figs"])
    assert memory.get(f"/threads/{thread_id}/mode").json()["mode"] == "normal"

    assert memory.post("/erase/everything", json={"erase": "everything"}).json()["threads"] == 1

    assert contents(memory) == []
    assert client.threads.search(metadata={"graph_id": "chat"}, limit=100) == []
    bobs = client.store.search_items(Owner.of("bob").namespace("facts"))["items"]
    assert [item["value"] for item in bobs] == [BOBS]


def test_everything_is_erased_while_turns_run_and_end(client: SyncLangGraphClient, memory: httpx.Client) -> None:
    for number in range(12):
        client.runs.create(client.threads.create()["thread_id"], "chat", input=say(f"{number}: I like figs."))
    assert memory.post("/erase/everything", json={"erase": "everything"}).status_code == 200
    assert contents(memory) == []
    assert client.threads.search(metadata={"graph_id": "chat"}, limit=100) == []


def test_debug_routes_are_closed(server: DevServer, client: SyncLangGraphClient) -> None:
    thread_id = client.threads.create()["thread_id"]
    with httpx.Client(base_url=server.url, timeout=60) as asking:
        assert asking.get(f"/internal/debug/thread/{thread_id}").status_code == 404
        assert asking.post("/internal/truncate", json={"threads": True}).status_code == 404
        assert client.threads.get(thread_id)["thread_id"] == thread_id
        assert asking.get("/deploy").status_code == 200
