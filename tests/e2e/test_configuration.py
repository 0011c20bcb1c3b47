"""Which configuration the server takes: the shipped files, and a user's `.env`."""

from pathlib import Path

import pytest
from langgraph_sdk import get_sync_client

from tests.e2e.dev_server import PROJECT, DevServer
from tests.e2e.speaking import speak_python
from tests.stub_model import StubModel


def namespaces_after_a_turn(server: DevServer) -> list[list[str]]:
    """Say something, and return under which names the store keeps anything then."""
    assert speak_python(server, "I live in Bergen.", None, {"user_id": "ada"}).answer == "You said: I live in Bergen."
    with get_sync_client(url=server.url) as client:
        return client.store.list_namespaces()["namespaces"]


def test_the_shipped_configuration_remembers_with_what_the_env_file_names(tmp_path: Path, model: StubModel) -> None:
    (tmp_path / ".env").write_text(f"OPENAI_API_KEY=stub\nOPENAI_BASE_URL={model.url}\n")
    with DevServer(tmp_path) as server:
        assert any(namespace[0] == "palimpsest" for namespace in namespaces_after_a_turn(server))


@pytest.mark.parametrize(
    ("config", "env_file"),
    [
        pytest.param("langgraph.prod.json", "", id="production"),
        pytest.param("langgraph.json", "PALIMPSEST_SINGLE_USER=false\n", id="switched off"),
    ],
)
def test_without_an_identity_there_is_no_memory(tmp_path: Path, model: StubModel, config: str, env_file: str) -> None:
    (tmp_path / ".env").write_text(env_file)
    environment = {"OPENAI_API_KEY": "stub", "OPENAI_BASE_URL": model.url}
    with DevServer(tmp_path, config=PROJECT / config, environment=environment) as server:
        assert namespaces_after_a_turn(server) == []
