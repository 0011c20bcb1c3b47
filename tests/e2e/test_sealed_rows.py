"""A server that seals its own rows (`encryption.path` of `langgraph.json`) remembers as one that does not."""

import json
from pathlib import Path
from typing import Any

from langgraph_sdk import get_sync_client

from tests.e2e.scripted import is_chat
from tests.e2e.speaking import speak_python
from tests.e2e.test_kept_no_longer import ask, configured, contents, holding
from tests.e2e.waiting import eventually
from tests.stories.serving import PROJECT
from tests.stub_model import StubModel

SEALING = PROJECT / "tests/e2e/support/sealing.py"


def test_memory_works_beside_an_encryption_of_the_server_s_own_rows(tmp_path: Path, model: StubModel) -> None:
    settings = json.loads((PROJECT / "langgraph.json").read_text("utf-8"))
    settings["encryption"] = {"path": f"{SEALING}:encryption"}
    server = configured(settings, tmp_path, model)
    with server, get_sync_client(url=server.url) as client:
        thread = speak_python(server, "I moved to Bergen, with my purple zeppelin.").thread_id
        assert eventually(lambda: contents(server) == ["User lives in Bergen."])
        assert eventually(lambda: ask(server, "/journal")["total"]) == 1  # it comes after the facts
    with server, get_sync_client(url=server.url) as client:
        values: Any = client.threads.get_state(thread)["values"]
        assert [message["type"] for message in values["messages"]] == ["human", "ai"]
        assert speak_python(server, "Where do I live?").thread_id != thread
        (*_, asked) = filter(is_chat, model.requests)  # an update of the same words may have come behind it
        assert "User lives in Bergen." in json.dumps(asked.body)
        assert ask(server, "/journal")["total"] >= 1
    # Under `langgraph dev` it hides no word: docs/run/operations.md says so, and why a key is refused there.
    assert holding(tmp_path, "zeppelin") == [".langgraph_ops.pckl", "checkpoints.sqlite", "store.sqlite"]
