"""A thread is deleted through the SDK while the model answers: nothing of the turn is learned or stays on disk."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.dev_server import DevServer
from tests.e2e.guarded_server import api, guarded_server, sdk
from tests.e2e.scripted import Scripted
from tests.e2e.speaking import say
from tests.e2e.waiting import eventually
from tests.stub_model import ChatRequest, Reply, StubModel


@pytest.fixture
def server(tmp_path: Path, stub: StubModel) -> Iterator[DevServer]:
    with guarded_server(tmp_path, stub.url, PALIMPSEST_DEBOUNCE_SECONDS="0.2") as server:
        yield server


def rows_of(folder: Path, thread_id: str) -> list[int]:
    (path,) = folder.rglob("checkpoints.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        queries = (f"SELECT COUNT(*) FROM {table} WHERE thread_id = ?" for table in ("checkpoints", "writes"))
        return [connection.execute(query, (thread_id,)).fetchone()[0] for query in queries]


def test_nothing_of_a_turn_stays_whose_thread_was_deleted_while_it_was_answered(
    server: DevServer, stub: StubModel
) -> None:
    gate, asked = threading.Event(), threading.Event()

    def answer(_: ChatRequest) -> Reply:
        asked.set()
        return Reply(text="Noted.", gate=gate)

    stub.respond = Scripted(learns={"numbat": "Keeps a numbat"}, chat=answer)
    with sdk(server, "ada") as client, api(server, "ada") as memory:
        thread_id = str(client.threads.create()["thread_id"])
        client.runs.create(thread_id, "chat", input=say("I keep a numbat."))
        assert asked.wait(120)
        client.threads.delete(thread_id)
        gate.set()
        kept = str(client.threads.create()["thread_id"])
        client.runs.wait(kept, "chat", input=say("Hello."))
        eventually(lambda: memory.get("/overview").json()["pending"] == 0)
        assert rows_of(server.folder, thread_id) == [0, 0]
        assert rows_of(server.folder, kept)[0] > 0
        assert memory.get("/facts").json()["facts"] == []
