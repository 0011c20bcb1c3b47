"""What a person meets who starts `palimpsest dev`: one banner, an address that the folder knows, and plain words."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.e2e.dev_server import DevServer
from tests.e2e.waiting import eventually
from tests.stories.serving import PROJECT
from tests.stub_model import Reply, StubModel, always

COMMAND = (sys.executable, "-m", "palimpsest")
ASKED = {"assistant_id": "chat", "input": {"messages": [{"role": "user", "content": "Hello."}]}}


def facts(server: DevServer, folder: Path) -> subprocess.CompletedProcess[str]:
    """List facts in a folder, with no word of where the server is."""
    environment = {"PATH": "", "PYTHONPATH": str(PROJECT), "PALIMPSEST_DATA_DIR": str(folder)}
    return subprocess.run(
        [*COMMAND, "facts", "list"],
        cwd=server.folder, env=environment, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


@pytest.fixture
def server(tmp_path: Path, model: StubModel) -> DevServer:
    variables = {"OPENAI_API_KEY": "stub", "OPENAI_BASE_URL": model.url}
    return DevServer(tmp_path / "one", environment=variables, starter=(*COMMAND, "dev"))


def test_a_refused_key_is_one_line_of_the_log(server: DevServer, model: StubModel) -> None:
    model.respond = always(Reply(text="Incorrect API key provided.", status=401))
    with server:
        eventually(lambda: "Ctrl-C" in server.log)
        before = len(server.log)
        answer = httpx.post(f"{server.url}/runs/wait", json=ASKED, timeout=240.0).json()
        assert "was refused: set that provider's key" in answer["__error__"]["message"]
        eventually(lambda: "Background run failed" in server.log)
        said = server.log[before:]
    assert len([line for line in said.splitlines() if "was refused" in line]) == 1
    assert "Traceback" not in said


def test_a_folder_knows_its_own_server_and_no_other(server: DevServer, tmp_path: Path) -> None:
    left = server.data / "server.json"
    with server:
        assert facts(server, server.data).returncode == 0
        assert json.loads(left.read_text())["url"] == server.url
        lost = facts(server, tmp_path / "two")
        assert (lost.returncode, lost.stdout) == (1, "")
        assert (
            "no server of this folder runs: start one with `palimpsest dev`, or name another with --url" in lost.stderr
        )
    assert not left.exists()

    server.start()
    server.kill9()
    assert left.exists()
    eventually(lambda: "no server of this folder runs" in facts(server, server.data).stderr)
    server.start()  # at the same place
    assert facts(server, server.data).returncode == 0
    server.stop()
