"""On a running server: erased words are in no file, thread or cron, also where a crash took the rows of threads."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.e2e.dev_server import DevServer
from tests.e2e.guarded_server import api, guarded_server, sdk
from tests.e2e.scripted import Scripted
from tests.e2e.speaking import say
from tests.e2e.waiting import eventually
from tests.stub_model import ChatRequest, Reply, StubModel

QUICK = {"PALIMPSEST_DEBOUNCE_SECONDS": "0.2"}


def answer(request: ChatRequest) -> Reply | str:
    return "Noted." if "walrus" in request.text else "An axolotl, how nice!"


def holding(server: DevServer, word: str) -> list[str]:
    """Names of the server's files that hold a word."""
    return sorted(name for name, kept in server.stored().items() if word.encode() in kept)


def knows(memory: httpx.Client, *contents: str) -> None:
    eventually(
        lambda: (
            memory.get("/overview").json()["pending"] == 0
            and [fact["content"] for fact in memory.get("/facts").json()["facts"]] == list(contents)
        )
    )


def talk(client: SyncLangGraphClient, text: str) -> str:
    thread_id = str(client.threads.create()["thread_id"])
    client.runs.wait(thread_id, "chat", input=say(text))
    return thread_id


@pytest.fixture
def guarded(tmp_path: Path, stub: StubModel) -> Iterator[DevServer]:
    stub.respond = Scripted(learns={"axolotl": "Keeps an axolotl"}, chat=answer)
    with guarded_server(tmp_path, stub.url, **QUICK) as server:
        yield server


def talk_and_lose_the_row(server: DevServer, client: SyncLangGraphClient, text: str) -> str:
    """Talk, and leave what a kill leaves where checkpoints outlive the row of their thread; return the thread.

    `langgraph dev` writes its rows every ten seconds, and a busy machine takes longer for a turn. So its files are put
    back to what they were before the turn. Servers over a database delete a row before its checkpoints.
    """
    if server.cluster:
        thread_id = talk(client, text)
        server.cluster.lose_row(server.folder, thread_id)
        assert client.threads.search(ids=[thread_id]) == []
        return thread_id
    rows = server.folder / ".langgraph_api"
    before = {path: path.read_bytes() for path in rows.glob("*.pckl")}
    thread_id = talk(client, text)
    server.kill9()
    for path in rows.glob("*"):
        path.unlink()
    for path, content in before.items():
        path.write_bytes(content)
    server.start()  # and lists a thread that was just begun again, sooner or later
    return thread_id


def test_everything_erased_after_a_crash_is_in_no_file_and_a_neighbour_keeps_all(guarded: DevServer) -> None:
    with sdk(guarded, "ada") as client, api(guarded, "ada") as memory, sdk(guarded, "bob") as bob:
        kept = talk_and_lose_the_row(guarded, bob, "I am Bob and I like walrus songs.")
        talk_and_lose_the_row(guarded, client, "I keep an axolotl.")
        assert "checkpoints.sqlite" in {name.removesuffix("-wal") for name in holding(guarded, "axolotl")}
        erased = memory.post("/erase/everything", json={"erase": "everything"}).json()
        assert (erased["still_in_threads"], erased["note"]) == ([], "")
        assert erased["threads"] >= 1
        assert client.threads.search() == []
        eventually(lambda: holding(guarded, "axolotl") == [])
        bob.threads.create(thread_id=kept, graph_id="chat", if_exists="do_nothing")
        assert "walrus" in str(bob.threads.get_state(kept)["values"])


def test_a_thread_whose_row_a_crash_took_is_named_and_erased(guarded: DevServer) -> None:
    with sdk(guarded, "ada") as client, api(guarded, "ada") as memory, api(guarded, "bob") as bob:
        thread_id = talk_and_lose_the_row(guarded, client, "I keep an axolotl.")
        knows(memory, "Keeps an axolotl")
        other = talk(client, "The axolotl is ill.")
        talk(client, "Good day.")  # the model's reply has the word
        quiet = str(client.threads.create()["thread_id"])
        knows(memory, "Keeps an axolotl")
        (fact,) = memory.get("/facts").json()["facts"]
        answer = memory.post("/erase/fact", json={"fact_id": fact["id"]}).json()
        assert {thread_id, other} <= set(answer["still_in_threads"])
        assert len(answer["still_in_threads"]) == 3
        assert quiet not in answer["still_in_threads"]
        eventually(lambda: [name for name in holding(guarded, "axolotl") if name.startswith("store")] == [])
        assert bob.post("/erase/thread", json={"thread_id": thread_id}).status_code == 404
        for each in answer["still_in_threads"]:
            assert memory.post("/erase/thread", json={"thread_id": each}).status_code == 200
        eventually(lambda: holding(guarded, "axolotl") == [])


def test_crons_are_named_by_the_erase_of_a_fact_and_go_with_everything(guarded: DevServer) -> None:
    with sdk(guarded, "ada") as client, sdk(guarded, "bob") as bob, api(guarded, "ada") as memory:
        talk(client, "I keep an axolotl.")
        knows(memory, "Keeps an axolotl")
        yearly, secondly = "0 0 1 1 *", "* * * * * *"
        cron: Any = client.crons.create("chat", schedule=yearly, input=say("Feed the axolotl."))
        client.crons.create("chat", schedule=secondly, input=say("Feed the cat."))
        bobs: Any = bob.crons.create("chat", schedule=yearly, input=say("Greet Bob."))
        (fact,) = memory.get("/facts").json()["facts"]
        answer = memory.post("/erase/fact", json={"fact_id": fact["id"]}).json()
        assert answer["still_in_crons"] == [cron["cron_id"]]
        erased = memory.post("/erase/everything", json={"erase": "everything"}).json()
        assert (erased["crons"], erased["still_in_threads"]) == (2, [])
        assert client.crons.search() == []
        assert [each["cron_id"] for each in bob.crons.search()] == [bobs["cron_id"]]
        eventually(lambda: holding(guarded, "axolotl") == [])


def test_where_nobody_logs_in_everything_is_erased_after_a_crash_too(tmp_path: Path, stub: StubModel) -> None:
    stub.respond = Scripted(learns={"axolotl": "Keeps an axolotl"})
    environment = {"OPENAI_BASE_URL": stub.url, "OPENAI_API_KEY": "stub", **QUICK}
    with DevServer(tmp_path, environment=environment) as server, get_sync_client(url=server.url) as client:
        talk_and_lose_the_row(server, client, "I keep an axolotl.")
        client.crons.create("chat", schedule="0 0 1 1 *", input=say("Feed the axolotl."))
        with httpx.Client(base_url=f"{server.url}/memory", timeout=60) as memory:
            erased = memory.post("/erase/everything", json={"erase": "everything"}).json()
        assert (erased["crons"], erased["still_in_threads"]) == (1, [])
        eventually(lambda: holding(server, "axolotl") == [])
