"""The shipped development server, where nobody logs in, on every interface: who is answered, on which routes."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.dev_server import DevServer
from tests.e2e.waiting import eventually
from tests.stub_model import StubModel

REBOUND = {"Host": "rebound.example:2024"}
TUNNEL = {"Host": "random-words.trycloudflare.com", "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
REWRITING_TUNNEL = {"Host": "localhost:2024", "X-Forwarded-Host": "random-words.ngrok.app"}
FORWARDED = {"Host": "localhost:2024", "X-Forwarded-For": "203.0.113.9"}
SITE = {"Origin": "https://evil.example"}

# Asks on the address by which this machine reaches others, as a process of its own: this ring's sockets are confined to
# loopback. A datagram socket that is connected has an address, and has sent nothing.
ASK_ON_OUTER_ADDRESS = """
import http.client, socket, sys
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    probe.connect(("192.0.2.1", 9))
except OSError:
    sys.exit()
connection = http.client.HTTPConnection(probe.getsockname()[0], int(sys.argv[1]), timeout=60)
connection.request("GET", "/info", headers={"Host": "localhost"})
print(connection.host, connection.getresponse().status)
"""


def serving(folder: Path, model_url: str, **environment: str) -> DevServer:
    variables = {"OPENAI_BASE_URL": model_url, "OPENAI_API_KEY": "stub", **environment}
    return DevServer(folder, environment=variables, host="0.0.0.0")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, stub: StubModel) -> Iterator[DevServer]:
    with serving(tmp_path_factory.mktemp("everywhere"), stub.url) as server:
        yield server


def routes(server: DevServer) -> list[tuple[str, str]]:
    """Every method and path, documented by the server or not."""
    paths = httpx.get(f"{server.url}/openapi.json", timeout=60).json()["paths"]
    paths |= httpx.get(f"{server.url}/memory/openapi.json", timeout=60).json()["paths"]
    methods = {"get", "post", "put", "patch", "delete"}
    listed = [(method.upper(), path) for path, each in paths.items() for method in methods & set(each)]
    unlisted = [
        "/",
        "/ok",
        "/info",
        "/metrics",
        "/docs",
        "/openapi.json",
        "/memory/openapi.json",
        "/ui/chat",
        "/deploy",
    ]
    return [*listed, *(("GET", path) for path in unlisted), ("OPTIONS", "/threads"), ("POST", "/mcp")]


def handshake(server: DevServer, **headers: str) -> int:
    """The status that a websocket's handshake on the threads' protocol is answered with."""
    lines = {"Host": "localhost", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    lines |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} | headers
    path = "/threads/5f7e2b1c-0000-4000-8000-000000000000/stream/events"
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
        return int(connection.recv(64).split()[1])


@pytest.mark.parametrize("headers", [REBOUND, TUNNEL, REWRITING_TUNNEL, FORWARDED, SITE])
def test_no_route_answers_another_name_machine_or_site(server: DevServer, headers: dict[str, str]) -> None:
    seen = routes(server)
    assert len(seen) > 70
    with httpx.Client(base_url=server.url, headers=headers, timeout=60) as client:
        for method, path in seen:
            answer = client.request(method, path, json=None if method == "GET" else {})
            assert answer.status_code == 403, (method, path, answer.text[:200])
    assert handshake(server, **headers) == 403


def test_another_machine_cannot_pretend_to_ask_from_here(server: DevServer) -> None:
    """The request comes in on an outer interface, as one from the same network would."""
    asked = [sys.executable, "-c", ASK_ON_OUTER_ADDRESS, str(server.port)]
    answer = subprocess.run(asked, capture_output=True, encoding="utf-8", timeout=120, check=True).stdout.split()
    if not answer:
        pytest.skip("this machine has no address but loopback")
    assert answer[1] == "403"
    eventually(lambda: f"not {answer[0]}" in server.log)  # the log may be written behind the answer


@pytest.mark.parametrize(
    "headers",
    [
        {}, {"Host": "localhost:2024"}, {"Host": "[::1]:2024"}, {"Host": "0.0.0.0:2024"},
        {"Origin": "http://localhost:3000"}, {"Origin": "https://smith.langchain.com"},
        {"Origin": "https://eu.smith.langchain.com"},
    ],
)  # fmt: skip
def test_this_machines_pages_and_studio_are_answered(server: DevServer, headers: dict[str, str]) -> None:
    with httpx.Client(base_url=server.url, headers=headers, timeout=60) as client:
        for path in ("/info", "/docs", "/memory/overview"):
            assert client.get(path).status_code == 200
        assert client.post("/threads/search", json={}).status_code == 200
        preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        if "Origin" in headers:
            assert client.options("/threads/search", headers=preflight).status_code == 200
    assert handshake(server, **headers) != 403


def test_the_servers_own_mcp_and_a2a_are_off(server: DevServer) -> None:
    """Both run the background graph and print its raw state."""
    accept = {"Accept": "application/json, text/event-stream"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    for path in ("/mcp", "/mcp/", "/a2a/memory", "/a2a/chat"):
        assert httpx.post(f"{server.url}{path}", json=call, headers=accept, timeout=60).status_code == 404


def test_the_switch_opens_it_and_the_log_says_so(tmp_path: Path, model: StubModel) -> None:
    with serving(tmp_path, model.url, PALIMPSEST_OPEN_TO_NETWORK="true") as server:
        for headers in (REBOUND, TUNNEL, REWRITING_TUNNEL, FORWARDED):
            for path in ("/info", "/memory/overview"):
                assert httpx.get(f"{server.url}{path}", headers=headers, timeout=60).status_code == 200
            assert handshake(server, **headers) != 403
        assert httpx.get(f"{server.url}/info", headers={**TUNNEL, **SITE}, timeout=60).status_code == 403
        assert "warning" in server.log
        assert "PALIMPSEST_OPEN_TO_NETWORK" in server.log
