"""After a quick `kill -9` threads are there as they were; and what becomes of requests while the files are not."""

from collections.abc import Iterator
from functools import partial
from threading import Event
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.guarded_server import guarded_server, sdk
from tests.e2e.speaking import say
from tests.e2e.waiting import eventually
from tests.stub_model import Reply, StubModel, echo

SAID = ["My name is Ada.", "You said: My name is Ada."]


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="120")


def said(client: SyncLangGraphClient, thread_id: str) -> list[str]:
    state: Any = client.threads.get_state(thread_id)
    return [message["content"] for message in state["values"]["messages"]]


def listed(client: SyncLangGraphClient) -> list[Any]:
    """The rows of threads that hold what was said."""
    return [row for row in client.threads.search(limit=1000) if row["values"]]


def test_threads_that_were_just_begun_are_listed_again_and_what_was_deleted_is_not(
    server: DevServer, model: StubModel
) -> None:
    gate = Event()
    model.respond = lambda request: Reply(text="Late.", gate=gate) if "stateless" in request.text else echo(request)
    try:
        with get_sync_client(url=server.url) as client:
            kept = client.threads.create(metadata={"memory_mode": "read_only"})["thread_id"]
            deleted = client.threads.create()["thread_id"]
            for thread_id in (kept, deleted):
                client.runs.wait(thread_id, "chat", input=say("My name is Ada."))
            before: Any = client.threads.get_state(kept)
            client.threads.delete(deleted)
            client.runs.create(None, "chat", input=say("Something stateless."))
            model.wait_for(lambda request: "stateless" in request.text)
            server.kill9()
    finally:
        gate.set()
    server.start()
    with get_sync_client(url=server.url) as client:
        (row,) = eventually(partial(listed, client))
        assert (row["thread_id"], [each["content"] for each in row["values"]["messages"]]) == (kept, SAID)
        assert (row["status"], row["metadata"]["graph_id"]) == ("idle", "chat")
        assert row["metadata"]["memory_mode"] == "read_only"
        # A copy would have none of what its tasks wrote, such as what they ask a person.
        assert client.threads.get_state(kept) == before
        state: Any = client.runs.wait(kept, "chat", input=say("Thanks."))
        assert [message["content"] for message in state["messages"]] == [*SAID, "Thanks.", "You said: Thanks."]


def test_a_thread_whose_row_was_saved_before_its_first_run_is_there_as_it_was(
    server: DevServer, model: StubModel
) -> None:
    with get_sync_client(url=server.url) as client:
        thread_id = client.threads.create(metadata={"title": "Who I am"})["thread_id"]
        # Its row was saved just before then. Run and crash come before rows are saved again, ten seconds later.
        eventually(lambda: b"Who I am" in b"".join(server.stored().values()))
        client.runs.wait(thread_id, "chat", input=say("My name is Ada."))
    server.kill9()
    server.start()
    with get_sync_client(url=server.url) as client:
        assert said(client, thread_id) == SAID
        row: Any = client.threads.get(thread_id)
        assert [each["content"] for each in row["values"]["messages"]] == SAID
        assert (row["metadata"]["graph_id"], row["metadata"]["title"]) == ("chat", "Who I am")


def test_while_the_data_folder_is_away_the_answer_is_503_and_the_log_says_why(
    server: DevServer, model: StubModel
) -> None:
    away = server.data.with_name("away")
    before = len(server.log)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        thread_id = client.post("/threads", json={}).json()["thread_id"]
        run = {"assistant_id": "chat", "input": say("Hello.")}
        server.data.rename(away)
        for method, path, body in (
            ("POST", f"/threads/{thread_id}/runs/wait", run),
            ("POST", "/runs/wait", run),
            ("GET", f"/threads/{thread_id}/state", None),
            ("GET", "/memory/facts", None),
            ("POST", "/memory/facts", {"content": "Likes figs", "category": "preference"}),
        ):
            answer = client.request(method, path, json=body)
            assert (answer.status_code, "put it back" in answer.text) == (503, True), path
        assert not server.data.exists()
        away.rename(server.data)
        assert client.post(f"/threads/{thread_id}/runs/wait", json=run).status_code == 200
        assert model.requests
    log = server.log[before:]
    assert "Traceback" not in log
    assert "put it back, or restart" in log


@pytest.fixture
def guarded(tmp_path_factory: pytest.TempPathFactory, stub: StubModel) -> Iterator[DevServer]:
    with guarded_server(tmp_path_factory.mktemp("guarded"), stub.url) as server:
        yield server


def test_where_people_log_in_each_has_the_own_threads_again_and_nobody_anothers(
    guarded: DevServer, model: StubModel
) -> None:
    begun: dict[str, str] = {}
    for user in ("ada", "bob"):
        with sdk(guarded, user) as client:
            begun[user] = client.threads.create()["thread_id"]
            client.runs.wait(begun[user], "chat", input=say("My name is Ada."), metadata={"owner": "eve"})
    guarded.kill9()
    guarded.start()
    for user, thread_id in begun.items():
        with sdk(guarded, user) as client:
            (row,) = eventually(partial(listed, client))
            assert (row["thread_id"], row["metadata"]["owner"]) == (thread_id, user)
            assert said(client, thread_id) == SAID
    with sdk(guarded, "eve") as client:
        assert client.threads.search() == []
