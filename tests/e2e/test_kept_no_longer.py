"""After 40 days: old threads and the journal are gone from every file, facts stay, and facts with an end do not.

Also what a `ttl` of `langgraph.json` does under `langgraph dev`: nothing.
"""

import json
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import NotFoundError

from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.e2e.speaking import speak_python
from tests.e2e.waiting import eventually
from tests.stories.serving import PROJECT
from tests.stub_model import StubModel

LATER = "tests.e2e.support.later:deployment"


def ask(server: DevServer, path: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.url}/memory{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)


def contents(server: DevServer) -> list[str]:
    return sorted(fact["content"] for fact in ask(server, "/facts")["facts"])


def holding(folder: Path, word: str) -> list[str]:
    """The files under a folder in which the word stands, but for the log."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "server.log"]
    assert any(path.suffix == ".sqlite" for path in files)
    found = []
    for path in files:
        with suppress(FileNotFoundError):  # a server that runs takes files away as it likes
            if word.encode() in path.read_bytes():
                found.append(path.name)
    return sorted(found)


def test_after_a_month_threads_and_journal_are_gone_and_what_was_learned_stays(
    tmp_path: Path, model: StubModel
) -> None:
    model.respond = Scripted(learns={"moved to Bergen": "User lives in Bergen."})
    variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "stub", "PALIMPSEST_DEBOUNCE_SECONDS": "0.5"}
    server = DevServer(tmp_path, environment=variables)
    with server:
        thread = speak_python(server, "I moved to Bergen, with my purple zeppelin.").thread_id
        ask(server, "/facts", {"content": "Is in Paris", "category": "context", "expires_at": "2100"})
        ask(server, "/facts", {"content": "Is in Rome", "category": "context", "expires_at": "2020"})
        assert eventually(lambda: "User lives in Bergen." in contents(server))
        assert eventually(lambda: ask(server, "/journal")["entries"])
    assert holding(tmp_path, "zeppelin")
    server.environment = {
        **variables,
        "PALIMPSEST_DEPLOYMENT": LATER,
        "PALIMPSEST_THREAD_DAYS": "30",
        "PALIMPSEST_JOURNAL_DAYS": "30",
    }
    with server, get_sync_client(url=server.url) as client:

        def is_gone() -> bool:
            try:
                client.threads.get(thread)
            except NotFoundError:
                return True
            return False

        assert eventually(is_gone)
        assert contents(server) == ["Is in Paris", "User lives in Bergen."]
        assert [fact["content"] for fact in ask(server, "/facts?status=ended")["facts"]] == ["Is in Rome"]
        assert eventually(lambda: not holding(tmp_path / "data", "zeppelin"))
    assert holding(tmp_path, "zeppelin") == []


def configured(settings: dict[str, Any], folder: Path, model: StubModel) -> DevServer:
    """Return a server with these settings in place of what `langgraph.json` says, which learns where somebody moved."""
    config = folder / "langgraph.json"
    config.write_text(json.dumps(settings))
    model.respond = Scripted(learns={"moved to Bergen": "User lives in Bergen."})
    variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "stub", "PALIMPSEST_DEBOUNCE_SECONDS": "0.5"}
    return DevServer(folder / "server", config=config, environment=variables)


def test_a_ttl_of_langgraph_json_takes_nothing_of_memory_away(tmp_path: Path, model: StubModel) -> None:
    """A second after which all of it is old, beside our checkpointer and store, and on a thread of its own."""
    settings = json.loads((PROJECT / "langgraph.json").read_text("utf-8"))
    ttl = {"default_ttl": 0.01, "sweep_interval_minutes": 1}
    settings["checkpointer"]["ttl"] = {"strategy": "delete", **ttl}
    settings["store"]["ttl"] = {"refresh_on_read": False, **ttl}
    server = configured(settings, tmp_path, model)
    with server, get_sync_client(url=server.url) as client:
        thread = speak_python(server, "I moved to Bergen.").thread_id
        own = client.threads.create(ttl={"strategy": "delete", "ttl": 0.01})["thread_id"]
        assert eventually(lambda: contents(server) == ["User lives in Bergen."])
        # A turn's line comes after its facts: it may not be there yet when they are.
        assert eventually(lambda: ask(server, "/journal")["total"]) == 1
    # What is too old is looked for at the start, too.
    with server, get_sync_client(url=server.url) as client:
        time.sleep(2 * 60 * ttl["default_ttl"])
        assert contents(server) == ["User lives in Bergen."]
        assert ask(server, "/journal")["total"] == 1
        assert {thread, own} <= {each["thread_id"] for each in client.threads.search(limit=10)}
        values: Any = client.threads.get_state(thread)["values"]
        assert len(values["messages"]) == 2
