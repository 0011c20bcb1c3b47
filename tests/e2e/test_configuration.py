"""Which configuration the server takes: the shipped files, and a user's `.env`."""

from pathlib import Path

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import AuthenticationError

from tests.e2e.dev_server import PROJECT, DevServer, ServerFailed
from tests.e2e.guarded_server import guarded_server
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


def test_without_an_identity_there_is_no_memory(tmp_path: Path, model: StubModel) -> None:
    (tmp_path / ".env").write_text("PALIMPSEST_SINGLE_USER=false\n")
    environment = {"OPENAI_API_KEY": "stub", "OPENAI_BASE_URL": model.url}
    with DevServer(tmp_path, environment=environment) as server:
        # The temporary thread's deletion leaves its fence, which names no user and holds no text.
        assert {namespace[0] for namespace in namespaces_after_a_turn(server)} <= {"palimpsest-erased"}


def test_production_lets_nobody_in_without_a_token(tmp_path: Path, model: StubModel) -> None:
    with guarded_server(tmp_path, model.url) as server, get_sync_client(url=server.url) as client:
        with pytest.raises(AuthenticationError):
            client.threads.create()
        assert model.requests == []


def test_production_does_not_start_without_a_key_to_check_tokens_with(tmp_path: Path, model: StubModel) -> None:
    environment = {"OPENAI_API_KEY": "stub", "OPENAI_BASE_URL": model.url}
    server = DevServer(tmp_path, config=PROJECT / "langgraph.prod.json", environment=environment)
    with pytest.raises(ServerFailed, match="PALIMPSEST_AUTH_SECRET"), server:
        pass
