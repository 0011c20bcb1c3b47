"""Pending updates on a real server: killed, stopped, and triggered by delayed runs."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from memory.namespaces import Owner
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted, is_extraction
from tests.e2e.speaking import speak_python
from tests.e2e.waiting import eventually
from tests.limits import limits
from tests.stub_model import StubModel

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
