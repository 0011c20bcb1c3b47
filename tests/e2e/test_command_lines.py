"""The commands that a user types, also with the flag that changes when modules are imported: memory is on."""

import sys
from pathlib import Path

import httpx
import pytest

from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.e2e.speaking import speak_python
from tests.e2e.waiting import eventually
from tests.stories.serving import PROJECT
from tests.stub_model import StubModel

LANGGRAPH = ("langgraph_cli", "dev", "--no-browser")
PALIMPSEST = ("palimpsest", "dev")
COMMANDS = {
    "langgraph dev": LANGGRAPH,
    "langgraph dev --no-reload": (*LANGGRAPH, "--no-reload"),
    "palimpsest dev, one worker": (*PALIMPSEST, "--n-jobs-per-worker", "1"),
}


def started_by(command: tuple[str, ...], folder: Path, model: StubModel, **environment: str) -> DevServer:
    variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "stub", "PALIMPSEST_DEBOUNCE_SECONDS": "0.2"}
    config = PROJECT / "langgraph.json"
    return DevServer(
        folder, config=config, environment={**variables, **environment}, starter=(sys.executable, "-m", *command)
    )


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_first_turn_is_remembered(command: tuple[str, ...], tmp_path: Path, model: StubModel) -> None:
    model.respond = Scripted(learns={"figs": "Likes figs"})
    with started_by(command, tmp_path, model) as server:
        speak_python(server, "I like figs.")
        with httpx.Client(base_url=f"{server.url}/memory", timeout=60) as memory:
            eventually(lambda: [fact["content"] for fact in memory.get("/facts").json()["facts"]] == ["Likes figs"])
            assert memory.get("/overview").json()["without_memory"] is None
    assert "without memory" not in server.log


def test_an_empty_folder_is_enough(tmp_path: Path, model: StubModel) -> None:
    """Whoever installed the package has no `langgraph.json`: the package brings one."""
    server = started_by(PALIMPSEST, tmp_path, model)
    server.config = None
    with server:
        speak_python(server, "I like figs.")
        with httpx.Client(base_url=server.url, timeout=60) as http:
            assert http.get("/memory/overview").json()["without_memory"] is None
            assert "<title>" in http.get("/memory/", headers={"Accept": "text/html"}, follow_redirects=True).text
    assert not (tmp_path / "langgraph.json").exists()


def test_what_the_configuration_sets_counts_whatever_the_flags(tmp_path: Path, model: StubModel) -> None:
    """`langgraph.prod.json` switches single-user mode off in its `env`, which the server reads after the imports."""
    config = tmp_path / "langgraph.json"
    text = (PROJECT / "langgraph.json").read_text("utf-8")
    config.write_text(text.replace('"env": ".env"', '"env": {"PALIMPSEST_SINGLE_USER": "false"}'))
    server = started_by(PALIMPSEST, tmp_path, model)
    server.config = config
    with server:
        for _ in range(2):
            speak_python(server, "I like figs.")
        overview = httpx.get(f"{server.url}/memory/overview", timeout=60)
    assert overview.status_code == 401
    assert "turns of nobody go on without it" in overview.text
    assert "PALIMPSEST_SINGLE_USER=true" in overview.text
    assert server.log.count("turns go on without memory (no_identity)") == 1


def test_a_machine_with_much_against_it_is_no_other_machine(tmp_path: Path, model: StubModel) -> None:
    """Packages of our names in the folder, PowerShell's `.env`, proxies with nobody behind, and Python's switches."""
    for room in ("memory", "graphs"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").touch()
    (tmp_path / ".env").write_bytes("PALIMPSEST_DATA_DIR=kept\r\n".encode("utf-16"))
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy"), "http://127.0.0.1:9") | {"no_proxy": "example.org"}
    switches = {"PYTHONOPTIMIZE": "2", "PYTHONWARNINGS": "error", "PYTHONUTF8": "0", "LC_ALL": "C", "LANG": "C"}
    model.respond = Scripted(learns={"figs": "Likes figs"})
    server = started_by(PALIMPSEST, tmp_path, model, **proxies, **switches, ALL_PROXY="socks5://127.0.0.1:9")
    # The first one finds the command whatever the folder holds, as an installed `palimpsest` does.
    server.config, server.starter = None, (sys.executable, "-P", *server.starter[1:])
    with server, httpx.Client(base_url=server.url, timeout=60, trust_env=False) as http:
        assistant = {"assistant_id": "chat", "input": {"messages": [{"role": "user", "content": "I like figs."}]}}
        answered = http.post("/runs/wait", json=assistant).json()
        assert answered["messages"][-1]["content"] == "Noted."
        eventually(lambda: [fact["content"] for fact in http.get("/memory/facts").json()["facts"]] == ["Likes figs"])
        assert (tmp_path / "kept" / "store.sqlite").exists()
        # As it ends, uvloop warns of a connection that is still open, and these switches make an error of it.
        assert "Traceback" not in server.log
    assert "durability" not in server.log
