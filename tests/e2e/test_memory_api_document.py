"""The memory API holds what its OpenAPI document promises, whatever is sent: requests made up by schemathesis."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.dev_server import DevServer
from tests.e2e.guarded_server import api, guarded_server
from tests.stories.people import token_of
from tests.stub_model import StubModel

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
EXAMPLES = 20
PROGRAM = Path(sys.executable).with_name("schemathesis")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, stub: StubModel) -> Iterator[DevServer]:
    folder = tmp_path_factory.mktemp("document")
    with guarded_server(folder, stub.url) as server:
        yield server


@pytest.mark.timeout(900)
def test_made_up_requests_are_answered_as_documented(server: DevServer, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(str(PROGRAM), "run", f"{server.url}/memory/openapi.json", "--url", server.url),
            *("--header", f"Authorization: Bearer {token_of('fuzz')}"),
            *("--exclude-path", "/memory/import"),  # it makes up no lines of JSON
            *("--checks", CHECKS, "--max-examples", str(EXAMPLES), "--request-timeout", "120", "--no-color"),
            # Made up by chance, but the same each time; schemathesis' other phases would take minutes.
            *("--phases", "fuzzing", "--generation-deterministic"),
            *("--suppress-health-check", "all"),  # how long it takes to make one up is no fault of the API
        ],
        cwd=tmp_path,
        # On a CI machine (it names itself in the environment) hypothesis would load a profile that takes back what
        # was said of health checks.
        env={"HOME": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        timeout=840,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert "Traceback" not in server.log


def test_the_document_is_part_of_the_servers_own(server: DevServer) -> None:
    with api(server, "ada") as memory:
        ours = memory.get("/openapi.json").json()
        servers = memory.get(f"{server.url}/openapi.json").json()
    assert {path: servers["paths"][path] for path in ours["paths"]} == ours["paths"]
    assert ours["components"]["schemas"].items() <= servers["components"]["schemas"].items()
    assert servers["info"]["title"] != ours["info"]["title"]
    assert servers["security"] == [{"bearer": []}]  # of langgraph.prod.json: nobody is let in without a login
