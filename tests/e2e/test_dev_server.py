"""The harness itself: it says why a server did not start, and leaves neither process nor port behind."""

import json
import socket
from pathlib import Path

import pytest

from tests.e2e.dev_server import PROJECT, DevServer, ServerFailed


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_server_that_cannot_start_says_why_and_is_gone(tmp_path: Path) -> None:
    config = tmp_path / "langgraph.json"
    config.write_text(json.dumps({"dependencies": ["."], "graphs": {"chat": "tests.e2e.support.nothing:graph"}}))
    server = DevServer(tmp_path / "run", config=config)

    with pytest.raises(ServerFailed, match=r"tests\.e2e\.support\.nothing"):
        server.start()

    assert is_free(server.port)


def test_a_taken_port_is_an_error_and_not_another_port(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = DevServer(tmp_path, config=PROJECT / "langgraph.json", port=taken.getsockname()[1])

        with pytest.raises(ServerFailed, match=r"port \d+ is taken"):
            server.start()


def fail_beside_a_running_server(server: DevServer) -> None:
    with server:
        assert not is_free(server.port)
        raise ZeroDivisionError


def test_nothing_is_left_after_a_failing_test(bare_server: DevServer) -> None:
    second = DevServer(bare_server.folder / "second", bare_server.config)

    with pytest.raises(ZeroDivisionError):
        fail_beside_a_running_server(second)

    assert is_free(second.port)
    assert not is_free(bare_server.port)
