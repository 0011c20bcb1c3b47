"""A turn that ended before it was written down, then `kill -9`: the next start finds it in the checkpoint."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from memory.namespaces import Owner
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted, is_extraction
from tests.e2e.speaking import speak_python
from tests.e2e.waiting import eventually
from tests.limits import limits
from tests.stories.serving import PROJECT
from tests.stub_model import StubModel

SHIPPED: dict[str, Any] = json.loads((PROJECT / "langgraph.json").read_text())


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep everybody else from writing to a SQLite file, as a backup or a hanging disk does."""
    with closing(sqlite3.connect(file, timeout=60)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


def items(client: SyncLangGraphClient, kind: Any) -> list[dict[str, Any]]:
    found = client.store.search_items(Owner.of("local").namespace(kind), limit=100)
    return [item["value"] for item in found["items"]]


def facts(client: SyncLangGraphClient) -> list[str]:
    return [item["content"] for item in items(client, "facts")]


def is_saved(folder: Path) -> bool:
    """Say whether the development server has written the thread's row; it does so every ten seconds."""
    return any(b"has_unwritten" in file.read_bytes() for file in folder.rglob("*.pckl"))


@pytest.mark.parametrize("saver", ["ours", "the server's own"])
def test_killed_before_a_turn_is_written_down_the_next_start_writes_it_down_once(
    saver: str, tmp_path: Path, model: StubModel
) -> None:
    model.respond = Scripted(learns={"like figs": "User likes figs."})
    served = SHIPPED if saver == "ours" else {name: value for name, value in SHIPPED.items() if name != "checkpointer"}
    config = tmp_path / "langgraph.json"
    config.write_text(json.dumps({**served, "dependencies": [str(PROJECT)]}))
    variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "stub", **limits(write_timeout_seconds=5)}
    with (
        DevServer(tmp_path, config=config, environment=variables) as server,
        get_sync_client(url=server.url) as client,
    ):
        speak_python(server, "Hello.", None, {})
        with locked(server.data / "store.sqlite"):
            thread, _ = speak_python(server, "I like figs.", None, {})
            state: Any = client.threads.get_state(thread)
            assert state["values"]["memory"]["receipt"]["not_written"] == "too_late"
            assert "figs" not in json.dumps(state["values"]["memory"])
            if saver != "ours":
                eventually(lambda: is_saved(tmp_path))
            server.kill9()
        server.start()
        eventually(lambda: facts(client))
        assert facts(client) == ["User likes figs."]
        eventually(lambda: not items(client, "outbox"))
        model.clear()
        server.kill9()
        server.environment = {**variables, "PALIMPSEST_DEBOUNCE_SECONDS": "0.5"}
        server.start()  # the newest state still names the turn
        speak_python(server, "Thanks.", thread, {})
        eventually(lambda: any(map(is_extraction, model.requests)) and not items(client, "outbox"))
        assert facts(client) == ["User likes figs."]
        state = client.threads.get_state(thread)
        assert "unwritten" not in state["values"]["memory"]
