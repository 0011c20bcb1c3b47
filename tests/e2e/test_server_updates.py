"""Pending updates on a real server: killed, stopped, and triggered by delayed runs."""

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from graphs.persistence.sqlite_store import open_store
from memory.control import INITIAL_EPOCH
from memory.door import arun
from memory.journal.entry import JournalEntry
from memory.journal.journal import append
from memory.message import StoredMessage
from memory.namespaces import Owner
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted, is_extraction, is_roll_up
from tests.e2e.speaking import speak_python
from tests.e2e.waiting import eventually
from tests.limits import limits
from tests.stub_model import Reply, StubModel

FIGS = {"like figs": "User likes figs."}


@contextmanager
def serving(
    folder: Path, stub: StubModel, workers: int = 10, /, **variables: str
) -> Iterator[tuple[DevServer, SyncLangGraphClient]]:
    environment = {"OPENAI_BASE_URL": stub.url, "OPENAI_API_KEY": "stub", **variables}
    with (
        DevServer(folder, environment=environment, workers=workers) as server,
        get_sync_client(url=server.url) as client,
    ):
        yield server, client


def facts(client: SyncLangGraphClient) -> list[str]:
    found = client.store.search_items(Owner.of("local").namespace("facts"), limit=100)
    return [item["value"]["content"] for item in found["items"]]


def outbox(client: SyncLangGraphClient) -> list[dict[str, Any]]:
    found = client.store.search_items(Owner.of("local").namespace("outbox"), limit=100)
    return [item["value"] for item in found["items"]]


def test_behind_a_backlog_and_a_slow_memory_model_the_only_worker_answers_at_once_after_a_restart(
    tmp_path: Path, model: StubModel
) -> None:
    """Plain `langgraph dev` with one worker: what start-up and sweeps do must not stand before a chat."""
    gate = threading.Event()
    model.respond = Scripted(learns=FIGS, extraction_gate=gate)
    with serving(tmp_path, model, 1, **limits(sweep_seconds=1)) as (server, client):
        for _ in range(4):
            speak_python(server, "I like figs.", None, {})
        server.kill9()
        server.start()
        eventually(lambda: any(map(is_extraction, model.requests)))
        # The model reads the backlog and has not answered: chats come and go meanwhile.
        for _ in range(3):
            assert speak_python(server, "Hello there.", None, {}).answer == "Noted."
        assert facts(client) == []
        gate.set()
        eventually(lambda: facts(client))
    assert set(re.findall(r"Starting background run .* graph_id=(\w+)", re.sub(r"\x1b\[\d+m", "", server.log))) == {
        "chat"
    }


def test_behind_a_slow_roll_up_at_start_the_only_worker_answers_at_once(tmp_path: Path, model: StubModel) -> None:
    """Plain `langgraph dev` with one worker, and days of the journal that are over."""
    gate, learn = threading.Event(), Scripted()

    async def seed(file: Path) -> None:
        file.parent.mkdir(parents=True)
        async with open_store(file) as store:
            said = StoredMessage("m1", "user", "We talked about tents.", "2026-01-01T10:00:00+00:00")
            await arun(store, append(Owner.of("local"), [JournalEntry("2026-01-01", "T", (said,), INITIAL_EPOCH)]))

    asyncio.run(seed(tmp_path / "data" / "store.sqlite"))
    model.respond = lambda request: Reply(text="later", gate=gate) if is_roll_up(request) else learn(request)
    with serving(tmp_path, model, 1) as (server, _):
        eventually(lambda: any(map(is_roll_up, model.requests)))
        for _ in range(3):
            assert speak_python(server, "Hello there.", None, {}).answer == "Noted."
        assert not gate.is_set()  # the model has answered no roll-up all the time
        gate.set()


def test_what_is_said_in_a_quiet_time_is_learned_together(tmp_path: Path, model: StubModel) -> None:
    model.respond = Scripted(learns=FIGS)
    # The second turn must come before the first one's update, on a slow machine, too.
    variables = {"PALIMPSEST_DEBOUNCE_SECONDS": "15"}
    with serving(tmp_path, model, **variables) as (server, client):
        thread, _ = speak_python(server, "I like figs.", None, {})
        speak_python(server, "Do you?", thread, {})
        eventually(lambda: facts(client))
        assert facts(client) == ["User likes figs."]
        assert len([request for request in model.requests if is_extraction(request)]) == 1
        eventually(lambda: not outbox(client))
