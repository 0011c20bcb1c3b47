"""What the server keeps: over a crash, a rollback, a copy and a deletion."""

import threading
from contextlib import closing, suppress
from itertools import pairwise
from sqlite3 import connect

import httpx
import pytest
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import NotFoundError

from tests.e2e.dev_server import DevServer
from tests.e2e.javascript import run_javascript
from tests.e2e.speaking import say
from tests.e2e.waiting import eventually
from tests.stub_model import ChatRequest, Reply, StubModel


def texts(client: SyncLangGraphClient, thread_id: str) -> list[str]:
    values = client.threads.get_state(thread_id)["values"]
    assert isinstance(values, dict)
    return [message["content"] for message in values["messages"]]


def rows(server: DevServer, thread_id: str) -> int:
    """How many rows of a thread are left in the server's checkpoint file."""
    with closing(connect(server.data / "checkpoints.sqlite")) as file:
        return sum(
            int(file.execute(f"SELECT COUNT(*) FROM {table} WHERE thread_id = ?", (thread_id,)).fetchone()[0])
            for table in ("checkpoints", "writes")
        )


def test_a_thread_outlives_kill_9(bare: SyncLangGraphClient, bare_server: DevServer) -> None:
    thread_id = bare.threads.create()["thread_id"]
    bare.runs.wait(thread_id, "chat", input=say("My name is Ada."))

    bare_server.kill9()
    bare_server.start()
    bare.threads.create(thread_id=thread_id, graph_id="chat", if_exists="do_nothing")

    assert texts(bare, thread_id) == ["My name is Ada.", "You said: My name is Ada."]


def test_store_items_outlive_kill_9(bare: SyncLangGraphClient, bare_server: DevServer) -> None:
    bare.store.put_item(["shelf", "ada"], "city", {"name": "Bergen"})

    bare_server.kill9()
    bare_server.start()

    assert bare.store.get_item(["shelf", "ada"], "city")["value"] == {"name": "Bergen"}
    assert ["shelf", "ada"] in bare.store.list_namespaces(prefix=["shelf"])["namespaces"]


def test_no_finished_turn_is_lost_in_a_crash(bare: SyncLangGraphClient, bare_server: DevServer, kills: int) -> None:
    thread_id = bare.threads.create()["thread_id"]
    finished: list[str] = []
    reached = threading.Event()

    def talk_until_the_crash(crash: int) -> None:
        # Not the SDK: where the crash cuts an answer off, it warns and asks the restarted server for the same run.
        with httpx.Client(base_url=bare_server.url, timeout=300) as client, suppress(httpx.TransportError):
            while True:
                text = f"turn {crash}.{len(finished)}"
                turn = {"assistant_id": "chat", "input": say(text)}
                client.post(f"/threads/{thread_id}/runs/wait", json=turn).raise_for_status()
                finished.append(text)
                if len(finished) % 3 == crash % 3:
                    reached.set()

    for crash in range(kills):
        reached.clear()
        talking = threading.Thread(target=talk_until_the_crash, args=(crash,))
        talking.start()
        assert reached.wait(180)
        bare_server.kill9()  # the next turn is under way
        talking.join()
        bare_server.start()
        bare.threads.create(thread_id=thread_id, graph_id="chat", if_exists="do_nothing")
        kept = texts(bare, thread_id)
        assert [text for text in kept if text in finished] == finished
        answers = dict(pairwise(kept))
        assert [answers[text] for text in finished] == [f"You said: {text}" for text in finished]


def test_rollback_takes_back_the_running_turn_and_only_that(bare: SyncLangGraphClient, model: StubModel) -> None:
    thread_id = bare.threads.create()["thread_id"]
    bare.runs.wait(thread_id, "chat", input=say("first"))
    gate = threading.Event()

    def respond(request: ChatRequest) -> Reply:
        return Reply(text="slow", gate=gate) if request.last == "second" else Reply(text=f"re: {request.last}")

    model.respond = respond
    bare.runs.create(thread_id, "chat", input=say("second"))
    model.wait_for(lambda request: request.last == "second")
    bare.runs.wait(thread_id, "chat", input=say("third"), multitask_strategy="rollback")
    gate.set()

    assert texts(bare, thread_id) == ["first", "You said: first", "third", "re: third"]
    other = bare.threads.create()["thread_id"]
    bare.runs.wait(other, "chat", input=say("still there?"))
    assert texts(bare, other) == ["still there?", "re: still there?"]


def test_a_copy_lives_on_its_own(bare: SyncLangGraphClient) -> None:
    original = bare.threads.create()["thread_id"]
    bare.runs.wait(original, "chat", input=say("one"))
    bare.runs.wait(original, "chat", input=say("two"))

    copy = bare.http.post(f"/threads/{original}/copy", json=None)["thread_id"]  # threads.copy() keeps the id to itself
    bare.runs.wait(copy, "chat", input=say("three"))
    bare.threads.delete(original)

    assert texts(bare, copy)[::2] == ["one", "two", "three"]
    assert len(bare.threads.get_history(copy, limit=100)) == 9


def test_a_deleted_thread_leaves_no_row(bare: SyncLangGraphClient, bare_server: DevServer) -> None:
    thread_id = bare.threads.create()["thread_id"]
    bare.runs.wait(thread_id, "chat", input=say("a secret"))
    assert rows(bare_server, thread_id) > 0

    bare.threads.delete(thread_id)

    eventually(lambda: rows(bare_server, thread_id) == 0)
    with pytest.raises(NotFoundError):
        bare.threads.get_state(thread_id)


def test_ten_runs_are_carried_out_at_once(bare: SyncLangGraphClient, model: StubModel) -> None:
    everyone_is_here = threading.Barrier(10, timeout=180)

    def respond(request: ChatRequest) -> Reply:
        everyone_is_here.wait()
        return Reply(text=f"re: {request.last}")

    model.respond = respond
    threads = [bare.threads.create()["thread_id"] for _ in range(10)]
    runs = [bare.runs.create(thread, "chat", input=say(f"from {thread}")) for thread in threads]
    for thread, run in zip(threads, runs, strict=True):
        bare.runs.join(thread, run["run_id"])

    assert [texts(bare, thread) for thread in threads] == [[f"from {t}", f"re: from {t}"] for t in threads]


def test_the_javascript_client_speaks_to_it(bare: SyncLangGraphClient, bare_server: DevServer) -> None:
    done = run_javascript("chat.mjs", url=bare_server.url, text="Hi from JS", streamMode=["values", "messages-tuple"])

    assert [message["content"] for message in done["messages"]] == ["Hi from JS", "You said: Hi from JS"]
    assert {"values", "messages"} <= {event["event"] for event in done["events"]}
    assert texts(bare, done["threadId"]) == ["Hi from JS", "You said: Hi from JS"]
